"""Tests in children of a process that has collected them: a run of a few costs milliseconds before the first begins.

    Warm.serve(work)        collect the suite, then call work(warm)
    warm.each(tasks, ...)   a child for each task, some at a time
    warm.run(nodes, ...)    these tests in a child, until one fails

Children are forks: what a task changes in them (code, caches, files) is gone with them, but for files.
"""
from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
Outcome = tuple["int | None", str]                     # PASSED, FAILED, BROKEN or None (too slow), and what ran last
PASSED, FAILED, BROKEN = 0, 1, 2
POLL = 0.01                                            # seconds between looks at a child


class Warm:
    """A plugin of pytest that hands the collected tests to `work` in the place of running them."""

    def __init__(self, work: Callable[[Warm], None]) -> None:
        self.work = work
        self.items: dict[str, pytest.Item] = {}
        self.failed: list[str] = []
        self.seconds: dict[str, float] = {}            # of each test that ran in this process: CPU time

    @staticmethod
    def serve(work: Callable[[Warm], None], paths: Sequence[str] = ()) -> None:
        """Collect the tests of paths, of the whole suite by default, and call work. Raises RuntimeError where pytest
        cannot collect them."""
        status = pytest.main(["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", *paths], plugins=[Warm(work)])
        if status != pytest.ExitCode.OK:
            raise RuntimeError(f"pytest ends with {status!r}")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("some modules cannot be imported")
        self.items = {item.nodeid: item for item in session.items}
        self.work(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def run_here(self, nodes: Iterable[str], first: bool = True) -> Iterator[str]:
        """Run tests in this process, which must be a child; each name comes before its test runs. first: up to the
        first that fails."""
        items = [self.items[n] for n in nodes]
        for item, following in zip(items, [*items[1:], None]):
            yield item.nodeid
            start = time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self.seconds[item.nodeid] = round(time.process_time() - start, 3)
            if first and self.failed:
                return

    def run(self, nodes: Sequence[str], limit: float, before: Callable[[], None] = lambda: None) -> Outcome:
        """(status, the test that ran last) of a child that calls before() and runs tests until one fails.

        The status is PASSED, FAILED, BROKEN (the child died) or None (it was ended after `limit` seconds).
        """
        with tempfile.TemporaryDirectory() as folder:
            last = Path(folder, "last")

            def child() -> int:
                before()
                for node in self.run_here(nodes):
                    last.write_text(node)
                return FAILED if self.failed else PASSED
            status = wait(fork(child), limit)
            return status, last.read_text() if last.exists() else ""

    def each(self, tasks: Iterable[T], jobs: int, work: Callable[[T, int], None]) -> None:
        """work(task, place) of each task in a child of its own, `jobs` at a time, in places 0..jobs-1."""
        running: dict[int, int] = {}
        free = list(range(jobs))

        def finish() -> None:
            pid, _ = os.wait()
            free.append(running.pop(pid))
        for task in tasks:
            if not free:
                finish()
            place = free.pop()
            running[fork(lambda task=task, place=place: work(task, place) or PASSED, quiet=False)] = place  # type: ignore[misc]
        while running:
            finish()


def fork(work: Callable[[], int], quiet: bool = True) -> int:
    """The process id of a child, the leader of a group, that ends with the status that work gives. quiet: what it
    prints is lost."""
    pid = os.fork()
    if pid:
        return pid
    status = BROKEN
    try:
        os.setsid()
        if quiet:
            sink = os.open(os.devnull, os.O_WRONLY)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
        status = work()
    finally:
        os._exit(status)


def wait(pid: int, limit: float) -> int | None:
    """The status of a child; BROKEN where a signal ended it, None where it was ended, with its group, after limit."""
    end = time.monotonic() + limit
    try:
        while time.monotonic() < end:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.WEXITSTATUS(status) if os.WIFEXITED(status) and os.WEXITSTATUS(status) < BROKEN else BROKEN
            time.sleep(POLL)
        return None
    finally:
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if time.monotonic() >= end:
            _reap(pid)


def _reap(pid: int) -> Any:
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass
