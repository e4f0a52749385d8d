"""A process that checks seeds: it reads numbers, one a line, and answers each with a line of JSON."""
from __future__ import annotations

import json
import os
import sys


def main() -> None:
    os.environ["TILEWRIGHT_CACHE"] = "0"
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)                                      # what anything prints does not get between the answers
    from .check import check_seed
    for line in sys.stdin:
        answers.write(json.dumps(check_seed(int(line)).as_dict()) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
