"""A process that checks programs: it reads a kind and a seed, one pair a line, and answers each with a line of JSON."""
from __future__ import annotations

import json
import os
import sys


def main() -> None:
    os.environ["TILEWRIGHT_CACHE"] = "0"
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)                                      # what anything prints does not get between the answers
    from .kinds.table import check_seed
    for line in sys.stdin:
        kind, seed = line.split()
        answers.write(json.dumps(check_seed(kind, int(seed)).as_dict()) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
