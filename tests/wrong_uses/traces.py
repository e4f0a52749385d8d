"""Wrong uses of traces, sampled integers, and what a schedule keeps beside its functions."""
from __future__ import annotations

import tilewright as tw
from tilewright import te

from .programs import blocks, chain
from .schedule_programs import chain_nest
from .wrong_use import Section, watch

SECTION = Section("Traces, sampled integers and functions of a module")
wrong = SECTION.wrong


@wrong("`sch.get` of a handle after `remove_rv`", r"loop i was removed by remove_rv")
def removed_get():
    sch, _, i, _ = chain_nest()
    sch.remove_rv(i)
    sch.get(i)


@wrong("`remove_rv(3)`", r"remove_rv takes a handle, not 3")
def remove_number():
    chain_nest()[0].remove_rv(3)


@wrong("`work_on(\"other\")` of a function that is not there", r"the module has no kernel 'other'")
def work_elsewhere():
    chain_nest()[0].work_on("other")


@wrong("`enter(\"other\")` of a function that is not there", r"the module has no kernel 'other'")
def enter_elsewhere():
    chain_nest()[0].enter("other")


@wrong("`exit()` without `enter`", r"exit without enter")
def exit_alone():
    chain_nest()[0].exit()


@wrong("`Schedule(func, seed=\"x\")`", r"seed is 'x', not an integer")
def seed_text():
    tw.Schedule(blocks(chain).func, seed="x")


@wrong("`trace.with_decision(inst, ..)` of a split", r"split is not a sampling instruction of the trace")
def decision_of_split():
    sch, _, i, _ = chain_nest()
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
    sch, _, i, _ = chain_nest()
    entry = tw.schedule.Entry("annotate", {"block_or_loop": i, "ann_key": "k", "ann_val": te.var("n")})
    trace = sch.trace.copy()
    trace.append(entry)
    trace.as_json()


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
