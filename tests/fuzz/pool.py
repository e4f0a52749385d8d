"""Checks programs in processes of their own, so that a crash or an endless loop costs one program only."""
from __future__ import annotations

import json
import os
import queue
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent
_START = "import sys; sys.path[:0] = [{tests!r}, {root!r}]; from fuzz.worker import main; main()"

Drawn = tuple[str, int]                                # a kind of program, and the seed


class Worker:
    """One process; it is started again after it died."""

    def __init__(self, limit: float) -> None:
        self.limit = limit                             # seconds for one program
        self.process: subprocess.Popen[bytes] | None = None
        self.errors = tempfile.TemporaryFile()

    def check(self, program: Drawn) -> dict[str, Any]:
        """The report of a program; kind "died" or "too slow" where the process gave none."""
        if self.process is None:
            code = _START.format(tests=str(TESTS), root=str(TESTS.parent))
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "TILEWRIGHT_NUM_THREADS": "2"}
            self.process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=self.errors, env=environment)
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(f"{program[0]} {program[1]}\n".encode())
            process.stdin.flush()
        except BrokenPipeError:
            return self._lost(program, "died", "before the program")
        line, end = b"", time.monotonic() + self.limit
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], max(end - time.monotonic(), 0))
            if not ready:
                return self._lost(program, "too slow", f"more than {self.limit:g} s")
            part = os.read(process.stdout.fileno(), 1 << 16)
            if not part:
                return self._lost(program, "died", f"exit status {process.wait()}")
            line += part
        return json.loads(line)

    def _lost(self, program: Drawn, kind: str, detail: str) -> dict[str, Any]:
        self.close()
        self.errors.seek(0)
        last = self.errors.read().decode(errors="replace").splitlines()[-25:]
        self.errors.seek(0)
        self.errors.truncate()
        return {"program": program[0], "seed": program[1], "kind": kind, "detail": "\n".join([detail, *last]),
                "accepted": {}, "refused": {}, "reduction": False, "ragged": False, "symbolic": False, "threads": False,
                "native": False, "seconds": {}, "actions": [], "faults": []}

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def check_programs(programs: Iterable[Drawn], jobs: int = 2, limit: float = 120) -> Iterator[dict[str, Any]]:
    """The reports of the programs, in the order in which they are ready; a program is drawn when it is begun."""
    todo, lock = iter(programs), threading.Lock()
    done: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()

    def work() -> None:
        worker = Worker(limit)
        try:
            while True:
                with lock:
                    program = next(todo, None)
                if program is None:
                    return
                done.put(worker.check(program))
        finally:
            worker.close()
            done.put(None)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for t in threads:
        t.start()
    left = jobs
    while left:
        report = done.get()
        if report is None:
            left -= 1
        else:
            yield report
    for t in threads:
        t.join()
