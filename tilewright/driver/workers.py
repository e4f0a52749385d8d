"""Kernels compiled side by side, in processes: rules and lowering are Python, which runs on one core in a process."""
from __future__ import annotations

import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, BinaryIO

from tilewright.driver.kernels import KernelCode, compile_graph_kernel, is_portable, kernel_key
from tilewright.runtime.machine import available_cpus
from tilewright.support import config
from tilewright.support.target import Target, target
from tilewright.tir import PrimFunc

Job = tuple[PrimFunc, Collection[int]]           # a function in block form, and its parameters that are constant
_SERVE = "from tilewright.driver.workers import main; main({})"
SECONDS_A_WORKER = 1.0                           # of work: less does not make up for its start, of about 0.4 s


def compile_graph_kernels(jobs: Sequence[Job], where: Target,
                          progress: Callable[[int], None] | None = None) -> list[KernelCode]:
    """The code of each function, in order. progress: is told how many are done, from any thread.

    Workers are processes of this interpreter that end with the call. They take part where much is left to compile, by
    the time that the first functions took, and no pass or rule of the program is involved, which other processes do
    not have. Each takes its first function once it has started: nothing waits for a process that is still loading.
    Where they, or threads that speak to them, cannot be started, all is done here.
    """
    results: list[KernelCode | None] = [None] * len(jobs)
    left = queue.SimpleQueue[int]()
    keys = [kernel_key(func, where, constant) for func, constant in jobs]

    def keep(k: int, code: KernelCode) -> None:
        results[k] = code
        if progress:
            progress(sum(r is not None for r in results))

    def compile_here(k: int) -> None:
        func, constant = jobs[k]
        keep(k, compile_graph_kernel(func, where, constant, keys[k]))

    def serve(worker: _Worker) -> None:
        while worker.ready() and (k := _next(left)) is not None:
            made = worker.compile(jobs[k])
            if made is None:                             # it ended: the work, and what it says of it, is done here
                left.put(k)
                return
            keep(k, made)

    for k, key in enumerate(keys):
        if is_portable(key):
            left.put(k)
        else:
            compile_here(k)
    crew, began, done = _Crew(where, serve), time.perf_counter(), 0
    try:
        while (mine := _next(left)) is not None:
            compile_here(mine)
            done += 1
            crew.grow(left.qsize() * (time.perf_counter() - began) / done)
        crew.join()
    finally:
        crew.end()
    for k, result in enumerate(results):
        if result is None:
            compile_here(k)
    return [r for r in results if r is not None]


def _next(left: queue.SimpleQueue[int]) -> int | None:
    try:
        return left.get_nowait()
    except queue.Empty:
        return None


class _Crew:
    """The workers of a call, each with the thread that speaks to it."""

    def __init__(self, where: Target, serve: Callable[[_Worker], None]) -> None:
        self.where, self.serve = where, serve
        self.workers: list[_Worker] = []
        self.threads: list[threading.Thread] = []
        most = config.get("COMPILE_WORKERS")
        assert isinstance(most, int)
        self.most = min(available_cpus() - 1, most) if sys.executable else 0

    def grow(self, seconds: float) -> None:
        """Start the workers that so much work is worth, as many as can be started."""
        try:
            while len(self.workers) < min(self.most, int(seconds / SECONDS_A_WORKER)):
                self.workers.append(_Worker(self.where))
                self.threads.append(threading.Thread(target=self.serve, args=(self.workers[-1],), daemon=True))
                self.threads[-1].start()
        except (OSError, RuntimeError):                  # there may be no more processes, or threads
            self.most = 0

    def join(self) -> None:
        """Wait for what the workers compile; not for those that have not begun."""
        for worker in self.workers:
            worker.end_unless_ready()
        for thread in self.threads:
            if thread.ident:
                thread.join()

    def end(self) -> None:
        """End the workers."""
        for worker in self.workers:
            worker.end()


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

