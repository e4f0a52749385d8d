"""Which test functions run a line of the package: `python -m tests.fuzz.coverage_map FOLDER [TEST_FILES]`.

One run of each test file under coverage leaves a database of the lines that each of its functions runs, and a table of
their times. A file that has both is left out, so that the command goes on where it stopped. Fuzzing in processes of its
own is not seen. Takes about three times as long as the suite.
"""
from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[2]
_SETTINGS = """[run]
dynamic_context = test_function
source = {root}/tilewright
data_file = {data}
core = ctrace
"""


def key_of(test_file: str) -> str:
    return test_file.replace("/", "__").removesuffix(".py")


def make(folder: Path, test_file: str, root: Path = ROOT, limit: float = 1200) -> None:
    """Write the database and the times of a test file, unless they are there."""
    key = key_of(test_file)
    times = folder / f"{key}.json"
    if times.exists():
        return
    settings, report, data = (folder / f"{key}{end}" for end in (".rc", ".xml", ".coverage"))
    settings.write_text(_SETTINGS.format(root=root, data=data))
    subprocess.run([sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-q", "-p",
                    "no:cacheprovider", f"--junitxml={report}", test_file], cwd=root, timeout=limit, check=False,
                   stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": _path(root), "TILEWRIGHT_CACHE": "0"})
    seconds: dict[str, float] = defaultdict(float)
    failed = set()
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("name", "").split("[")[0]
        seconds[name] += float(case.get("time", 0))
        if any(child.tag in ("failure", "error") for child in case):
            failed.add(name)
    times.write_text(json.dumps({"file": test_file, "seconds": {n: t for n, t in seconds.items() if n not in failed},
                                 "failed": sorted(failed)}))
    settings.unlink()
    report.unlink()


def _path(root: Path) -> str:
    return os.pathsep.join(p for p in (str(root), os.environ.get("PYTHONPATH", "")) if p)


class CoverageMap:
    """The tests of each line, from a folder that `make` has filled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = [json.loads(p.read_text()) for p in sorted(folder.glob("*.json"))]

    def tests(self, path: str, first: int, last: int, whole: bool) -> list[tuple[str, float]]:
        """(node id, seconds) of the tests that run one of the lines of a module, or any line of it where `whole`;
        the fastest of each file first, then the others."""
        first_of_each, others = [], []
        for entry in self.files:
            lines = self._contexts(key_of(entry["file"]), path)
            contexts = set().union(*(c for n, c in lines.items() if whole or first <= n <= last), set())
            names = {c.rsplit(".", 1)[-1] for c in contexts if c}
            found = sorted((entry["seconds"][n], f"{entry['file']}::{n}") for n in names if n in entry["seconds"])
            first_of_each += found[:2]
            others += found[2:]
        return [(node, seconds) for seconds, node in (*sorted(first_of_each), *sorted(others))]

    @functools.lru_cache(maxsize=4000)                 # noqa: B019
    def _contexts(self, key: str, path: str) -> dict[int, list[str]]:
        import coverage  # of the extra "dev"

        data = coverage.CoverageData(basename=str(self.folder / f"{key}.coverage"))
        data.read()
        return next((data.contexts_by_lineno(f) for f in data.measured_files() if f.endswith(f"/{path}")), {})


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1)
def main(folder: Path, files: tuple[str, ...]) -> None:
    """Map the lines that tests run."""
    folder.mkdir(parents=True, exist_ok=True)
    every = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "tests").rglob("test_*.py"))
    for f in files or every:
        make(folder, f)
        print(f, flush=True)


if __name__ == "__main__":
    main()
