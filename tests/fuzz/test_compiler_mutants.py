"""The planting of defects in the compiler: what is drawn, what is left out, how a mutant is judged."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from . import compiler_mutants
from .compiler_mutants import drawn, summary
from .compiler_mutations import Mutation, modules, mutations
from .coverage_map import ROOT, CoverageMap
from .planting import Functions
from .warm import BROKEN, FAILED, PASSED, fork, wait

SOURCE = '''"""A text with 1 + 1."""
MOST_STEPS = 5
OPS = {"add": 1}


def rule(xs: list[int], y: int = 3) -> int:
    """A text with x < y."""
    require(y > 0, f"{y} is < 1", hint="2")
    if y < 3 and xs:
        return 0
    xs.append(y)
    return sum(x for x in xs if x != y) - y


def show(y):
    return y + 1
'''


def planted(source: str) -> dict[str, list[str]]:
    """Per operator, the lines that its mutations change."""
    out: dict[str, list[str]] = {}
    for m in mutations("rule.py", source):
        changed = [new.strip() for old, new in zip(source.splitlines(), m.apply(source).splitlines()) if old != new]
        out.setdefault(m.operator, []).extend(changed)
    return out


def test_every_operator_plants_its_defects():
    found = planted(SOURCE)
    assert found["dropped check"] == ["pass"] and found["removed statement"] == ["pass"]
    assert "if False:" in found["dropped guard"] and "if (xs):" in found["dropped guard"]
    assert "if (not (y < 3 and xs)):" in found["negated condition"]
    assert "if (y <= 3) and xs:" in found["turned comparison"]
    assert found["wrong operator"] == ["return (sum(x for x in xs if x != y) + y)"]
    assert found["forgotten condition"] == ["return sum(x for x in xs if True) - y"]
    assert found["wrong word"] == ["OPS = {'sub': 1}"]
    assert "return 1" in found["off by one"] and "require(y > 1, f\"{y} is < 1\", hint=\"2\")" in found["off by one"]


def test_what_cannot_change_a_result_is_left_out():
    changed = [line for lines in planted(SOURCE).values() for line in lines]
    for text in ('"""', "MOST_STEPS", "def rule", "return y"):
        assert not any(line.startswith(text) for line in changed)
    assert sum("require" in line for line in changed) == 2        # the condition, not the message


def test_every_mutant_of_the_compiler_compiles():
    chosen = drawn(100, 7)
    assert len({m.operator for m in chosen}) >= 9 and len({(m.path, m.start, m.new) for m in chosen}) == 100
    for m in chosen:
        source = (ROOT / m.path).read_text()
        assert m.apply(source) != source
        compile(m.apply(source), m.path, "exec")
    assert drawn(20, 3) == drawn(20, 3) != drawn(20, 4)


def test_printers_and_rules_of_speed_alone_are_left_out():
    names = {str(p.relative_to(ROOT)) for p in modules(ROOT)}
    assert "tilewright/arith/analyzer.py" in names
    assert not names & {"tilewright/tir/printer/text.py", "tilewright/rules/apply.py"}


def mutation_of(path, text, new):
    source = (ROOT / path).read_text()
    start = source.index(text)
    line = source[:start].count("\n") + 1
    return Mutation(path, "by hand", start, start + len(text), new, line, line, False)


TEST = """
from tilewright.tir import const, truncmod

def test_truncmod():
    assert truncmod(const(-7), 2).value == -1

def test_broken():
    assert False
"""


def judged(folder, chosen):
    """The results of mutants, by a process whose tests are those of TEST; each is said to run every changed line."""
    (folder / "tests" / "tir").mkdir(parents=True)
    (folder / "tests" / "tir" / "test_it.py").write_text(TEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "map").mkdir()
    names = ["tests/tir/test_it.py::test_broken", "tests/tir/test_it.py::test_truncmod"]
    (folder / "map" / "all.json").write_text(json.dumps({
        "file": "tests/tir/test_it.py", "failed": [], "tests": names, "seconds": [0.1, 0.2],
        "lines": {m.path: {str(m.first): "0x3" for m in chosen} for m in chosen}}))
    (folder / "run.py").write_text(f"""
from pathlib import Path
from tests.fuzz.compiler_mutants import Limits, run_mutants
from tests.fuzz.compiler_mutations import Mutation
folder = Path({str(folder)!r})
run_mutants(list(enumerate({chosen!r})), folder / "map", Limits(60, 0), 1, folder / "out", [str(folder / "tests")])
""")
    done = subprocess.run([sys.executable, str(folder / "run.py")], cwd=ROOT, capture_output=True, text=True,
                          timeout=300, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in (folder / "out").read_text().splitlines()]


def test_defects_are_caught_in_children_and_in_copies_and_leave_no_trace(tmp_path):
    """test_broken fails without a defect, too: it says nothing."""
    path = "tilewright/tir/ops.py"
    before = (ROOT / path).read_text()
    wrong, imported, right = judged(tmp_path, [
        mutation_of(path, "return a - b * trunc_div(a, b)", "return a + b * trunc_div(a, b)"),
        mutation_of(path, "BINARY: dict[str, BinaryOp] = {", "BINARY = 1 // 0 or {"),
        mutation_of(path, "return a - b * trunc_div(a, b)", "return a - trunc_div(a, b) * b")])
    assert (wrong["verdict"], wrong["by"]) == ("test", "tests/tir/test_it.py::test_truncmod")
    assert imported["verdict"] == "import" and (right["verdict"], right["by"]) == ("survived", "1 tests")
    assert "+    return a + b" in wrong["diff"] and (ROOT / path).read_text() == before


@pytest.fixture(scope="module")
def functions():
    return Functions()


@pytest.mark.parametrize(("path", "text", "new", "plantable"), [
    ("tilewright/tir/ops.py", "return a - b * trunc_div(a, b)", "return a + b * trunc_div(a, b)", True),
    ("tilewright/tir/ops.py", "BINARY: dict[str, BinaryOp] = {", "BINARY = {} or {", False),
    ("tilewright/tir/ops.py", "def trunc_div(a: int, b: int)", "def trunc_div(a: int, b: int = 2)", False)])
def test_what_importing_a_module_does_cannot_be_planted(functions, path, text, new, plantable):
    assert bool(functions.changes(mutation_of(path, text, new), ROOT)) == plantable


@pytest.mark.parametrize(("work", "status"), [
    (lambda: PASSED, PASSED), (lambda: FAILED, FAILED), (lambda: os.kill(os.getpid(), signal.SIGSEGV), BROKEN),
    (lambda: 1 // 0, BROKEN), (lambda: time.sleep(60), None)])
def test_children_are_told_apart_by_how_they_end(work, status):
    assert wait(fork(work), 1) == status


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is of Python 3.12")
def test_the_map_has_the_tests_of_each_line(tmp_path):
    subprocess.run([sys.executable, "-m", "tests.fuzz.coverage_map", str(tmp_path), "tests/arith/test_laws.py"],
                   cwd=ROOT, check=True, capture_output=True, timeout=300)
    source = (ROOT / "tilewright/arith/laws.py").read_text()
    line = source[:source.index("def nested_symbolic")].count("\n") + 3
    found = CoverageMap(tmp_path).tests("tilewright/arith/laws.py", line, line + 3, False)
    assert "tests/arith/test_laws.py::test_law[nested_symbolic]" in dict(found)


def test_results_are_appended_and_gone_on_with(tmp_path, monkeypatch):
    asked = []

    def judged(chosen, folder, limits, jobs, out):
        asked.append([k for k, _ in chosen])
        with out.open("a") as f:
            for k, m in chosen[:2]:
                f.write(json.dumps({"mutant": k, "file": m.path, "line": m.first, "operator": m.operator, "by": "",
                                    "verdict": "survived" if k else "test", "diff": f"diff {k}", "cpu": 1.0}) + "\n")
    monkeypatch.setattr(compiler_mutants, "run_mutants", judged)
    out = tmp_path / "results"
    for _ in range(2):
        compiler_mutants.main(["--mutants", "4", "--map", str(tmp_path), "--out", str(out)], standalone_mode=False)
    assert asked == [[0, 1, 2, 3], [2, 3]]
    text = summary([json.loads(line) for line in Path(out).read_text().splitlines()])
    assert text.startswith("4 mutants, 1 caught (25.0%)") and "diff 3" in text
