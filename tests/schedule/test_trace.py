"""Traces, copies, modules of several functions, and primitives made of primitives."""
from __future__ import annotations

import json

import pytest

from tests.schedule.core_support import check_replay, matmul, matmul_relu, scale
from tests.schedule.test_loops import loops_of, refused
from tilewright.schedule import PRIMITIVES, LoopRV, Schedule, primitive, replay
from tilewright.schedule.trace import Trace
from tilewright.support.errors import ArgumentError, ScheduleError
from tilewright.tir.equal import structural_equal
from tilewright.tir.stmt import NOP, IRModule


def test_the_trace_prints_as_python():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    j0, j1 = sch.split(j, factors=[None, 8])
    sch.reorder(i, j0, r, j1)
    sch.fuse(i, j0, name="o")
    sch.decompose_reduction(block, r)
    assert str(sch.trace) == """
def apply_trace(sch) -> None:
  b0 = sch.get_block(name='C')
  l1, l2, l3 = sch.get_loops(block=b0)
  l4, l5 = sch.split(loop=l2, factors=[None, 8])
  sch.reorder(l1, l4, l3, l5)
  l6 = sch.fuse(l1, l4, name='o')
  b7 = sch.decompose_reduction(block=b0, loop=l3)
""".strip()
    check_replay(sch, matmul())


def test_one_argument_of_several_that_may_be_given_is_a_list_of_one():
    sch = Schedule(scale())
    loop, = sch.get_loops("B")
    sch.reorder(loop)
    sch.unroll(sch.fuse(loop))
    assert "sch.reorder(l0)\n" in str(sch.trace) and "sch.fuse(l0)\n" in str(sch.trace)
    check_replay(sch, scale())


def test_a_trace_replays_on_another_function_of_the_same_structure():
    sch = Schedule(matmul(4, 6, 5))
    i, j, r = sch.get_loops("C")
    sch.split(i, [None, 4])
    sch.reorder(r, j)
    other = Schedule(matmul(9, 3, 2))
    sch.trace.apply_to_schedule(other)
    assert loops_of(other, "C") == ["i_0:3", "i_1:4", "r:2", "j:3"]


def test_a_trace_does_not_replay_on_another_structure():
    sch = Schedule(matmul())
    sch.get_loops("C")
    data = json.loads(json.dumps(sch.trace.as_json()))
    with pytest.raises(ScheduleError, match="no block C in function scale"):
        replay(data, Schedule(scale()))
    sch = Schedule(scale())
    sch.get_loops("B")
    renamed = json.loads(json.dumps(sch.trace.as_json()).replace('"B"', '"C"'))
    with pytest.raises(ScheduleError, match=r"get_loops gave 3 handle\(s\) here, the trace has 1"):
        replay(renamed, Schedule(matmul()))
    with pytest.raises(ScheduleError, match="the primitive 'warp', which does not exist"):
        replay([2, [["warp", {}, []]]], Schedule(scale()))
    with pytest.raises(ScheduleError, match="format 7"):
        replay([7, []], Schedule(scale()))


def test_handles_made_from_nodes_are_introduced_in_the_trace():
    func = matmul()
    sch = Schedule(func)
    loops = sch.loops_above("C")
    sch.split(LoopRV(loops[1].loop_var, "main"), [None, 2])
    assert "b0 = sch.get_block(name='C', func_name='main')" in str(sch.trace)
    check_replay(sch, func)


def test_copies_are_independent():
    sch = Schedule(matmul())
    i, j, r = sch.get_loops("C")
    other = sch.copy()
    other.split(i, [None, 2])
    sch.parallel(i)
    assert loops_of(sch, "C") == ["i:4", "j:6", "r:5"] and loops_of(other, "C")[:2] == ["i_0:2", "i_1:2"]
    assert "parallel" not in str(other.trace) and "split" not in str(sch.trace)
    refused("split consumed it", other.unroll, i)


def test_modules_of_several_functions():
    mod = IRModule({"first": matmul(), "second": matmul_relu()})
    sch = Schedule(mod)
    block = sch.get_block("D")
    assert block.func == "second"
    i, j = sch.get_loops(block)
    c = sch.get_block("C", func_name="first")
    sch.parallel(sch.get_loops(c)[0])
    sch.fuse(i, j)
    assert sch.func is sch.mod["second"]
    assert sch.mod["first"] is not mod["first"] and "T.parallel" not in str(sch.mod["second"])
    replayed = Schedule(mod)
    sch.trace.apply_to_schedule(replayed)
    for name in ("first", "second"):
        assert structural_equal(replayed.mod[name], sch.mod[name])
    refused("the module has no kernel 'third'", sch.get_block, "C", "third")


def test_blocks_of_the_same_name_need_a_function():
    sch = Schedule(IRModule({"main": scale(), "first": matmul(), "second": matmul_relu()}))
    text = refused("functions first, second have a block C", sch.get_block, "C")
    assert "pass func_name" in text


def test_queries():
    sch = Schedule(matmul_relu())
    assert [b.name for b in sch.get_blocks()] == ["C", "D"]
    c, d = sch.get_blocks()
    assert sch.get_consumers(c) == [d] and sch.get_producers(d) == [c] and sch.get_producers(c) == []
    assert sch.get_block("root").name == "root" and sch.get_loops("root") == []
    refused("it is called|its blocks are root, C, D", sch.get_block, "Q")
    refused("by its name, not by 3", sch.get_block, 3)
    refused("expected a block, got loop i", sch.get_loops, sch.get_loops("C")[0])


def test_only_functions_in_block_form_are_scheduled():
    func = scale()
    with pytest.raises(ScheduleError, match="scale is not in block form"):
        Schedule(func.with_body(NOP))
    with pytest.raises(ArgumentError, match="not int"):
        Schedule(3)
    with pytest.raises(ScheduleError, match="has no kernel"):
        Schedule(IRModule({}))


def test_a_primitive_made_of_primitives_is_one_entry_and_rolls_back_whole():
    @primitive
    def tile_and_mark(sch, loop, factor):
        outer, inner = sch.split(loop, [None, factor])
        sch.vectorize(inner)
        sch.parallel(outer)
        return [outer, inner]
    try:
        sch = Schedule(matmul())
        i, j, r = sch.get_loops("C")
        before = sch.func
        text = refused("cannot vectorize loop r_1: it carries the reduction axis", sch.tile_and_mark, r, 2)
        assert text.startswith("tile_and_mark(loop=r, factor=2): ")
        assert sch.func is before and len(sch.trace) == 1
        sch.tile_and_mark(i, 2)
        assert [entry.primitive for entry in sch.trace] == ["get_loops", "tile_and_mark"]
        check_replay(sch, matmul())
    finally:
        del PRIMITIVES["tile_and_mark"], Schedule.tile_and_mark


def test_every_primitive_is_documented():
    for name, fn in PRIMITIVES.items():
        assert fn.__doc__, name
        assert callable(getattr(Schedule, name))


def test_a_replay_that_fails_half_way_leaves_the_schedule_as_it_was():
    sch = Schedule(matmul(), seed=3)
    i, j, k = sch.get_loops("C")
    sch.split(i, sch.sample_perfect_tile(i, 2))
    sch.parallel(j)
    sch.unroll(k)
    sch.decompose_reduction("C", k)
    other = Schedule(matmul(), seed=5)
    _, inner, _ = other.get_loops("C")
    other.vectorize(inner)
    before, length, state = str(other), len(other.trace), other.rng.getstate()
    undecided = Trace([e.decided(None) if e.kind.samples else e for e in sch.trace])
    with pytest.raises(ScheduleError):
        undecided.apply_to_schedule(other)
    assert (str(other), len(other.trace), other.rng.getstate()) == (before, length, state)
    other.parallel(other.get_loops("C")[0])                   # and its handles still mean what they meant
    check_replay(other, matmul())


def test_a_trace_is_applied_to_schedules_only():
    sch = Schedule(scale())
    sch.get_loops("B")
    for apply in (sch.trace.apply_to_schedule, lambda to: Trace.apply_json_to_schedule(sch.trace.as_json(), to)):
        for to in (scale(), IRModule({"main": scale()}), None, "main"):
            with pytest.raises(ArgumentError, match=r"applied to a Schedule, not to (.|\n)*pass tw\.Schedule\(func\)"):
                apply(to)


def test_a_name_that_another_function_has_is_told():
    sch = Schedule(IRModule({"add": scale(), "mul": matmul()}))
    text = refused("no block C in function scale", sch.get_loops, "C")
    assert "function mul has one" in text and "work_on('mul')" in text and "get_block('C', 'mul')" in text
    assert "its blocks are root, B" in refused("no block Q in function scale", sch.get_loops, "Q")
    assert len(sch.get_loops(sch.get_block("C", "mul"))) == 3
    sch = Schedule(sch.mod)
    sch.work_on("mul")
    assert len(sch.get_loops("C")) == 3
