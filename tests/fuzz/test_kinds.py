"""2,090 programs of the kinds that are no tensor expressions under schedules; what each kind notices."""
from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.llvm import arithmetic, faults
from tilewright.support import errors
from tilewright.tir.interp import support

from .kinds import bindings, blocks, gathers, guards, integers, scalars, sizes
from .kinds.common import Case, Wrong, array_differences
from .kinds.scalars import Scalar, const, name
from .kinds.shrink import outcome, outcome_apart, shrink
from .kinds.table import SHARES, check_seed, describe, kind_of
from .run import run_programs

COUNTS = {"integers": 1100, "bindings": 150, "blocks": 200, "gathers": 500, "sizes": 100, "guards": 40}


@pytest.fixture(scope="module")
def summary():
    return run_programs([(kind, seed) for kind, count in COUNTS.items() for seed in range(count)], jobs=2, limit=60)


@pytest.mark.parametrize("kind", COUNTS)
def test_programs_agree_with_their_references(summary, kind):
    failures = [r for r in summary.failures if r["program"] == kind]
    assert not failures, "\n\n".join(
        f"{kind} {r['seed']}: {r['detail']}\n{describe(kind, r['seed'])}" for r in failures)
    assert len(summary.of(kind)) == COUNTS[kind]


def test_a_slow_build_is_a_failure(monkeypatch):
    monkeypatch.setattr("fuzz.kinds.common.BUILD_LIMIT", 0.0)
    assert check_seed("sizes", 0).kind == "slow build"


def test_a_mixed_run_draws_every_kind():
    drawn = [kind_of(seed) for seed in range(400)]
    for kind, share in SHARES.items():
        assert 0.5 * share <= drawn.count(kind) / 4 <= 1.5 * share


# what is noticed -----------------------------------------------------------------------------------------------------
def noticed(kind, seeds):
    """The seeds that fail, with how they fail."""
    found = {s: outcome(lambda s=s: kind.check(kind.program(s), Case("llvm -opt-level=1"))) for s in seeds}
    return {s: how for s, how in found.items() if how}


def only_now(monkeypatch, kind, seeds, plant):
    """How many of the seeds fail with the plant and do not without."""
    before = noticed(kind, seeds)
    with monkeypatch.context() as m:
        plant(m)
        after = noticed(kind, seeds)
    return len(after.keys() - before.keys())


def test_integers_notice_wrong_code(monkeypatch):
    assert only_now(monkeypatch, integers, range(20),
                    lambda m: m.setitem(arithmetic._INTEGER_COMPARE, "lt", "sle")) >= 2


def test_integers_notice_a_wrong_interpreter(monkeypatch):
    assert only_now(monkeypatch, integers, range(20), lambda m: m.setitem(
        support.FUNCTIONS, "shift_right", lambda a, b, bits: a >> b if 0 <= b < bits else 0)) >= 1


def test_guards_notice_wrong_code(monkeypatch):
    assert only_now(monkeypatch, guards, range(20, 26),
                    lambda m: m.setitem(arithmetic._INTEGER_COMPARE, "lt", "sle")) >= 1


@pytest.mark.parametrize("kind", (blocks, bindings))
def test_blocks_notice_missing_checks_of_legality(kind):
    with errors.unchecked():
        found = noticed(kind, range(25))
    assert len(found) >= 5


def test_gathers_notice_an_error_that_is_not_raised(monkeypatch):
    def silent(m):
        m.setattr(faults, "record_fault", lambda *args: None)
        m.setattr(faults, "_outside",
                  lambda fn: f"define internal void @{fn.name}__outside(ptr, i64, i64) {{ ret void }}")
    assert only_now(monkeypatch, gathers, range(12), silent) >= 2


def test_sizes_notice_a_reduction_of_nothing(monkeypatch):
    plain = sizes.evaluate

    def wrong(s, made, call):
        out = plain(s, made, call)
        return out + 1 if s.kind == "sum" and not made[s.sources[0]].size else out
    assert only_now(monkeypatch, sizes, range(24), lambda m: m.setattr(sizes, "evaluate", wrong)) >= 1


# the references ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", scalars.INTEGERS)
def test_the_meaning_of_operators_is_that_of_exact_integers(dtype):
    low, high = scalars.limits(dtype)
    width = scalars.bits(dtype)
    some = np.array([low, low + 1, high, high - 1, 0, 1, 2, 3, 7, width - 1, width, max(low, -1), max(low, -2)], dtype)
    a, b = (x.ravel() for x in np.meshgrid(some, some))

    def truncdiv(x, y):
        return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    exact = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
             "floordiv": lambda x, y: x // y if y else 0, "floormod": lambda x, y: x % y if y else 0,
             "truncdiv": truncdiv, "truncmod": lambda x, y: x - y * truncdiv(x, y) if y else 0,
             "shl": lambda x, y: x << y if 0 <= y < width else 0,
             "shr": lambda x, y: x >> y if 0 <= y < width else -(x < 0)}
    for op, meaning in exact.items():
        e = Scalar(op, dtype, (name("a", dtype), name("b", dtype)))
        want = [scalars.wrapped(meaning(int(x), int(y)), dtype) for x, y in zip(a, b)]
        assert scalars.evaluate(e, {"a": a, "b": b}).tolist() == want, op


def test_floats_become_integers_by_saturation():
    x = np.array([np.nan, np.inf, -np.inf, 127.9, -128.9, 300.0, -0.5])
    e = Scalar("cast", "int8", (name("x", "float64"),))
    assert scalars.evaluate(e, {"x": x}).tolist() == [0, 127, -128, 127, -128, 127, 0]


def test_an_index_outside_of_a_table_has_no_reference():
    p = gathers.Program(0, "loop", 2, False, {"I": np.array([0, 3], "int8"), "A": np.arange(3, dtype="int32")})
    p.outputs["o"] = gathers.Output("gather", (gathers.Index("plain", "I", 3),), "A")
    assert p.want() is None
    p.data["I"][1] = 2
    assert p.want()["o"].tolist() == [0, 2]


def test_differences_name_the_element():
    one, other = np.array([1.0, np.nan, 0.0]), np.array([1.0, np.nan, -0.0])
    assert not array_differences({"x": one}, {"x": other})
    assert "element [1]" in array_differences({"x": one}, {"x": np.array([1.0, 2.0, 0.0])})["x"]


# making programs smaller ---------------------------------------------------------------------------------------------
def test_an_integer_program_shrinks_to_the_wrong_operation():
    class Kind:
        """Fails where an output contains a product."""
        smaller = staticmethod(integers.smaller)

        @staticmethod
        def check(p, case):
            def products(e):
                return e.op == "mul" or any(map(products, e.args))
            if any(map(products, p.outputs.values())):
                raise Wrong("native: o: wrong")
    x = name("x0", "int32")
    p = integers.Program(0, "vector", 8, 0, "int32", {"x0": np.zeros(8, "int32"), "x1": np.zeros(8, "int8")})
    p.outputs = {"o0": x, "o1": Scalar("add", "int32", (Scalar("mul", "int32", (x, x)), const(3, "int32")))}
    small, how = shrink(Kind, p, "llvm")
    assert how == "wrong: ['native']"
    assert list(small.outputs) == ["o1"] and small.outputs["o1"].op == "mul" and list(small.data) in ([], ["x0"])


def test_a_check_that_crashes_or_hangs_is_told_apart(monkeypatch):
    import os
    import time
    assert outcome_apart(lambda: os._exit(3)) == "died"
    assert outcome_apart(lambda: None) == ""
    monkeypatch.setattr("fuzz.kinds.shrink.LIMIT", 0.2)
    assert outcome_apart(lambda: time.sleep(5)) == "too slow"


@pytest.mark.parametrize("seed", (170002245, 170002809))
def test_lanes_that_are_checked_twice_build(seed):
    """The number of the first lane outside is found anew where it is needed, behind each check."""
    report = check_seed("schedules", seed)
    assert report.kind == "ok", report.detail
