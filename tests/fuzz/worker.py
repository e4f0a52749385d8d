"""A process that checks programs: it reads a kind and a seed, one pair a line, and answers each with a line of JSON."""
from __future__ import annotations

import json
import os
import sys
import warnings


def main() -> None:
    os.environ["TILEWRIGHT_CACHE"] = "0"
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)                                      # what anything prints does not get between the answers
    from tilewright.support.errors import CodegenWarning

    from .kinds.table import check_seed
    for line in sys.stdin:
        kind, seed = line.split()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", CodegenWarning)
            report = check_seed(kind, int(seed)).as_dict()
        answers.write(json.dumps({**report, "faults": [str(w.message) for w in said]}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
