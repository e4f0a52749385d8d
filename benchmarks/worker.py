"""One engine in a process of its own: reads one JSON command per line, answers one JSON line.

{"setup": {...}} prepares a case and answers {"ok": true, ...}; {"run": n} times n calls and answers
{"seconds": [...]}. Engines: see ENGINES; `tilewright` runs in the project's environment, the others where
`benchmarks/peers.txt` is installed.
"""
from __future__ import annotations

import importlib
import json
import os
import sys
import time


def main() -> None:
    module, engine, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:threads]))
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    prepare = getattr(importlib.import_module(module), f"prepare_{engine}")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)                                   # what engines print must not mix with the answers
    call = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if "setup" in command:
                call = None
                call, facts = prepare(threads, **command["setup"])
                answer = {"ok": True, **facts}
            else:
                seconds = []
                for _ in range(command["run"]):
                    start = time.perf_counter()
                    call()
                    seconds.append(time.perf_counter() - start)
                answer = {"seconds": seconds}
        except Exception as why:
            answer = {"error": f"{type(why).__name__}: {why}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
