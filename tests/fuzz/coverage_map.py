"""Which tests run a line of the package: `python -m tests.fuzz.coverage_map FOLDER [TEST_FILES]`.

One run of each test file under coverage leaves a database of the lines that each of its tests runs, and a table of
their times. A file that has both is left out, so that the command goes on where it stopped. What tests run in other
processes is not seen. Takes about three times as long as the suite.
"""
from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import click
import pytest

ROOT = Path(__file__).resolve().parents[2]
_SETTINGS = """[run]
source = {root}/tilewright
data_file = {data}
core = ctrace
"""


class Contexts:
    """A plugin of pytest: what a test runs, its setup included, is noted under its node id; `seconds` are its times."""

    def __init__(self, traced: Any) -> None:
        self.traced = traced
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.traced.switch_context(item.nodeid)
        start = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.process_time() - start, 3)
            self.traced.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def key_of(test_file: str) -> str:
    return test_file.replace("/", "__").removesuffix(".py")


def make(folder: Path, test_file: str, root: Path = ROOT, limit: float = 1200) -> None:
    """Write the database and the times of a test file, unless they are there, in a process of its own.

    Raises subprocess.TimeoutExpired after `limit` seconds, when all of its processes have been ended.
    """
    if (folder / f"{key_of(test_file)}.json").exists():
        return
    command = [sys.executable, "-m", "tests.fuzz.coverage_map", "--one", str(folder), test_file]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, start_new_session=True,
                               env={**os.environ, "PYTHONPATH": _path(root), "TILEWRIGHT_CACHE": "0"})
    try:
        if process.wait(limit):
            raise subprocess.CalledProcessError(process.returncode, command)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise


def run_one(folder: Path, test_file: str, root: Path = ROOT) -> None:
    """Run a test file under coverage in this process."""
    import coverage  # of the extra "dev": the suite does without

    key = key_of(test_file)
    settings, data = (folder / f"{key}{end}" for end in (".rc", ".coverage"))
    settings.write_text(_SETTINGS.format(root=root, data=data))
    traced = coverage.Coverage(config_file=str(settings))
    contexts = Contexts(traced)
    traced.start()
    try:
        pytest.main(["-q", "-p", "no:cacheprovider", test_file], plugins=[contexts])
    finally:
        traced.stop()
        traced.save()
    settings.unlink()
    (folder / f"{key}.json").write_text(json.dumps({
        "file": test_file, "seconds": {n: t for n, t in contexts.seconds.items() if n not in contexts.failed},
        "failed": sorted(contexts.failed)}))


def _path(root: Path) -> str:
    return os.pathsep.join(p for p in (str(root), os.environ.get("PYTHONPATH", "")) if p)


class CoverageMap:
    """The tests of each line, from a folder that `make` has filled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = [json.loads(p.read_text()) for p in sorted(folder.glob("*.json"))]

    def tests(self, path: str, first: int, last: int, whole: bool) -> list[tuple[str, float]]:
        """(node id, seconds) of the tests that run one of the lines of a module, or any line of it where `whole`.

        First those of the folder's own tests, `tests/arith` for `tilewright/arith`, up to 8 of each file, the fastest
        first; then the two fastest of each other file; then the others.
        """
        own, first_of_each, others = [], [], []
        for entry in self.files:
            lines = self._contexts(key_of(entry["file"]), path)
            names = set().union(*(c for n, c in lines.items() if whole or first <= n <= last), set())
            found = sorted((entry["seconds"][n], n) for n in names if n in entry["seconds"])
            at_home = entry["file"].split("/")[1] == path.split("/")[1]
            some = 8 if at_home else 2
            (own if at_home else first_of_each).extend(found[:some])
            others += found[some:]
        return [(node, seconds) for seconds, node in (*sorted(own), *sorted(first_of_each), *sorted(others))]

    @functools.lru_cache(maxsize=4000)                 # noqa: B019
    def _contexts(self, key: str, path: str) -> dict[int, list[str]]:
        import coverage

        data = coverage.CoverageData(basename=str(self.folder / f"{key}.coverage"))
        data.read()
        return next((data.contexts_by_lineno(f) for f in data.measured_files() if f.endswith(f"/{path}")), {})


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1)
@click.option("--one", is_flag=True, hidden=True)
def main(folder: Path, files: tuple[str, ...], one: bool) -> None:
    """Map the lines that tests run."""
    folder.mkdir(parents=True, exist_ok=True)
    if one:
        run_one(folder, files[0])
        return
    every = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "tests").rglob("test_*.py"))
    for f in files or every:
        try:
            make(folder, f)
            print(f, flush=True)
        except subprocess.TimeoutExpired:
            print(f"{f}: left out, it does not end under coverage", flush=True)


if __name__ == "__main__":
    main()
