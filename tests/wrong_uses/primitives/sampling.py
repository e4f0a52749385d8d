"""Wrong uses of sampling instructions, traces, and what a schedule keeps beside its functions."""
from __future__ import annotations

import tilewright as tw
from tilewright import te

from ..programs import blocks, chain
from ..wrong_use import Section, watch

SECTION = Section("Sampling, traces and functions of a module")
wrong = SECTION.wrong


def nest():
    """sch, block B, its loops i and j of 16 iterations, watched"""
    sch = blocks(chain)
    block = sch.get_block("B")
    loops = sch.get_loops(block)
    return watch(sch), block, *loops


@wrong("`sample_categorical(4, ..)`", r"candidates is 4, not a list of integers")
def categories_number():
    nest()[0].sample_categorical(4, [1.0])


@wrong("`sample_categorical([1, 2], [1.0])`", r"2 candidates, 1 probabilities")
def categories_short():
    nest()[0].sample_categorical([1, 2], [1.0])


@wrong("`sample_categorical([1, 2], [0, 0])`", r"probs is \[0, 0\], not a list of weights")
def categories_impossible():
    nest()[0].sample_categorical([1, 2], [0, 0])


@wrong("`sample_categorical(.., decision=2)` of two candidates", r"decision is 2, not a position among 2 candidates")
def categories_decision():
    nest()[0].sample_categorical([1, 2], [0.5, 0.5], decision=2)


@wrong("`sample_perfect_tile(loop, n=0)`", r"n is 0, not a positive integer")
def tile_none():
    sch, _, i, _ = nest()
    sch.sample_perfect_tile(i, 0)


@wrong("`sample_perfect_tile(loop, n=1)` of a loop longer than the bound",
       r"one factor is 16, more than max_innermost_factor=8")
def tile_too_long():
    sch, _, i, _ = nest()
    sch.sample_perfect_tile(i, 1, 8)


@wrong("`sample_perfect_tile(.., max_innermost_factor=0)`", r"max_innermost_factor is 0, not a positive integer or -1")
def tile_bound():
    sch, _, i, _ = nest()
    sch.sample_perfect_tile(i, 2, 0)


@wrong("`sample_perfect_tile(.., decision=[3, 4])` of 16 iterations",
       r"the factors \[3, 4\] cover 12 iterations, loop i has 16")
def tile_decision():
    sch, _, i, _ = nest()
    sch.sample_perfect_tile(i, 2, decision=[3, 4])


@wrong("`sample_perfect_tile(.., n=2, decision=[16])`", r"decision is \[16\], not a list of 2 positive integers")
def tile_decision_short():
    sch, _, i, _ = nest()
    sch.sample_perfect_tile(i, 2, decision=[16])


@wrong("`sample_perfect_tile` of a loop of symbolic extent", r"the extent n of loop i is no positive constant")
def tile_symbolic():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    sch = watch(tw.Schedule(te.create_prim_func([a, b])))
    sch.sample_perfect_tile(sch.get_loops("B")[0], 2)


@wrong("`sample_partitioned_tile(.., partition_pos=3)` of 3 factors", r"partition_pos is 3, not a position among 3")
def partitioned_position():
    sch, _, i, _ = nest()
    sch.sample_partitioned_tile(i, 3, 3, 4)


@wrong("`sample_partitioned_tile(.., innerpart_factor=5)` of 16 iterations",
       r"innerpart_factor is 5, which does not divide 16")
def partitioned_factor():
    sch, _, i, _ = nest()
    sch.sample_partitioned_tile(i, 3, 1, 5)


@wrong("`sample_partitioned_tile(loop, n=0)`", r"n is 0, not a positive integer")
def partitioned_none():
    sch, _, i, _ = nest()
    sch.sample_partitioned_tile(i, 0)


@wrong("`sample_partitioned_tile(.., decision=..)` whose inner part does not fit",
       r"the inner part of \[8, 2, 1\] is 2, no multiple of 4")
def partitioned_decision():
    sch, _, i, _ = nest()
    sch.sample_partitioned_tile(i, 3, 1, 4, decision=[8, 2, 1])


@wrong("`sample_compute_location(.., decision=9)`", r"decision is 9; block B has the places -2, -1 and 0 to 1")
def location_decision():
    sch, block, _, _ = nest()
    sch.sample_compute_location(block, decision=9)


@wrong("`compute_at` at a place that another schedule sampled", r"place root belongs to another schedule")
def location_of_another():
    sch, block, _, _ = nest()
    place = blocks(chain).sample_compute_location("B", decision=-1)
    sch.compute_at(block, place)


@wrong("a handle after `remove_rv`", r"split\(loop=i, factors=\[None, 4\]\): loop i was removed by remove_rv")
def removed_handle():
    sch, _, i, _ = nest()
    sch.remove_rv(i)
    sch.split(i, [None, 4])


@wrong("`sch.get` of a handle after `remove_rv`", r"loop i was removed by remove_rv")
def removed_get():
    sch, _, i, _ = nest()
    sch.remove_rv(i)
    sch.get(i)


@wrong("`remove_rv(3)`", r"remove_rv takes a handle, not 3")
def remove_number():
    nest()[0].remove_rv(3)


@wrong("`work_on(\"other\")` of a function that is not there", r"the module has no kernel 'other'")
def work_elsewhere():
    nest()[0].work_on("other")


@wrong("`enter(\"other\")` of a function that is not there", r"the module has no kernel 'other'")
def enter_elsewhere():
    nest()[0].enter("other")


@wrong("`exit()` without `enter`", r"exit without enter")
def exit_alone():
    nest()[0].exit()


@wrong("`Schedule(func, seed=\"x\")`", r"seed is 'x', not an integer")
def seed_text():
    tw.Schedule(blocks(chain).func, seed="x")


@wrong("`trace.with_decision(inst, ..)` of a split", r"split is not a sampling instruction of the trace")
def decision_of_split():
    sch, _, i, _ = nest()
    sch.split(i, [None, 4])
    watch(sch).trace.with_decision(sch.trace.insts[-1], [4, 4])


@wrong("a stored trace of an unknown format", r"the trace has format 1, this version reads 2")
def stored_format():
    tw.schedule.replay([1, []], blocks(chain))


@wrong("a stored trace that was cut off", r"a stored trace is \[format, \[entry, ...\]\], not \[2\]")
def trace_cut():
    tw.schedule.replay([2], blocks(chain))


@wrong("a stored entry that was cut off", r"an entry of a trace is \[primitive, arguments, outputs\], not \['split'\]")
def trace_entry_cut():
    tw.schedule.replay([2, [["split"]]], blocks(chain))


@wrong("a stored list of loops that is a number", r"the argument loops of fuse is 3, not a list")
def trace_rest():
    tw.schedule.replay([2, [["fuse", {"loops": 3}, "l0"]]], blocks(chain))


@wrong("a stored argument that is no handle", r"the trace has an argument \{\}, which is neither a handle nor a dict")
def trace_argument():
    tw.schedule.replay([2, [["split", {"loop": {}}, []]]], blocks(chain))


@wrong("a stored trace with a primitive that there is not",
       r"the trace uses the primitive 'warp', which does not exist")
def stored_primitive():
    tw.schedule.replay([2, [["warp", {}, []]]], blocks(chain))


@wrong("`as_json` of a trace whose first entry was taken out by hand",
       r"the trace takes loop i, which no entry before gave")
def cut_trace():
    sch = blocks()
    sch.parallel(sch.get_loops("C")[0])
    del sch.trace.entries[0]
    sch.trace.as_json()


@wrong("a stored trace that uses a handle before it is defined", r"the trace uses 'l1' before it is defined")
def stored_order():
    tw.schedule.replay([2, [["unroll", {"loop": {"$": "l1"}}, []]]], blocks(chain))


@wrong("a stored trace with a wrong name of a handle", r"gives a handle the name 'x1', which starts with neither")
def stored_name():
    tw.schedule.replay([2, [["get_block", {"name": "B"}, "x1"]]], blocks(chain))


@wrong("a trace that keeps what JSON does not know", r"the argument .* of type \w+ cannot be stored in a trace")
def stored_expression():
    sch, _, i, _ = nest()
    entry = tw.schedule.Entry("annotate", {"block_or_loop": i, "ann_key": "k", "ann_val": te.var("n")})
    trace = sch.trace.copy()
    trace.append(entry)
    trace.as_json()


@wrong("`enter_postproc()` twice", r"the postprocessors have begun already")
def postproc_twice():
    sch, _, _, _ = nest()
    sch.enter_postproc()
    watch(sch).enter_postproc()


@wrong("`sch.trace.apply_to_schedule(func)`", r"a trace is applied to a Schedule, not to an object of type PrimFunc")
def trace_on_function():
    sch = blocks(chain)
    sch.get_loops("B")
    sch.trace.apply_to_schedule(sch.func)


@wrong("`v < 4` of a sampled integer",
       r"sampled 2 may be another integer when the trace is replayed: it takes \+, -, \*")
def sampled_compared():
    assert blocks(chain).sample_categorical([2], [1]) < 4


@wrong("`v * 1.5` of a sampled integer", r"1\.5 stands beside a sampled integer and is no integer")
def sampled_times_float():
    assert blocks(chain).sample_categorical([2], [1]) * 1.5


@wrong("`8 // (v - 2)` of a sampled 2", r"8 // 0 of a sampled integer divides by zero")
def sampled_by_zero():
    assert 8 // (blocks(chain).sample_categorical([2], [1]) - 2)
