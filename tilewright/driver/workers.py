"""Kernels compiled side by side, in processes: rules and lowering are Python, which runs on one core in a process."""
from __future__ import annotations

import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from tilewright.driver.kernels import KernelCode, compile_graph_kernel, is_portable, kernel_key
from tilewright.runtime.machine import available_cpus
from tilewright.support import config
from tilewright.support.target import Target, target
from tilewright.tir import PrimFunc

Job = tuple[PrimFunc, Collection[int]]           # a function in block form, and its parameters that are constant
_SERVE = "from tilewright.driver.workers import main; main({})"
JOBS_A_WORKER = 3                                # fewer do not make up for its start, of about 0.4 s


def compile_graph_kernels(jobs: Sequence[Job], where: Target,
                          progress: Callable[[int], None] | None = None) -> list[KernelCode]:
    """The code of each function, in order. progress: is told how many are done, from any thread.

    Workers are processes of this interpreter that end with the call. They take part where there are enough functions
    that are not in the cache, and no pass or rule of the program is involved, which other processes do not have. Each
    takes its first function once it has started: nothing waits for a process that is still loading. Where they, or
    threads that speak to them, cannot be started, all is done here.
    """
    results: list[KernelCode | None] = [None] * len(jobs)
    left = queue.SimpleQueue[int]()
    keys = [kernel_key(func, where, constant) for func, constant in jobs]
    shared = _crew(len(jobs)) > 0
    fresh = [k for k, key in enumerate(keys) if not shared or is_portable(key)]
    for k in fresh:
        left.put(k)

    def compiled(k: int) -> KernelCode:
        func, constant = jobs[k]
        return compile_graph_kernel(func, where, constant, keys[k])

    def told() -> None:
        if progress:
            progress(sum(r is not None for r in results))
    crew = _started(_crew(len(fresh)), where)

    def serve(worker: _Worker) -> None:
        while worker.ready() and (k := _next(left)) is not None:
            made = worker.compile(jobs[k])
            if made is None:                             # it ended: the work, and what it says of it, is done here
                left.put(k)
                return
            results[k] = made
            told()

    threads = []
    try:
        with suppress(RuntimeError):                     # there may be no more threads
            for w in crew:
                t = threading.Thread(target=serve, args=(w,), daemon=True)
                t.start()
                threads.append(t)
        while (mine := _next(left)) is not None:
            results[mine] = compiled(mine)
            told()
        for w in crew:
            w.end_unless_ready()
        for t in threads:
            t.join()
    finally:
        for w in crew:
            w.end()
    return [r if r is not None else compiled(k) for k, r in enumerate(results)]


def _next(left: queue.SimpleQueue[int]) -> int | None:
    try:
        return left.get_nowait()
    except queue.Empty:
        return None


def _crew(jobs: int) -> int:
    """How many workers are worth their start."""
    most = config.get("COMPILE_WORKERS")
    assert isinstance(most, int)
    return max(0, min(jobs // JOBS_A_WORKER, available_cpus() - 1, most)) if sys.executable else 0


def _started(count: int, where: Target) -> list[_Worker]:
    """At most so many workers: as many as can be started."""
    crew: list[_Worker] = []
    with suppress(OSError):
        while len(crew) < count:
            crew.append(_Worker(where))
    return crew


class _Worker:
    """A process that compiles one function after the other."""

    def __init__(self, where: Target) -> None:
        self.where = str(where)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        answers, theirs = os.pipe()                      # what the interpreter prints at its start is no answer
        self.answers = os.fdopen(answers, "rb")
        try:
            self.process = subprocess.Popen([sys.executable, "-c", _SERVE.format(theirs)], stdin=subprocess.PIPE,
                                            stdout=subprocess.DEVNULL, env=environment, pass_fds=(theirs,),
                                            start_new_session=True)
        except OSError:
            self.answers.close()
            raise
        finally:
            os.close(theirs)
        self.began = False

    def ready(self) -> bool:
        """Wait until the process has loaded the compiler. False where it ended before."""
        self.began = self.began or bool(_receive(self.answers))
        return self.began

    def end_unless_ready(self) -> None:
        """Nothing is left to compile: who waits for the process to begin is told that it ended."""
        if not self.began:
            self.process.kill()

    def compile(self, job: Job) -> KernelCode | None:
        """The code; None where the process ended, or the compiler refused, or the function cannot be sent."""
        try:
            assert self.process.stdin is not None
            _send(self.process.stdin, pickle.dumps((job[0], sorted(job[1]), self.where)))
            entry = _receive(self.answers)
        except (OSError, pickle.PicklingError, RecursionError):
            return None
        return KernelCode.from_bytes(entry) if entry else None

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()
        self.answers.close()


def _send(stream: BinaryIO | Any, data: bytes) -> None:
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def _receive(stream: BinaryIO | Any) -> bytes:
    """What was sent; nothing at the end of the stream."""
    head = stream.read(8)
    if len(head) < 8:
        return b""
    size, = struct.unpack("<Q", head)
    data: bytes = stream.read(size)
    return data if len(data) == size else b""


def main(descriptor: int) -> None:
    """Serve the process that started this one, until it closes its end. descriptor: of the file for the answers."""
    answers, requests = os.fdopen(descriptor, "wb"), sys.stdin.buffer
    _send(answers, b"ready")
    while data := _receive(requests):
        func, constant, where = pickle.loads(data)
        try:
            key = kernel_key(func, target(where), constant)
            entry = compile_graph_kernel(func, target(where), constant, key).to_bytes()
        except Exception:                                # the other process meets the same error, and raises it
            return
        _send(answers, entry)

