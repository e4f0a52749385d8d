"""Which tests run a line of the package: `python -m tests.fuzz.coverage_map FOLDER [TEST_FILES]`, Python 3.12 or newer.

A child for each test file runs its tests and notes, by `sys.monitoring`, the lines that each of them reaches, and its
time: FOLDER has a JSON file for each. A test file that has one is left out, so that the command goes on where it
stopped. What tests run in other processes is not seen. Takes little longer than the suite.
"""
from __future__ import annotations

import functools
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import click

from .warm import PASSED, Warm, fork, wait

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 1200.0                                         # seconds for a test file
AROUND = 40                                            # lines before and behind, by which tests differ
SAME = 2                                               # tests that do not


class Lines:
    """The lines of the package that run, by `sys.monitoring` (PEP 669): each is reported once between resets."""

    def __init__(self, root: Path) -> None:
        self.paths: dict[str, str | None] = {}
        self.package = str(root / "tilewright") + "/"
        self.root = str(root) + "/"
        self.reached: set[tuple[str, int]] = set()
        monitoring: Any = sys.monitoring               # type: ignore[attr-defined,unused-ignore]
        monitoring.use_tool_id(monitoring.COVERAGE_ID, "lines")
        monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.LINE, self._note(monitoring.DISABLE))
        monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.LINE)
        self.restart: Callable[[], None] = monitoring.restart_events

    def _note(self, disable: object) -> Callable[[CodeType, int], object]:
        def note(code: CodeType, line: int) -> object:
            file = code.co_filename
            if file not in self.paths:
                self.paths[file] = file.removeprefix(self.root) if file.startswith(self.package) else None
            path = self.paths[file]
            if path is not None:
                self.reached.add((path, line))
            return disable
        return note

    def reset(self) -> set[tuple[str, int]]:
        """The lines since the last time."""
        out, self.reached = self.reached, set()
        self.restart()
        return out


def key_of(test_file: str) -> str:
    return test_file.replace("/", "__").removesuffix(".py")


def note(warm: Warm, folder: Path, test_file: str, root: Path = ROOT) -> None:
    """Write the lines and times of a test file's tests, in this process, which must be a child of its own."""
    nodes = [n for n in warm.items if n.partition("::")[0] == test_file]
    reached: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    lines, numbers = Lines(root), {node: k for k, node in enumerate(nodes)}
    before: int | None = None

    def take() -> None:
        for path, line in lines.reset():
            if before is not None:
                reached[path][line] |= 1 << before
    for node in warm.run_here(nodes, first=False):
        take()
        before = numbers[node]
    take()
    (folder / f"{key_of(test_file)}.json").write_text(json.dumps({
        "file": test_file, "failed": warm.failed, "tests": nodes, "seconds": [warm.seconds.get(n, 0.0) for n in nodes],
        "lines": {path: {line: hex(tests) for line, tests in of.items()} for path, of in reached.items()}}))


class CoverageMap:
    """The tests of each line, from a folder that `coverage_map` has filled."""

    def __init__(self, folder: Path) -> None:
        self.files = [json.loads(p.read_text()) for p in sorted(folder.glob("*.json"))]
        self.broken = {n for entry in self.files for n in entry["failed"]}

    def tests(self, path: str, first: int, last: int, whole: bool) -> list[tuple[str, float]]:
        """(node id, seconds) of the tests that run one of the lines of a module, or any line of it where `whole`.

        First those that differ in which lines around these they run, SAME of each sort; then those of the folder's own
        tests, `tests/arith` for `tilewright/arith`; then the others; the fastest first. Tests that fail by themselves
        are left out.
        """
        different: list[tuple[float, str]] = []
        own: list[tuple[float, str]] = []
        others: list[tuple[float, str]] = []
        sorts: Counter[frozenset[int]] = Counter()
        for seconds, node, at_home, lines in sorted(self._running(path, first, last, whole), key=lambda t: t[:3]):
            sorts[lines] += 1
            (different if sorts[lines] <= SAME else own if at_home else others).append((seconds, node))
        return [(node, seconds) for seconds, node in (*different, *own, *others)]

    def _running(self, path: str, first: int, last: int,
                 whole: bool) -> Iterator[tuple[float, str, bool, frozenset[int]]]:
        """(seconds, node id, whether it is the folder's own, lines around that it runs) of each test."""
        for entry in self.files:
            masks = {int(n): int(tests, 16) for n, tests in entry["lines"].get(path, {}).items()}
            running = functools.reduce(int.__or__, (m for n, m in masks.items() if whole or first <= n <= last), 0)
            around = {n: m for n, m in masks.items() if first - AROUND <= n <= last + AROUND}
            at_home = entry["file"].split("/")[1] == path.split("/")[1]
            for k, node in enumerate(entry["tests"]):
                if running >> k & 1 and node not in self.broken:
                    yield entry["seconds"][k], node, at_home, frozenset(n for n, m in around.items() if m >> k & 1)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1)
@click.option("--jobs", default=2, show_default=True, help="Processes.")
def main(folder: Path, files: tuple[str, ...], jobs: int) -> None:
    """Map the lines that tests run."""
    if sys.version_info < (3, 12):
        raise click.UsageError("sys.monitoring is of Python 3.12: run this with that version or a newer one")
    folder.mkdir(parents=True, exist_ok=True)

    def of_file(warm: Warm, test_file: str) -> None:
        status = wait(fork(lambda: note(warm, folder, test_file) or PASSED), LIMIT)
        print(f"{test_file}" if status == PASSED else f"{test_file}: left out, it ends with {status}", flush=True)

    def work(warm: Warm) -> None:
        every = dict.fromkeys(n.partition("::")[0] for n in warm.items)
        left = [f for f in every if not (folder / f"{key_of(f)}.json").exists()]
        warm.each(left, jobs, lambda test_file, _: of_file(warm, test_file))
    Warm.serve(work, files)


if __name__ == "__main__":
    main()
