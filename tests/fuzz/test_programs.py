"""100 random programs under random schedules; `python -m tests.fuzz.run` checks thousands."""
from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from tilewright.schedule import Schedule
from tilewright.tir import interp
from tilewright.tir.node import rewrite
from tilewright.tir.stmt import Store

from . import check, generate, schedules, values
from .kinds import common
from .minimise import minimise
from .run import run_programs

PROGRAMS = 100
COMMON = ("split", "fuse", "reorder", "parallel", "vectorize", "unroll", "bind", "compute_at", "reverse_compute_at",
          "compute_inline", "reverse_compute_inline", "cache_read", "cache_write", "set_scope", "transform_layout",
          "decompose_reduction", "annotate")           # primitives that a run of so many programs cannot miss


@pytest.fixture(scope="module")
def summary():
    return run_programs([("schedules", s) for s in range(PROGRAMS)], jobs=2, limit=60)


def test_random_programs_agree_with_numpy_and_the_interpreter(summary):
    assert not summary.failures, "\n\n".join(
        f"seed {r['seed']}: {r['kind']}: {r['detail']}\n{check.describe(r['seed'])}" for r in summary.failures)


def test_the_slowest_build_is_named_and_a_slow_one_is_a_failure(summary, monkeypatch):
    spent, _, seed = summary.slowest_build
    assert 0 < spent < common.BUILD_LIMIT and f"schedules {seed}" in summary.text()
    assert seed in [r["seed"] for r in summary.reports if r["seconds"].get("build") == spent]
    monkeypatch.setattr(common, "BUILD_LIMIT", 0.0)
    native = next(r["seed"] for r in summary.reports if r["native"])
    assert check.check_seed(native).kind == "slow build"


def test_programs_and_schedules_are_varied(summary):
    assert summary.share("reduction") >= 0.5
    assert summary.share("ragged") >= 0.3
    assert summary.share("symbolic") >= 0.2
    assert summary.median >= 6
    assert summary.share("native") >= 0.6
    missing = [p for p in COMMON if summary.accepted[p] < PROGRAMS // 10]
    assert not missing


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_a_seed_gives_the_same_program_and_schedule_each_time(seed):
    texts = set()
    for _ in range(2):
        sch = Schedule(generate.program(seed).function())
        schedules.random_actions(random.Random(seed), sch, Counter(), Counter())
        texts.add(f"{sch}\n{sch.trace}")
    assert len(texts) == 1


def _spoiled(func):
    """func with the first store of its body adding one to what it stores."""
    done = []

    def change(node):
        if isinstance(node, Store) and not done:
            done.append(node)
            return node.replace(value=node.value + 1 if node.value.dtype != "bool" else ~node.value)
        return None
    return func.with_body(rewrite(func.body, change))


def test_a_wrong_function_is_noticed():
    noticed = 0
    for seed in range(40):
        program = generate.program(seed)
        try:
            noticed += bool(check.interpret(program, _spoiled(program.function())))
        except interp.InterpreterError:
            noticed += 1
    assert noticed >= 28


def test_the_bound_holds_for_sums_in_any_order():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (5, 300)).astype("float32")
    v = values.reduce("sum", values.of_array("float32", x, 60), 1, None, None)
    for _ in range(5):
        order = rng.permutation(300)
        total = np.zeros(5, "float32")
        for k in order:
            total += x[:, k]
        assert np.all(np.abs(total - v.x) <= v.tolerance())
    assert np.all(v.tolerance() <= 301 * values.EPS["float32"] * np.abs(x).sum(1, dtype="float64") * 1.01)


def test_small_integers_in_floats_leave_no_tolerance():
    x = np.arange(12, dtype="float16").reshape(3, 4)
    v = values.reduce("sum", values.of_array("float16", x, 0), 1, None, None)
    assert v.exact and not np.any(v.tolerance()) and v.x.tolist() == [6, 22, 38]


def test_infinite_terms_keep_the_bound_of_the_others():
    x = np.array([[1.5, 2.25], [3.0, 0.5]], "float32")
    empty, _ = values.argmax(values.of_array("float32", x, 2), 1, np.array([[True, True], [False, False]]))
    assert empty.x.tolist() == [2.25, -np.inf]
    gone = values.function("rsqrt", values.binary("add", values.absolute(empty), values.constant("float32", 1)))
    assert gone.x[1] == 0 and np.all(np.isfinite(gone.tolerance())) and gone.tolerance()[0] > 0
    with pytest.raises(ValueError, match="bounds nothing"):
        values.Value("float32", x, np.array([1.0, np.inf]))


def test_inputs_that_nothing_reads_leave_the_data_of_the_others():
    program = generate.program(400037634)
    assert [i.name for i in program.inputs] == ["A0", "A2", "A3"]
    for run in range(len(program.bindings)):
        program.data(run)                                        # the reference refuses data that were not tried


def test_minimise_keeps_what_is_needed():
    assert minimise(list("abcdefgh"), lambda some: "c" in some and "g" in some) == ["c", "g"]
