"""Working on a function of a module, removed handles, postprocessors, and traces as data."""
from __future__ import annotations

import json

import pytest

from tests.schedule.core_support import check_replay, matmul, matmul_relu, scale
from tests.schedule.test_loops import loops_of, refused
from tilewright.schedule import Schedule, Trace
from tilewright.support.errors import ScheduleError
from tilewright.tir.equal import structural_equal
from tilewright.tir.stmt import IRModule


def module():
    return IRModule({"first": matmul(), "second": matmul_relu()})


def test_names_mean_blocks_of_the_function_that_is_worked_on():
    sch = Schedule(module())
    sch.work_on("second")
    block = sch.get_block("C")
    assert block.func == "second" and [b.name for b in sch.get_blocks()] == ["C", "D"]
    with sch.enter("first"):
        assert sch.get_block("C").func == "first" and sch.working_on == "first"
        sch.unroll(sch.get_loops("C")[0])
    assert sch.working_on == "second" and len(sch.get_loops("D")) == 2
    with pytest.raises(ScheduleError, match="function second has no block 'Q'"):
        sch.get_block("Q")
    assert "T.unroll" in str(sch.mod["first"]) and "T.unroll" not in str(sch.mod["second"])


def test_enter_and_exit_nest_and_end_with_what_was_before():
    sch = Schedule(module())
    sch.enter("second")
    sch.enter("first")
    assert sch.working_on == "first"
    sch.exit()
    assert sch.working_on == "second" and sch.copy().working_on == "second"
    sch.exit()
    assert sch.working_on is None
    with pytest.raises(ScheduleError, match="exit without enter"):
        sch.exit()
    with pytest.raises(ScheduleError), sch.enter("first"):
        sch.get_block("D")
    assert sch.working_on is None


def test_the_trace_of_a_module_says_which_function_it_means():
    sch = Schedule(module())
    with sch.enter("second"):
        sch.parallel(sch.get_loops("C")[0])
    with sch.enter("first"):
        sch.get_consumers("C")
        sch.unroll(sch.get_loops("C")[1])
    short = sch.trace.simplified()
    assert len(short) < len(sch.trace)
    for trace in (sch.trace, short, Trace.from_json(json.loads(json.dumps(short.as_json())))):
        other = Schedule(module())
        trace.apply_to_schedule(other)
        assert all(structural_equal(other.mod[n], sch.mod[n]) for n in ("first", "second"))


def test_in_a_module_only_names_of_blocks_become_handles_in_the_trace():
    sch, again = Schedule(module()), Schedule(module())
    sch.work_on("second")
    sch.cache_read("C", 0, "local")
    sch.trace.apply_to_schedule(again)
    assert str(again) == str(sch) and "storage_scope='local'" in str(sch.trace)


def test_a_removed_handle_is_refused_and_an_equal_one_is_not():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    i, _, _ = sch.get_loops(block)
    sch.remove_rv(i)
    assert "was removed by remove_rv" in refused("i was removed", sch.unroll, i)
    with pytest.raises(ScheduleError, match="removed"):
        sch.copy().get(i)
    again = sch.get_loops(block)[0]
    sch.unroll(again)
    assert "T.unroll" in str(sch)
    check_replay(sch, matmul())


def test_what_consumed_a_loop_is_what_happened_after_a_return():
    sch = Schedule(matmul())
    i, j, _ = sch.get_loops("C")
    before = sch.snapshot()
    sch.split(i, [None, 2])
    sch.restore(before)
    sch.fuse(i, j)
    for loop in (i, j):
        refused("does not exist any more: fuse consumed it", sch.unroll, loop)


def test_postprocessors_can_be_left_out():
    sch = Schedule(matmul())
    i, j, _ = sch.get_loops("C")
    sch.split(i, [None, 2])
    sch.enter_postproc()
    sch.unroll(j)
    assert "  sch.enter_postproc()" in str(sch.trace)
    check_replay(sch, matmul())
    for trace in (sch.trace.simplified(remove_postproc=True), sch.trace.before_postproc(),
                  Trace.from_json(sch.trace.as_json(remove_postproc=True))):
        other = Schedule(matmul())
        trace.apply_to_schedule(other)
        assert loops_of(other, "C")[0] == "i_0:2" and "unroll" not in str(other)
    other = Schedule(matmul())
    sch.trace.apply_to_schedule(other, remove_postproc=True)
    assert "unroll" not in str(other)


def test_simplified_traces_keep_what_is_used():
    sch = Schedule(matmul(), seed=1)
    block = sch.get_block("C")
    sch.get_producers(block)
    loops = sch.get_loops(block)
    sch.sample_perfect_tile(loops[1], 2)
    used = sch.sample_perfect_tile(loops[0], 2)
    sch.get_blocks()
    sch.split(loops[0], used)
    short = sch.trace.simplified()
    assert [inst.primitive for inst in short] == ["get_block", "get_loops", "sample_perfect_tile", "split"]
    assert len(short.decisions) == 1
    other = Schedule(matmul())
    short.apply_to_schedule(other)
    assert structural_equal(other.func, sch.func)


def test_traces_grow_and_shrink():
    sch = Schedule(scale())
    loop = sch.get_loops("B")[0]
    sch.unroll(loop)
    trace = sch.trace.copy()
    last = trace.pop()
    assert last is not None and last.kind.name == "unroll" and last.inputs == [loop] and len(trace) == 1
    trace.append(last)
    assert str(trace) == str(sch.trace) and trace.defines(loop)
    assert Trace().pop() is None and len(sch.trace) == 2


def test_stored_traces_come_back_as_traces():
    sch = Schedule(matmul(), seed=4)
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    tile = sch.sample_perfect_tile(i, 2)
    sch.split(i, tile)
    sch.reorder(r, j)
    sch.annotate(block, "notes", {"tile": [tile[0], 3]})
    data = json.loads(json.dumps(sch.trace.as_json()))
    again = Trace.from_json(data)
    assert str(again) == str(sch.trace) and again.as_json() == data
    assert str(again.simplified()) == str(sch.trace.simplified())
    other = Schedule(matmul())
    Trace.apply_json_to_schedule(data, other)
    assert structural_equal(other.func, sch.func) and str(other.trace) == str(sch.trace)
    scope: dict = {}
    exec(str(sch.trace), scope)
    python = Schedule(matmul())
    scope["apply_trace"](python)
    assert structural_equal(python.func, sch.func)


@pytest.mark.parametrize("shares_loops", [False, True])
def test_a_handle_of_another_schedule_is_refused(shares_loops):
    """Also where its function has a block of that name, or the very same loop."""
    sch = Schedule(matmul_relu())
    stranger = Schedule(sch.mod if shares_loops else matmul_relu())
    loops, before = sch.get_loops("C"), str(sch)
    block = stranger.get_block("C")
    loop = stranger.get_loops(block)[0]
    number = stranger.sample_categorical([1, 2], [0.5, 0.5])
    entries = len(sch.trace)
    for call, arguments in [
        (sch.get_loops, [block]), (sch.parallel, [loop]), (sch.get, [block]), (sch.get, [loop]), (sch.get, [number]),
        (sch.split, [loops[0], [None, number]]), (sch.reorder, [loops[1], loop]), (sch.compute_inline, [block]),
    ]:
        refused("belongs to another schedule(.|\n)*hint: ask this schedule for it", call, *arguments)
    assert str(sch) == before and len(sch.trace) == entries


def test_a_copy_takes_the_handles_given_before_and_no_others():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    twin = sch.copy()
    third = twin.copy()
    outer, inner = twin.split(i, [None, 4])
    late = sch.split(j, [None, 4])
    for each in (sch, twin, third):
        each.get_loops(block)
        each.unroll(k)
    refused("loop i_1 belongs to another schedule", sch.unroll, inner)
    refused("loop j_1 belongs to another schedule", twin.unroll, late[1])
    refused("loop i_1 belongs to another schedule", third.unroll, inner)
    twin.unroll(inner)
    sch.unroll(late[1])
    assert twin.copy().get(inner).kind == "unroll"


def test_a_replayed_trace_gives_handles_of_the_schedule_it_runs_on():
    sch, other = Schedule(scale()), Schedule(scale())
    loops = sch.split(sch.get_loops("B")[0], [None, 4])
    mine = sch.trace.apply_to_schedule(other)
    other.vectorize(mine[1])
    refused("belongs to another schedule", other.parallel, loops[0])
