"""TVM's references to statements, traces made by hand, and the primitives that stage parts of a buffer."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import tir
from tilewright.compat.instructions import Instruction, InstructionKind
from tilewright.schedule import BlockRV, ExprRV, LoopRV, Schedule, Trace
from tilewright.schedule.srefs import DepKind, ScheduleState
from tilewright.script import tir as T
from tilewright.support.errors import ArgumentError, ScheduleError
from tilewright.tir import interp

from .compute_support import chain


@T.prim_func
def matmul(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("init"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.float32(0)
        for k in range(8):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]


@T.prim_func
def read_first(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[v] + 1.0
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * 2.0


def block(state: ScheduleState, name: str):
    found = next(n for n in tir.walk(state.mod["main"].body) if isinstance(n, tir.Block) and n.name == name)
    return state.get_sref(found)


def test_references_of_a_schedule_are_what_handles_stand_for():
    sch = Schedule(chain())
    handle = sch.get_block("B")
    sref = sch.get_sref(handle)
    assert sref.stmt is sch.get(handle) and sref.same_as(sch.get_sref(sref.stmt))
    loop, = sch.get_loops("B")
    assert sref.parent.stmt is sch.get(loop) and sref.parent.parent.stmt.name == "root"
    sch.split(loop, [None, 4])
    assert sch.state.mod["main"] is sch.func
    assert str(sch.get_sref(sch.get_loops("B")[0])) == "reference to loop i_0"
    with pytest.raises(ArgumentError, match="no loop or block of the module as it stands"):
        sch.get_sref(sref.parent.stmt)


def test_what_blocks_depend_on():
    state = ScheduleState(matmul, debug_mask="all")
    init, update = block(state, "init"), block(state, "update")
    scope = state.get_block_scope(block(state, "root"))
    assert [d.kind for d in scope.get_deps_by_src(init)] == [DepKind.RAW, DepKind.WAW]
    assert all(d.dst.same_as(update) for d in scope.get_deps_by_src(init))
    assert scope.get_deps_by_dst(update) == scope.get_deps_by_src(init) and scope.get_deps_by_dst(init) == []
    state = ScheduleState(read_first)
    (found,) = state.get_block_scope(block(state, "root")).get_deps_by_src(block(state, "C"))
    assert found.kind is DepKind.WAR and found.dst is block(state, "B")
    with pytest.raises(ArgumentError, match="is no block"):
        state.get_block_scope(block(state, "C").parent)


def test_a_statement_is_replaced_and_references_follow():
    state = ScheduleState(read_first)
    first, second, root = block(state, "C"), block(state, "B"), block(state, "root")
    loop, old = first.parent, first.stmt
    new = old.replace(body=second.stmt.body.replace(buffer=old.body.buffer))
    state.replace(first, new, {old: new})
    assert first.stmt is new and block(state, "C") is first and block(state, "B") is second
    assert loop.stmt.body.stmts[0].block is new and loop.parent is root
    assert "C[v] = A[v] * T.float32(2)" in str(state.mod["main"]).replace("v_1", "v")
    state.replace(loop, tir.Evaluate(tir.const(0, "int32")))
    assert first.stmt is None and loop.stmt is None and root.stmt.body.value.value == 0
    with pytest.raises(ArgumentError, match="refers to nothing"):
        state.replace(loop, new)
    with pytest.raises(ArgumentError, match="cannot be replaced by a Evaluate"):
        state.replace(root, tir.Evaluate(tir.const(0, "int32")))
    with pytest.raises(ArgumentError, match="takes a PrimFunc or an IRModule"):
        ScheduleState(3)


def test_traces_made_by_hand():
    kind = InstructionKind.get
    b0, b1, l1, l2, l3, v = BlockRV(), BlockRV(), LoopRV(), LoopRV(), LoopRV(), ExprRV()
    trace = Trace([
        Instruction(kind("GetBlock"), [], ["B", "main"], [b0]),
        Instruction(kind("SampleCategorical"), [], [[4, 2], [0.5, 0.5]], [v]),
        Instruction(kind("GetLoops"), [b0], [], [l1]),
        Instruction(kind("Split"), [l1, None, v], [True, False], [l2, l3]),
        Instruction(kind("Annotate"), [b0, "x"], ["key"], []),
        Instruction(kind("EnterPostproc"), [], [], []),
        Instruction(kind("GetBlock"), [], ["C", "main"], [b1]),
    ], {})
    trace = Trace(trace.insts, {trace.insts[1]: 1})
    assert trace.get_decision(trace.insts[1]) == 1 and trace.insts[0].same_as(trace.insts[0])
    sch, again = Schedule(chain()), Schedule(chain())
    trace.apply_to_schedule(sch, remove_postproc=False, decision_provider=None)
    Trace.apply_json_to_schedule(json_obj=trace.as_json(), sch=again)
    assert str(sch) == str(again) and sch.get(sch.get_loops("B")[1]).extent.value == 2
    assert sch.get(sch.get_block("B")).annotations == {"key": "x"}
    assert trace.as_python()[:2] == ["b0 = sch.get_block(name='B', func_name='main')",
                                     "v1 = sch.sample_categorical(candidates=[4, 2], probs=[0.5, 0.5], decision=1)"]
    assert BlockRV() != BlockRV() and kind("GetBlock").is_pure and not kind("Split").is_pure
    with pytest.raises(ArgumentError, match="'Nonsense' is no kind of instruction"):
        kind("Nonsense")
    with pytest.raises(ArgumentError, match="Parallel takes 1"):
        Instruction(kind("Parallel"), [l1, l2], [], [])


def run(sch: Schedule, *arrays):
    for call in (tw.build(sch.func), lambda *x: interp.run(sch.func, *x)):
        call(*arrays)
        yield arrays[-1]
        arrays[-1][...] = 0


def test_parts_of_buffers_are_staged_together():
    a, b = np.random.default_rng(1).random((2, 8, 8), "float32")
    sch = Schedule(matmul, seed=None, debug_mask="all", error_render_level="fast")
    sch.decompose = None
    i, j = sch.get_loops("init")
    outer, _ = sch.split(i, [None, 4])
    copy = sch.read_at(outer, "update", 2, "local")
    assert sch.get(copy).annotations == {"auto_copy": True} and str(sch.get(copy).reads[0]) == "B[0:8, 0:8]"
    for c in run(sch, a, b, np.zeros((8, 8), "float32")):
        np.testing.assert_allclose(c, a @ b.T, rtol=1e-5)


def test_a_part_of_one_element_is_staged_as_well():
    @T.prim_func
    def last(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(1):
            with T.block("B"):
                vi = T.axis.spatial(1, i)
                B[7] = A[7] + vi + 1
    sch = Schedule(last)
    (i,) = sch.get_loops("B")
    sch.read_at(i, "B", 0, "local")
    sch.write_at(i, "B", 0, "local")
    a, got = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    interp.run(sch.func, a, got)
    assert got.tolist() == [0] * 7 + [8]


def test_the_cache_of_a_write_serves_consumers():
    sch = Schedule(chain())
    sch.cache_write("B", 0, "local", consumer_blocks=["C"])
    assert "C[vi] = B_local[vi] - 1" in str(sch)
    a = np.arange(20, dtype="int32")
    for c in run(sch, a, np.zeros(20, "int32")):
        assert (c == a * 3 - 1).all()


def test_a_buffer_in_another_dtype():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = A[v] * 3.0
        for i in range(8):
            with T.block("C"):
                v = T.axis.spatial(8, i)
                C[v] = B[v] + 1.0

    sch = Schedule(f)
    sch.unsafe_set_dtype("B", 0, "float16")
    a = np.linspace(0, 1, 8, dtype="float32")
    for c in run(sch, a, np.zeros(8, "float32")):
        assert (c == (a * 3).astype("float16").astype("float32") + 1).all()


def test_a_split_without_a_condition():
    sch = Schedule(chain())
    loop, = sch.get_loops("B")
    with pytest.raises(ScheduleError, match="the factors do not divide the extent 20 of loop i"):
        sch.split(loop, [None, 8], disable_predication=True)
    sch.split(loop, [None, 5], disable_predication=True)
    assert sch.can_decompose_padding("B", sch.get_loops("B")[0]) is False
    sch.blockize(loop=sch.get_loops("B")[1])
    assert sch.get_child_blocks("root")[0].name == "B_o"


def test_kinds_of_dependences_have_the_numbers_of_tvm():
    assert [(k.name, k.value) for k in DepKind] == [("RAW", 0), ("WAW", 1), ("WAR", 2), ("OPAQUE", 3)]
