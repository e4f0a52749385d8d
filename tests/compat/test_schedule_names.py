"""TVM's modules of schedules: states, traces, checks, types of arguments."""
from __future__ import annotations

from typing import Any, Optional, Union

import numpy as np
import pytest

from tilewright.schedule import Schedule
from tilewright.script import tir as T


@T.prim_func
def matmul(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(16, 16):
        with T.block("init"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = 0.0
        for k in range(16):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]


def test_the_layout_of_an_argument_changes_the_signature(tvm):
    for sch in (tvm.tir.Schedule(matmul), tvm.tir.Schedule(matmul).copy()):
        sch.transform_layout("update", "B", lambda i, j: [i // 4, j, i % 4])
        tvm.ir.assert_structural_equal(tvm.tir.schedule.testing.verify_trace_roundtrip(sch, matmul).mod, sch.mod)
        a, b, c = *np.random.rand(2, 16, 16).astype("float32"), np.empty((16, 16), "float32")
        tvm.build(sch.mod)(a, np.ascontiguousarray(b.reshape(4, 4, 16).transpose(0, 2, 1)), c)
        np.testing.assert_allclose(c, a @ b.T, rtol=1e-5)
    with pytest.raises(tvm.tir.ScheduleError, match="A is an argument"):
        sch.transform_layout("update", "A", lambda i, j: [j, i], of_arguments=False)


def test_a_schedule_is_of_the_class_that_programs_name(tvm):
    sch = tvm.tir.Schedule(matmul, debug_mask="all", error_render_level="detail", seed=None)
    assert isinstance(sch, tvm.tir.Schedule) and isinstance(sch, Schedule)
    with pytest.raises(tvm.tir.schedule.schedule.ScheduleError):
        sch.compute_inline("update")
    block = sch.get(sch.get_block("update"))
    assert block.same_as(matmul.body.block.body.body.body[1].body.block)
    assert sch.get_sref(sch.get_block("update")).same_as(sch.state.get_sref(block))
    assert tvm.tir.schedule.analysis.is_output_block(sch, sch.get_block("init"))


def test_a_statement_of_a_state_is_replaced(tvm):
    state = tvm.tir.ScheduleState(matmul, debug_mask="all")
    root = state.mod["main"].body.block
    target = tvm.tir.Block(iter_vars=[], reads=[], writes=[], name_hint="target", body=root.body, init=None,
                           alloc_buffers=None, match_buffers=None, annotations=None)
    sref = state.get_sref(root)
    state.replace(sref, target)
    assert state.mod["main"].body.block is target and isinstance(state, tvm.tir.schedule.state.ScheduleState)
    assert isinstance(sref, tvm.tir.StmtSRef)


def test_a_trace_goes_round(tvm):
    testing = tvm.tir.schedule.testing
    sch = tvm.tir.Schedule(matmul)
    sch.split(sch.get_loops("init")[0], [2, 8])
    again = testing.verify_trace_roundtrip(sch, mod=matmul)
    testing.assert_structural_equal_ignore_global_symbol(again.mod["main"], sch.mod["main"].with_attr(
        "global_symbol", "other"))
    with pytest.raises(tvm.TVMError):
        testing.assert_structural_equal_ignore_global_symbol(sch.mod["main"], matmul)


def test_arguments_are_of_the_annotated_types(tvm):
    @tvm.tir.schedule._type_checker.type_checked
    def f(x: int, y: Optional[list[str]] = None, z: Union[int, tuple[int, str]] = 1,      # noqa: UP045
          table: dict[str, float] | None = None, any_of: Any = None) -> str:
        return "fine"

    assert f(1) == f(1, ["a"]) == f(1, None, (1, "a")) == f(1, table={"a": 0.5}, any_of=f) == "fine"
    for wrong in ({"x": 1.0}, {"x": 1, "y": [2]}, {"x": 1, "y": "a"}, {"x": 1, "z": "x"}, {"x": 1, "z": (1, 2)},
                  {"x": 1, "table": {"a": "b"}}):
        with pytest.raises(TypeError, match="is expected to be"):
            f(**wrong)


def test_a_function_returns_by_name(tvm):
    x = tvm.tir.Var("x", "int32")
    func = tvm.tir.PrimFunc([x], tvm.tir.Evaluate(tvm.tir.ret(x + 1)))
    assert tvm.build(func, target="llvm")(np.int32(4)) == 5
