"""The planting of defects in the compiler: what is drawn, what is left out, how a mutant is judged."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from . import compiler_mutants
from .compiler_mutants import Limits, Place, drawn, summary
from .compiler_mutations import Mutation, modules, mutations
from .coverage_map import ROOT

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


class Known:
    """A map with one test for every line."""

    def __init__(self, tests):
        self.of_all = tests

    def tests(self, path, first, last, whole):
        return self.of_all


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("mutants"))


def mutation_of(path, text, new):
    source = (ROOT / path).read_text()
    start = source.index(text)
    line = source[:start].count("\n") + 1
    return Mutation(path, "by hand", start, start + len(text), new, line, line, False)


def test_a_defect_is_caught_by_a_test_and_leaves_no_trace(place):
    path = "tilewright/tir/ops.py"
    m = mutation_of(path, "return a - b * trunc_div(a, b)", "return a + b * trunc_div(a, b)")
    known = Known([("tests/tir/test_operator_table.py", 1.0), ("tests/tir/test_expr.py", 1.0)])
    result = place.judge(m, known, Limits(60, 1))
    assert result["verdict"] == "test" and "test_" in result["by"] and "+    return a + b" in result["diff"]
    assert (place.root / path).read_text() == (ROOT / path).read_text()


def test_a_test_that_fails_without_the_defect_says_nothing(place):
    (place.root / "tests/tir/test_broken.py").write_text("def test_it():\n    assert False\n")
    m = mutation_of("tilewright/tir/ops.py", "return a - b * trunc_div(a, b)", "return a + b * trunc_div(a, b)")
    known = Known([("tests/tir/test_broken.py::test_it", 0.1), ("tests/tir/test_operator_table.py", 1.0),
                   ("tests/tir/test_expr.py", 1.0)])
    result = place.judge(m, known, Limits(60, 0))
    assert result["verdict"] == "test" and "test_broken" not in result["by"]
    assert place.broken == {"tests/tir/test_broken.py::test_it"}


def test_a_defect_that_breaks_the_import_is_told_apart(place):
    m = mutation_of("tilewright/tir/ops.py", "BINARY: dict[str, BinaryOp] = {", "BINARY = 1 // 0 or {")
    assert place.judge(m, Known([]), Limits(1, 1))["verdict"] == "import"


def test_a_run_that_hangs_is_ended(place):
    status, _ = place.run(["python3", "-c", "import time; time.sleep(60)"], 1)
    assert status is None


def test_results_are_appended_and_gone_on_with(tmp_path, monkeypatch):
    asked = []

    def judged(chosen, known, limits, jobs, out):
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
