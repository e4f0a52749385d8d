"""Scopes of memory: kinds, and tags behind them, wherever a scope is given."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, tir
from tilewright.script import from_source
from tilewright.support.errors import IRError, ScheduleError, StructuralError
from tilewright.tir.buffer import SCOPES, scope_kind
from tilewright.tir.verify.gpu import GPULimits, verify_gpu

TAGGED = ["global.A_reg", "local.L0A", "global:tag", "local_TB", "shared.dyn", "wmma.matrix_a", "wmma.accumulator.x"]


@pytest.mark.parametrize("scope, kind", [
    *((k, k) for k in SCOPES), ("global.A_reg", "global"), ("global:tag", "global"), ("local_TB", "local"),
    ("shared.dyn", "shared"), ("wmma.matrix_a.left", "wmma.matrix_a"), ("wmma", ""), ("globals", ""), ("local.", ""),
    ("register", ""), (3, ""), ("", "")])
def test_the_kind_of_a_scope(scope, kind):
    assert scope_kind(scope) == kind


def test_no_scope_is_global_and_an_unknown_one_is_refused():
    assert tir.decl_buffer((4,), "float32", "A", scope="").scope == "global"
    with pytest.raises(IRError, match="buffer A: 'globals' is not a storage scope\n\nhint: a scope is one of global, "):
        tir.decl_buffer((4,), "float32", "A", scope="globals")


@pytest.mark.parametrize("scope", TAGGED)
def test_a_stage_in_any_scope_computes_the_same(scope):
    a = te.placeholder((16,), name="A")
    b = te.compute((16,), lambda i: a[i] + 1, name="B")
    c = te.compute((16,), lambda i: b[i] * 2, name="C")
    s = te.create_schedule(c.op)
    s[b].set_scope(scope)
    copy = s.cache_read(a, scope, [b])
    s[copy].compute_at(s[b], b.op.axis[0])
    written = s.cache_write(c, scope)
    s[written].compute_at(s[c], c.op.axis[0])
    sch = s.replay([a, c])
    assert {x.scope for x in sch.root.block.alloc_buffers} == {scope}
    x, out = np.arange(16, dtype="float32"), np.empty(16, "float32")
    tw.build(s, [a, c])(x, out)
    np.testing.assert_array_equal(out, (x + 1) * 2)


@pytest.mark.parametrize("scope", TAGGED)
def test_a_script_with_a_scope_prints_and_parses_again(scope):
    func = from_source(f"""
@T.prim_func
def f(A: T.Buffer((16, 16), "float32", scope="{scope}"), B: T.Buffer((16,), "float32")):
    C = T.alloc_buffer((16,), "float32", scope="{scope}")
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi, vi]
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = C[vi]
""")
    text = str(func)
    assert text.count(f'scope="{scope}"') == 2
    assert tir.structural_equal(func, from_source(text))
    sch = tw.Schedule(func)
    sch.set_scope("C", 0, "warp")
    sch.set_scope("C", 0, scope)
    assert tir.structural_equal(func, sch.func)
    with pytest.raises(ScheduleError, match="'warps' is not a storage scope"):
        sch.set_scope("C", 0, "warps")
    x, out = np.arange(256, dtype="float32").reshape(16, 16), np.empty(16, "float32")
    tw.build(func)(x, out)
    np.testing.assert_array_equal(out, x.diagonal())


@pytest.mark.parametrize("scope, counts", [("local.A", True), ("local_TB", True), ("global.A", False)])
def test_the_limits_of_a_gpu_count_tagged_memory(scope, counts):
    func = from_source(f"""
@T.prim_func
def f(A: T.Buffer((64,), "float32")):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("A"):
            vi = T.axis.spatial(64, i)
            C = T.alloc_buffer((64,), "float32", scope="{scope}")
            C[vi] = 1.0
            A[vi] = C[vi]
""")
    limits = GPULimits(max_local_memory_per_block=64)
    if counts:
        with pytest.raises(StructuralError, match="local memory, with C"):
            verify_gpu(func, limits)
    else:
        verify_gpu(func, limits)
