"""Sampling instructions: decisions in the trace, uniform factorisations, places that work."""
from __future__ import annotations

import itertools
import json
import math
from collections import Counter

import numpy as np
import pytest

from tests.schedule.core_support import check, check_replay, matmul, matmul_relu, scale
from tests.schedule.test_loops import loops_of
from tests.schedule.test_partition import chain, check_chain
from tilewright.schedule import Schedule
from tilewright.schedule.trace import Trace
from tilewright.script import from_source
from tilewright.support.errors import ScheduleError


def test_samples_are_factors_and_stand_in_the_trace():
    func = matmul(8, 6, 5)
    sch = Schedule(func, seed=3)
    block = sch.get_block("C")
    i, j, _ = sch.get_loops(block)
    outer, inner = sch.sample_perfect_tile(i, n=2, max_innermost_factor=4)
    assert sch.get(outer) * sch.get(inner) == 8 and sch.get(inner) <= 4
    sch.split(i, [outer, inner])
    width = sch.sample_categorical([1, 2, 3], [0.2, 0.3, 0.5])
    sch.split(j, [None, width])
    sch.annotate(block, "widths", [width, 1])
    assert str(sch.trace).splitlines()[1:] == [
        "  b0 = sch.get_block(name='C')",
        "  l1, l2, l3 = sch.get_loops(block=b0)",
        f"  v4, v5 = sch.sample_perfect_tile(loop=l1, n=2, max_innermost_factor=4, "
        f"decision=[{sch.get(outer)}, {sch.get(inner)}])",
        "  l6, l7 = sch.split(loop=l1, factors=[v4, v5])",
        f"  v8 = sch.sample_categorical(candidates=[1, 2, 3], probs=[0.2, 0.3, 0.5], decision={sch.get(width) - 1})",
        "  l9, l10 = sch.split(loop=l2, factors=[None, v8])",
        "  sch.annotate(block_or_loop=b0, ann_key='widths', ann_val=[v8, 1])"]
    assert sch.get(block).annotations["widths"] == [sch.get(width), 1]
    check(sch, func, np.matmul, (8, 5), (5, 6), size=(8, 6))


def test_a_changed_decision_replays_with_it():
    func = matmul(8, 6, 5)
    sch = Schedule(func)
    i = sch.get_loops("C")[0]
    sch.split(i, sch.sample_perfect_tile(i, n=2, decision=[4, 2]))
    inst = next(inst for inst in sch.trace.insts if inst.kind.samples)
    assert sch.trace.decisions == {inst: [4, 2]} and sch.trace.get_decision(inst) == [4, 2]
    changed = sch.trace.with_decision(inst, [1, 8], remove_postproc=True)
    other = Schedule(func)
    changed.apply_to_schedule(other)
    assert loops_of(other, "C")[:2] == ["i_0:1", "i_1:8"] and loops_of(sch, "C")[:2] == ["i_0:4", "i_1:2"]
    check_replay(other, func)
    provided = Schedule(func)
    sch.trace.apply_to_schedule(provided, decision_provider=lambda inst, inputs, attrs, decision: decision[::-1])
    assert loops_of(provided, "C")[:2] == ["i_0:2", "i_1:4"]


def test_a_decision_that_is_taken_away_is_drawn_again():
    func = scale(64)
    sch = Schedule(func)
    loop = sch.get_loops("B")[0]
    sch.split(loop, sch.sample_perfect_tile(loop, n=3))
    free = sch.trace.with_decision(sch.trace.insts[1], None)
    seen = set()
    for seed in range(12):
        other = Schedule(func, seed=seed)
        free.apply_to_schedule(other)
        seen.add(tuple(loops_of(other, "B")))
        assert other.trace.insts[1].decision is not None
    assert len(seen) > 3


@pytest.mark.parametrize("extent, n, most", [(12, 2, -1), (36, 3, 4), (64, 3, 16), (7, 2, 5), (1, 3, 16), (30, 1, -1)])
def test_perfect_tiles_are_uniform(extent, n, most):
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    allowed = [t for t in itertools.product(divisors, repeat=n)
               if math.prod(t) == extent and (most == -1 or t[-1] <= most)]
    sch = Schedule(scale(extent), seed=1)
    loop = sch.get_loops("B")[0]
    draws = 60 * len(allowed)
    counts = Counter(tuple(sch.get(v) for v in sch.sample_perfect_tile(loop, n, most)) for _ in range(draws))
    assert set(counts) == set(allowed)
    assert _chi_squared(counts, draws, len(allowed)) < 4.5


@pytest.mark.parametrize("n, position, inner", [(2, 0, 1), (3, 1, 4), (3, 2, 6), (2, 1, 24), (4, 2, 3)])
def test_partitioned_tiles_are_uniform(n, position, inner):
    divisors = [d for d in range(1, 25) if 24 % d == 0]
    allowed = [t for t in itertools.product(divisors, repeat=n)
               if math.prod(t) == 24 and math.prod(t[position:]) % inner == 0]
    sch = Schedule(scale(24), seed=2)
    loop = sch.get_loops("B")[0]
    draws = 40 * len(allowed)
    counts = Counter(tuple(sch.get(v) for v in sch.sample_partitioned_tile(loop, n, position, inner))
                     for _ in range(draws))
    assert set(counts) == set(allowed)
    assert _chi_squared(counts, draws, len(allowed)) < 4.5


def _chi_squared(counts, draws, cells):
    """Standard deviations by which chi squared is off its mean, cells - 1."""
    mean = draws / cells
    chi = sum((c - mean) ** 2 / mean for c in counts.values())
    return abs(chi - (cells - 1)) / math.sqrt(2 * max(cells - 1, 1))


def test_categories_follow_their_weights():
    sch = Schedule(scale())
    counts = Counter(sch.get(sch.sample_categorical([2, 4, 8], [1, 0, 3])) for _ in range(800))
    assert set(counts) == {2, 8} and 150 < counts[2] < 250


def test_every_place_of_a_computation():
    func = matmul_relu()
    seen = Counter()
    for seed in range(40):
        sch = Schedule(func, seed=seed)
        place = sch.sample_compute_location("C")
        decision = sch.trace.insts[-1].decision
        seen[decision] += 1
        sch.compute_at("C", place)
        depth = sum(a is b for a, b in zip(sch.loops_above("C"), sch.loops_above("D")))
        assert depth == decision + 1
        if seen[decision] == 1:
            check(sch, func, lambda a, b: np.maximum(a @ b, 0), (4, 5), (5, 6), size=(4, 6))
    assert set(seen) == {-1, 0, 1}


def test_a_place_may_be_inlined():
    func = chain()
    sch = Schedule(func)
    sch.compute_at("B", sch.sample_compute_location("B", decision=-2))
    assert [b.name for b in sch.get_blocks()] == ["C"]
    check_chain(sch, func)
    places = {Schedule(func, seed=s).sample_compute_location("B").place for s in range(20)}
    assert places == {"", "root", "inlined"}


def test_a_block_that_updates_in_place_goes_to_those_that_read_the_result():
    sch = Schedule(from_source('''@T.prim_func
def f(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]
    for i in range(8):
        with T.block("twice"):
            v = T.axis.spatial(8, i)
            B[v] = B[v] * 2
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[v] + 1
'''))
    place = sch.sample_compute_location("twice", decision=0)
    assert sch.get(place) is sch.get(sch.get_loops("C")[0])


def test_a_changed_place_moves_only_what_was_sampled():
    func = matmul_relu()
    sch = Schedule(func)
    i, j = sch.get_loops("D")
    place = sch.sample_compute_location("C", decision=1)
    sch.compute_at("C", place)
    sch.annotate(j, "note", 1)
    sample = next(inst for inst in sch.trace.insts if inst.kind.samples)
    other = Schedule(func)
    sch.trace.with_decision(sample, 0).apply_to_schedule(other)
    noted = [loop.loop_var.name for loop in other.loops_above("D") if "note" in loop.annotations]
    assert noted == ["j"] and sum(a is b for a, b in zip(other.loops_above("C"), other.loops_above("D"))) == 1


def test_random_states():
    func = scale(4096)
    def draws(sch, count=6):
        loop = sch.get_loops("B")[0]
        return [[sch.get(v) for v in sch.sample_perfect_tile(loop, 3)] for _ in range(count)]
    first = Schedule(func, seed=5)
    assert draws(first) == draws(Schedule(func, seed=5)) != draws(Schedule(func, seed=6))
    copy = first.copy()
    assert draws(copy) == draws(first)
    assert first.fork_seed() == copy.fork_seed() != first.fork_seed()
    first.seed(5)
    assert draws(first) == draws(Schedule(func, seed=5))


def test_arithmetic_of_sampled_integers_is_replayed():
    func = matmul(8, 6, 5)
    sch = Schedule(func)
    block = sch.get_block("C")
    i, j, _ = sch.get_loops(block)
    width = sch.sample_categorical([1, 2, 4], [1, 1, 1], decision=1)
    sch.split(i, [None, width * 2])
    sch.split(j, [(width + 4) // width, None])
    sch.annotate(block, "note", [1 + width % 4 - 7, {"twice": 2 * (10 - width)}])
    assert sch.get(width * 2) == 4 and sch.get(9 // width) == 4 and sch.get(9 % width) == 1
    assert str(sch.trace).splitlines()[4:] == [
        "  l5, l6 = sch.split(loop=l1, factors=[None, v4 * 2])",
        "  l7, l8 = sch.split(loop=l2, factors=[(v4 + 4) // v4, None])",
        "  sch.annotate(block_or_loop=b0, ann_key='note', ann_val=[(1 + (v4 % 4)) - 7, {'twice': 2 * (10 - v4)}])"]
    assert loops_of(sch, "C") == ["i_0:2", "i_1:4", "j_0:3", "j_1:2", "r:5"]
    assert sch.get(block).annotations["note"] == [-4, {"twice": 16}]
    check(sch, func, np.matmul, (8, 5), (5, 6), size=(8, 6))
    inst = next(inst for inst in sch.trace.insts if inst.kind.samples)
    assert inst in sch.trace.simplified().insts
    for trace in (sch.trace, Trace.from_json(json.loads(json.dumps(sch.trace.as_json())))):
        other, changed = Schedule(func), next(inst for inst in trace.insts if inst.kind.samples)
        trace.with_decision(changed, 2).apply_to_schedule(other)
        assert loops_of(other, "C") == ["i_0:1", "i_1:8", "j_0:2", "j_1:3", "r:5"]
        assert other.get(other.get_block("C")).annotations["note"] == [-6, {"twice": 12}]


def test_a_sampled_integer_is_no_number_of_python():
    sch = Schedule(scale(64))
    v = sch.sample_categorical([4], [1])
    extent = sch.get(sch.get_loops("B")[0]).extent
    wrong = [lambda: v < 3, lambda: v / 2, lambda: 2 ** v, lambda: int(v), lambda: -v, lambda: range(v),
             lambda: v * 1.5, lambda: v + "1", lambda: v + None, lambda: max(v, 3), lambda: extent // v]
    for use in wrong:
        with pytest.raises(ScheduleError, match=r"sch\.get\(v\)"):
            use()
    with pytest.raises(ScheduleError, match="8 // 0 of a sampled integer divides by zero"):
        8 // (v - 4)
    loop = sch.get_loops("B")[0]
    assert sch.get(v * extent) == 256
    sch.split(loop, [None, v - 2])
    other = Schedule(scale(64))
    with pytest.raises(ScheduleError, match="belongs to another schedule"):
        other.split(other.get_loops("B")[0], [None, v - 2])
    for wrong_op in (["/", 1, 2], ["*", 1], [["*"], 1, 2], 3):
        with pytest.raises(ScheduleError, match="neither a handle nor a dict"):
            Trace.from_json([2, [["get_block", {"name": {"$op": wrong_op}}, "b0"]]])
