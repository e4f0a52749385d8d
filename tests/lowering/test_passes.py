"""Each pass by itself: what it makes of small programs."""
from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from scheduled_programs import block, function, tiled_matmul

import tilewright as tw
from tilewright import te, topi
from tilewright.driver.kernels import flat_kernel
from tilewright.lowering import PASSES, SIMPLE_PASSES, lower
from tilewright.lowering.carried_buffers import lift_carried_buffers
from tilewright.lowering.compact_buffers import compact_buffers
from tilewright.lowering.flatten_buffers import flatten_buffers
from tilewright.lowering.hoist_guards import hoist_guards
from tilewright.lowering.lower_blocks import lower_blocks
from tilewright.lowering.lower_match_buffer import lower_match_buffer
from tilewright.lowering.partition_loops import partition_loops
from tilewright.lowering.plan_buffer_allocation import plan_buffer_allocation
from tilewright.lowering.reduction_init import lower_reduction_init
from tilewright.lowering.relax_guards import PADDED, relax_private_guards
from tilewright.lowering.simplify import simplify
from tilewright.lowering.storage import hoist_allocations
from tilewright.lowering.thread_loops import unify_thread_loops
from tilewright.lowering.unroll import unroll
from tilewright.lowering.widen_indices import widen_indices
from tilewright.rules import contraction
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.support.errors import LowerError
from tilewright.support.target import target
from tilewright.te.prim_func import create_prim_func
from tilewright.tir.arithmetic import all_of, ceildiv, if_then_else, intrinsic, minimum
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer, decl_buffer
from tilewright.tir.conversion import cast, convert
from tilewright.tir.expr import Broadcast, Expr, IntImm, Ramp, Var
from tilewright.tir.interp import run
from tilewright.tir.iter_var import Range
from tilewright.tir.node import statements
from tilewright.tir.stmt import (
    Allocate,
    Block,
    BlockRealize,
    Evaluate,
    For,
    IfThenElse,
    PrimFunc,
    Stmt,
    Store,
    loop,
    seq,
)
from tilewright.tir.verify import verify


def allocations(func: PrimFunc) -> dict[str, tuple[object, ...]]:
    return {s.buffer.name: tuple(getattr(d, "value", d) for d in s.buffer.shape)
            for s in statements(func.body) if isinstance(s, Allocate)}


def loops_around(func: PrimFunc, name: str) -> list[str]:
    """Names of the loops outside of the allocation of a buffer."""
    def find(stmt: Stmt, path: list[str]) -> list[str] | None:
        if isinstance(stmt, Allocate) and stmt.buffer.name == name:
            return path
        inside = [*path, stmt.loop_var.name] if isinstance(stmt, For) else path
        for child in [getattr(stmt, "body", None), *getattr(stmt, "stmts", ()), getattr(stmt, "then_case", None)]:
            found = find(child, inside) if isinstance(child, Stmt) else None
            if found is not None:
                return found
        return None
    found = find(func.body, [])
    assert found is not None, name
    return found


def loops_form(func: PrimFunc) -> PrimFunc:
    return lower_blocks(lower_reduction_init(plan_buffer_allocation(func)))


def plain(buffers: list[Buffer], body: Stmt) -> PrimFunc:
    """A function without blocks."""
    func = function("f", buffers, body)
    return func.replace(body=func.body.block.body)  # type: ignore[attr-defined]


def stencil(n: int, tile: int) -> PrimFunc:
    """C[i] = B[i] + B[i + 2] with B[j] = 2 * A[j] computed per tile of C, over the tile + 2 elements it needs."""
    A, B, C = (decl_buffer((s,), name=x) for s, x in ((n + 2, "A"), (n + 2, "B"), (n, "C")))
    o, j, i = Var("o"), Var("j"), Var("i")
    make = loop(j, tile + 2, block("B", [n + 2], [o * tile + j], lambda v: Store(B, A[v] * 2.0, (v,)),
                                   where=o * tile + j < n + 2))
    use = loop(i, tile, block("C", [n], [o * tile + i], lambda v: Store(C, B[v] + B[v + 2], (v,)),
                              where=o * tile + i < n))
    return function("stencil", (A, C), loop(o, ceildiv(convert(n), tile), seq([make, use])), (B,))


# ------------------------------------------------------------------------------------------------ allocation

def test_an_allocation_moves_to_the_lowest_common_ancestor() -> None:
    func = loops_form(stencil(12, 4))
    assert loops_around(func, "B") == ["o"]


def test_an_unused_allocation_vanishes() -> None:
    func = stencil(12, 4)
    root = func.body.block  # type: ignore[attr-defined]
    spare = decl_buffer((4,), name="spare")
    body = func.body.replace(block=root.replace(alloc_buffers=(*root.alloc_buffers, spare)))
    assert "spare" not in str(plan_buffer_allocation(func.with_body(body)))


def test_an_accumulator_stays_outside_of_its_reduction_loop() -> None:
    A, L, C = decl_buffer((4, 6), name="A"), decl_buffer((4,), name="L"), decl_buffer((4, 6), name="C")
    i, k = Var("i"), Var("k")
    add = block("L", [4, 6], [i, k], lambda vi, vk: Store(L, L[vi] + A[vi, vk], (vi,)), "SR",
                init=lambda vi, vk: Store(L, convert(0.0), (vi,)))
    use = block("C", [4, 6], [i, k], lambda vi, vk: Store(C, L[vi] * 1.0, (vi, vk)))
    func = function("prefix", (A, C), loop(i, 4, loop(k, 6, seq([add, use]))), (L,))
    assert loops_around(loops_form(func), "L") == ["i"]
    a, c = np.random.default_rng(0).random((4, 6), "float32"), np.zeros((4, 6), "float32")
    run(lower(func), a, c)
    np.testing.assert_allclose(c, np.cumsum(a, 1), rtol=1e-6)


def test_a_value_of_the_previous_iteration_stays_alive() -> None:
    A, B, C = (decl_buffer((6,), name=x) for x in "ABC")
    t = Var("t")
    keep = block("B", [6], [t], lambda v: Store(B, A[v] * 2.0, (v,)))
    use = block("C", [6], [t], lambda v: Store(C, if_then_else(v > 0, B[v - 1], 0.0), (v,)))
    func = function("shift", (A, C), loop(t, 6, seq([keep, use])), (B,))
    assert loops_around(lift_carried_buffers(loops_form(func)), "B") == []
    a, c = np.arange(1, 7, dtype="float32"), np.zeros(6, "float32")
    run(lower(func), a, c)
    np.testing.assert_array_equal(c, [0, *(a[:-1] * 2)])


def test_values_written_first_are_not_carried() -> None:
    assert loops_around(lift_carried_buffers(loops_form(stencil(12, 4))), "B") == ["o"]
    func = lower_blocks(lower_reduction_init(plan_buffer_allocation(tiled_matmul(16, 64, 8, parallel=False))))
    assert loops_around(lift_carried_buffers(func), "C_local") == ["io", "jo"]


@pytest.mark.parametrize("n", [12, 13])
def test_compaction_keeps_the_region_that_a_tile_touches(n: int) -> None:
    func = compact_buffers(loops_form(stencil(n, 4)))
    assert allocations(func) == {"B": (6,)}
    a, c = np.random.default_rng(0).random(n + 2).astype("float32"), np.zeros(n, "float32")
    run(lower(stencil(n, 4)), a, c)
    np.testing.assert_allclose(c, a[:-2] * 2 + a[2:] * 2, rtol=1e-6)


def test_compaction_knows_the_lanes_of_a_vector() -> None:
    o, S, B = Var("o"), decl_buffer((64,), name="S"), decl_buffer((16,), name="B")
    lanes = (Ramp(o * 4, IntImm(1), 4),)
    use = seq([Store(S, Broadcast(convert(1.0), 4), lanes), Store(B, Load(S, lanes), lanes)])
    assert allocations(compact_buffers(plain([B], loop(o, 4, Allocate(S, use))))) == {"S": (4,)}


def test_compaction_makes_a_symbolic_buffer_constant() -> None:
    n = Var("n")
    A, B, C = (decl_buffer((n,), name=x) for x in "ABC")
    o, i, j = Var("o"), Var("i"), Var("j")
    make = loop(i, 32, block("B", [n], [o * 32 + i], lambda v: Store(B, A[v] * 2.0, (v,)), where=o * 32 + i < n))
    use = loop(j, 32, block("C", [n], [o * 32 + j], lambda v: Store(C, B[v] + 1.0, (v,)), where=o * 32 + j < n))
    func = function("f", (A, C), loop(o, ceildiv(n, 32), seq([make, use])), (B,))
    text = str(lower(func, simple_mode=True))
    assert "B = T.decl_buffer((32,))" in text and text.count("likely") == 2
    for size in (1, 31, 32, 70):
        a, c = np.arange(size, dtype="float32"), np.zeros(size, "float32")
        run(lower(func), a, c)
        np.testing.assert_array_equal(c, a * 2 + 1)


def test_a_large_buffer_does_not_grow() -> None:
    func = compact_buffers(loops_form(tiled_matmul(64, 64, 999)))
    assert allocations(func)["P"] == (2, 999, 32)


def test_an_index_of_which_its_type_is_known_alone_keeps_the_buffer() -> None:
    func = from_source("""
@T.prim_func
def f(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    C = T.match_buffer(c, (n,), "int32")
    B = T.alloc_buffer(((n + 3) // 4, 4), "int32")
    for i in range(5):
        with T.block("B"):
            v = T.axis.spatial(5, i)
            B[T.checked_index(v, n) // 4, T.checked_index(v, n) % 4] = A[T.checked_index(v, n)]
    for i in range(5):
        with T.block("C"):
            v = T.axis.spatial(5, i)
            C[T.checked_index(v, n)] = B[T.checked_index(v, n) // 4, T.checked_index(v, n) % 4] * 3
""")
    rows, columns = allocations(compact_buffers(loops_form(func)))["B"]
    assert (str(rows), columns) == ("(n + 3) // 4", 4)
    for size in (5, 6, 9):
        a, c = np.arange(1, size + 1, dtype="int32"), np.zeros(size, "int32")
        run(lower(func), a, c)
        np.testing.assert_array_equal(c, np.where(np.arange(size) < 5, a * 3, 0))


def test_heap_allocations_leave_serial_loops_only() -> None:
    def program(kind: str, size: object) -> PrimFunc:
        C, B = decl_buffer((8,), name="C"), decl_buffer((size,), name="B")
        i = Var("i")
        return plain([C], loop(i, 8, Allocate(B, seq([Store(B, convert(1.0), (i,)), Store(C, B[i], (i,))])), kind))
    assert loops_around(hoist_allocations(program("serial", 5000)), "B") == []
    assert loops_around(hoist_allocations(program("serial", 16)), "B") == ["i"]
    assert loops_around(hoist_allocations(program("parallel", 5000)), "B") == ["i"]


# ------------------------------------------------------------------------------------------------ blocks and buffers

def test_reduction_init_runs_at_the_first_step() -> None:
    A, B = te.placeholder((3, 4), name="A"), te.placeholder((4, 2), name="B")
    k = te.reduce_axis((0, 4), name="k")
    func = create_prim_func([A, B, te.compute((3, 2), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")])
    text = str(lower(func, simple_mode=True))
    assert "if k == 0:" in text and "with T.init" not in text


def test_unit_loops_vanish_and_proven_guards_too() -> None:
    C = decl_buffer((1, 8), name="C")
    i, j, q = Var("i"), Var("j"), Var("q")
    body = block("C", [1, 8], [i, j * 4 + q], lambda a, b: Store(C, convert(1.0), (a, b)),
                 where=all_of(i < 1, j * 4 + q < 8))
    func = function("f", (C,), loop(i, 1, loop(j, 2, loop(q, 4, body))))
    text = str(lower(func, simple_mode=True))
    assert "for i" not in text and "likely" not in text


def test_a_matched_region_becomes_its_source() -> None:
    A, C = decl_buffer((4, 8), name="A"), decl_buffer((4, 8), name="C")
    stride, offset = Var("s"), Var("o")
    view = decl_buffer((4,), name="row", strides=(stride,), elem_offset=offset)
    i, j = Var("i"), Var("j")
    source = BufferRegion(A, (Range(i, IntImm(1)), Range(IntImm(2), IntImm(4))))
    rows = loop(j, 4, Store(C, view[j] + 0.0, (i, j)))
    inner = Block("C", (), (), (), rows, match_buffers=(MatchBuffer(view, source),))
    realize = BlockRealize((), IntImm(1, "bool"), inner)
    func = lower_blocks(lower_match_buffer(function("f", (A, C), loop(i, 4, realize))))
    assert "C[i, j] = A[i, 2 + j]" in str(func)


def test_flat_accesses_use_strides_and_offset() -> None:
    n = Var("n")
    A = decl_buffer((4, n), name="A", strides=(n * 2, 2), elem_offset=3)
    C = decl_buffer((4, n), name="C")
    i, j = Var("i"), Var("j")
    body = block("C", [4, n], [i, j], lambda a, b: Store(C, A[a, b] + 1.0, (a, b)))
    func = lower(function("f", (A, C), loop(i, 4, loop(j, n, body))), simple_mode=True)
    verify(func, stage="flat")
    assert "C_1[n * i + j] = A_1[n * i * 2 + j * 2 + 3]" in str(func)
    A1 = next(s for s in statements(func.body) if isinstance(s, Store)).value.a.buffer  # type: ignore[attr-defined]
    assert A1.data is A.data and func.buffers[0] is A


# ------------------------------------------------------------------------------------------------ guards

def vector_add(n: Expr | int, factor: int, kind: str = "serial") -> PrimFunc:
    A, B = decl_buffer((n,), name="A"), decl_buffer((n,), name="B")
    o, i = Var("o"), Var("i")
    body = block("B", [n], [o * factor + i], lambda v: Store(B, A[v] + 1.0, (v,)), where=o * factor + i < n)
    return function("f", (A, B), loop(o, ceildiv(convert(n), factor), loop(i, factor, body), kind))


def test_a_serial_loop_is_split_where_its_guard_fails() -> None:
    text = str(lower(vector_add(100, 32)))
    assert "for o in range(3):" in text and "for i in range(4):" in text and "likely" not in text


def test_a_parallel_loop_branches() -> None:
    text = str(lower(vector_add(Var("n"), 32, "parallel")))
    assert text.count("T.parallel") == 1 and "else:" in text


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_partitioned_loops_compute_every_element(kind: str) -> None:
    func = lower(vector_add(Var("n"), 8, kind))
    for n in (0, 1, 7, 8, 9, 24):
        a, b = np.arange(n, dtype="float32"), np.zeros(n, "float32")
        run(func, a, b)
        np.testing.assert_array_equal(b, a + 1)


def test_a_loop_guarded_by_its_own_variable_gets_shorter() -> None:
    n, o, i = Var("n"), Var("o"), Var("i")
    B = decl_buffer((n,), name="B")
    body = IfThenElse(intrinsic("likely", o * 4 + i < n), Store(B, convert(1.0), (o * 4 + i,)))
    text = str(simplify(partition_loops(plain([B], loop(i, 4, loop(o, ceildiv(n, 4), body))))))
    assert "likely" not in text and "for o in range((n - i + 3) // 4):" in text


def test_a_guard_of_one_loop_is_split_off_there_whatever_is_inside() -> None:
    n, o, i, j = Var("n"), Var("o"), Var("i"), Var("j")
    B = decl_buffer((n, 4, 4), name="B")
    body = IfThenElse(intrinsic("likely", o < n), Store(B, convert(1.0), (o, i, j)))
    text = str(partition_loops(plain([B], loop(o, ceildiv(n, 4) * 4, loop(i, 4, loop(j, 4, body))))))
    assert "likely" not in text


@pytest.mark.parametrize("n", [1, 99, 100, 101, 300, 302, 397, 399, 400])
def test_a_tail_of_one_iteration_knows_which_of_its_guards_hold(n: int) -> None:
    B = decl_buffer((n,), name="B")
    s, o, i = Var("s"), Var("o"), Var("i")
    at = s * 100 + o * 4 + i
    body = IfThenElse(intrinsic("likely", at < n), Store(B, cast("float32", at), (at,)))
    func = partition_loops(plain([B], loop(s, 4, loop(o, 25, loop(i, 4, body, "unroll")))))
    assert n < 100 or "likely" not in str(simplify(unroll(func)))
    b = np.full(n, -1, "float32")
    run(func, b)
    np.testing.assert_array_equal(b, np.arange(n))


def test_a_loop_that_may_be_empty_teaches_nothing_to_the_code_after_it() -> None:
    B = decl_buffer((8,), name="B")
    o, i = Var("o"), Var("i")
    body = seq([loop(i, 2 - o * 2, Store(B, convert(1.0), (o * 4 + i,))), Store(B, convert(2.0), (o * 4 + 3,))])
    func = simplify(plain([B], loop(o, 2, body)))
    b = np.zeros(8, "float32")
    run(func, b)
    np.testing.assert_array_equal(b, [1, 1, 0, 2, 0, 0, 0, 2])


def test_invariant_guards_leave_the_loop() -> None:
    n = Var("n")
    B = decl_buffer((n,), name="B")
    o, i = Var("o"), Var("i")
    guarded = IfThenElse(intrinsic("likely", all_of(o * 4 < n, o * 4 + i < n)), Store(B, convert(1.0), (o * 4 + i,)))
    func = hoist_guards(plain([B], loop(o, ceildiv(n, 4), loop(i, 4, guarded))))
    lines = [line.strip() for line in str(func).splitlines()]
    assert lines.index("if T.likely(o * 4 < n):") < lines.index("for i in range(4):")


def test_stores_into_a_tile_lose_the_guard_of_its_readers() -> None:
    func = tiled_matmul(67, 70, 66)
    for p in PASSES:
        func = p.run(func)
        if p.name == "relax_private_guards":
            break
    text = str(func)
    assert "if T.likely" not in text.split("C_local[ii, ji] = T.float32(0)")[0].rsplit("for io", 1)[1]
    assert "T.if_then_else(T.likely(" in text
    tile = next(s for s in statements(func.body) if isinstance(s, Allocate) and s.buffer.name == "C_local")
    assert tile.annotations == {PADDED: True}


@pytest.mark.parametrize("column, whole, filled", [("j", True, True), ("i", True, False), ("j", False, False)])
def test_a_buffer_is_padded_where_its_stores_fill_all_lanes(column: str, whole: bool, filled: bool) -> None:
    n, o, i, j, v = (Var(name) for name in ("n", "o", "i", "j", "v"))
    columns = 4 if whole else minimum(n, 4)
    S, B = decl_buffer((4, 4), name="S"), decl_buffer((n, 4), name="B")
    row = intrinsic("likely", o < n)
    fill = loop(i, 4, loop(j, columns, IfThenElse(row, Store(S, convert(1.0), (i, {"i": i, "j": j}[column])))))
    read = loop(v, 4, IfThenElse(row, Store(B, S[v, 3 - v], (o, v))), "vectorized")
    func = relax_private_guards(plain([B], loop(o, ceildiv(n, 4) * 4, Allocate(S, seq([fill, read])))))
    tile = next(s for s in statements(func.body) if isinstance(s, Allocate))
    assert tile.annotations == ({PADDED: True} if filled else {})


# ------------------------------------------------------------------------------------------------ widths and unrolling

def test_indices_beyond_32_bits_are_64_bits_wide() -> None:
    big = 1 << 16
    A = decl_buffer((big, big), name="A")
    i, j = Var("i"), Var("j")
    func = function("f", (A,), loop(i, big, loop(j, big, block("A", [big, big], [i, j],
                                                              lambda a, b: Store(A, convert(1.0), (a, b))))))
    flat = flatten_buffers(lower_blocks(func))
    assert widen_indices(flat) is not flat
    wide = lower(func)
    verify(wide, stage="flat")
    assert "A_1[i * T.int64(65536) + j]" in str(wide)
    small = lower(tiled_matmul(64, 64, 64))
    assert "int64" not in str(small)


def test_data_keeps_its_type_when_indices_widen() -> None:
    n = Var("n")
    A, B = decl_buffer((n, n), "int32", name="A"), decl_buffer((n,), "int32", name="B")
    i, j = Var("i"), Var("j")
    body = block("A", [n, n], [i, j], lambda a, b: Store(A, a * 1000 + b + B[a], (a, b)))
    func = lower(function("f", (B, A), loop(i, n, loop(j, n, body))))
    verify(func, stage="flat")
    assert "for i in range(n_1)" in str(func)
    b, a = np.arange(5, dtype="int32"), np.zeros((5, 5), "int32")
    run(func, b, a)
    np.testing.assert_array_equal(a, np.arange(5)[:, None] * 1001 + np.arange(5))
    assert widen_indices(func) is func


def test_unrolling_is_bounded() -> None:
    B = decl_buffer((5000,), name="B")
    i = Var("i")
    few = unroll(plain([B], loop(i, 4, Store(B, convert(1.0), (i,)), "unroll")))
    assert [f"B[{n}]" in str(few) for n in range(5)] == [True] * 4 + [False]
    assert "for i in range(5000)" in str(unroll(plain([B], loop(i, 5000, Store(B, convert(1.0), (i,)), "unroll"))))


# ------------------------------------------------------------------------------------------------ thread axes

def bound(extents: tuple[int, int]) -> PrimFunc:
    B = decl_buffer((64,), name="B")
    t, u = Var("t"), Var("u")
    inner = loop(u, extents[1], Store(B, convert(1.0), (u,)), "thread_binding", "threadIdx.x")
    return plain([B], loop(t, extents[0], inner, "thread_binding", "threadIdx.x"))


def test_nested_loops_of_one_thread_axis_share_it() -> None:
    assert str(unify_thread_loops(bound((32, 32)))).count("threadIdx.x") == 1
    assert "if T.likely(threadIdx_x < 8):" in str(unify_thread_loops(bound((32, 8))))
    with pytest.raises(LowerError, match="extent 64"):
        unify_thread_loops(bound((32, 64)))


@pytest.mark.parametrize("rows, around", [(2, []), ("k", ["tx", "k"])])
def test_shared_memory_is_allocated_outside_of_the_threads_where_its_size_is_known(
        rows: int | str, around: list[str]) -> None:
    tx, k = Var("tx"), Var("k")
    S, B = decl_buffer((k + 1 if rows == "k" else rows, 8), name="S", scope="shared"), decl_buffer((4, 8), name="B")
    fill, read = Store(S, convert(1.0), (IntImm(0), tx)), Store(B, S[0, 7 - tx], (k, tx))
    body = loop(k, 4, Allocate(S, seq([fill, Evaluate(intrinsic("sync", "shared")), read])))
    func = plain([B], For(tx, IntImm(0), IntImm(8), "thread_binding", body, "threadIdx.x"))
    assert loops_around(unify_thread_loops(func), "S") == around


# ------------------------------------------------------------------------------------------------ the pipeline

def test_simple_mode_reads_as_scheduled() -> None:
    text = str(lower(vector_add(Var("n"), 32), simple_mode=True))
    assert "for o in range((n + 31) // 32):" in text and "for i in range(32):" in text
    assert "if T.likely(o * 32 + i < n):" in text and "int64" not in text


def test_every_pass_is_documented_with_its_result() -> None:
    for p in (*PASSES, *SIMPLE_PASSES):
        run = p.run.func if isinstance(p.run, functools.partial) else p.run
        assert run.__doc__ and run.__module__.startswith(("tilewright.lowering.", "tilewright.tir.")), p.name


def test_the_dump_has_one_file_per_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DUMP", str(tmp_path))
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
    lower(vector_add(100, 32))
    assert len(list(tmp_path.iterdir())) == len(PASSES)


def test_lowering_is_deterministic() -> None:
    assert str(lower(tiled_matmul(67, 70, 66))) == str(lower(tiled_matmul(67, 70, 66)))


def test_guards_stay_that_keep_threads_apart_in_what_they_share():
    """Thread t writes S[t + i] where t + i < 1; without the guard threads 0 and 1 would write S[1] at once."""
    @T.prim_func
    def func(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
        S = T.alloc_buffer((8,), "int32", scope="shared")
        for t in T.thread_binding(4, thread="threadIdx.x"):
            for i in range(3):
                with T.block("S"):
                    v = T.axis.spatial(1, t + i)
                    T.where(t + i < 1)
                    S[v] = 2
                with T.block("B"):
                    v = T.axis.spatial(1, t + i)
                    T.where(t + i < 1)
                    B[v] = A[v] + S[v]

    b = np.zeros(1, "int32")
    run(lower(func), np.array([10], "int32"), b)
    assert b[0] == 12


def test_what_loads_alone_go_beyond_makes_no_buffer_larger() -> None:
    """Loads of 16 lanes of which 10 are on: rows of 16 elements would be blended from vectors of 10."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((64, 10), "float32"), C: T.Buffer((64, 10), "float32")):
    for i in range(8):
        P = T.decl_buffer((64, 10), "float32", scope="local")
        for r in range(8):
            for j in T.vectorized(10):
                P[i * 8 + r, j] = A[i * 8 + r, j] * T.float32(2)
        for r in range(8):
            for j in T.vectorized(16):
                if T.likely(j < 10):
                    C[i * 8 + r, j] = P[i * 8 + r, j]
""")
    found = [s.buffer.shape for s in statements(lower(func).body) if isinstance(s, Allocate)]
    assert [[e.value for e in shape] for shape in found] == [[80]]


def test_tiles_behind_the_last_row_are_left_out_though_their_loop_asks_for_weights(monkeypatch):
    """Of few rows in blocks of many: all 171 tiles of a block were computed."""
    monkeypatch.setattr(contraction, "row_shares", lambda *_: [None, 171, 6])
    n = te.var("n")
    x, w = te.placeholder((n, 384), name="x"), te.placeholder((384, 1536), name="w")
    func = create_prim_func([x, w, topi.matmul(x, w)])
    text = "".join(map(str, flat_kernel(func, target("llvm -mcpu=skylake-avx512"), (1,))))
    loops = [line for line in text.splitlines() if "T.int64(171)" in line and "range" in line]
    assert "T.prefetch" in text and loops and all("(n + T.int64(5)) // T.int64(6)" in line for line in loops)


def test_columns_end_in_the_rows_behind_whole_tiles_too():
    """Of a slab of 32 panels all were computed there, whatever the number of columns; none with a question for each row
    whether it has begun."""
    b, n = te.var("b"), te.var("n")
    x, w = te.placeholder((b, n, 32), name="x"), te.placeholder((b, 32, n), name="w")
    func, _ = te.lower_ops([x, w, topi.matmul(x, w), b, n], name="k", partial=True)
    region = str(flat_kernel(func, target("llvm -mcpu=skylake-avx512 -num-cores=2"), ())[1])
    panels = [line for line in region.splitlines() if "for i3_1 in" in line or "for i2_1 in" in line]
    assert panels and all("n + T.int64" in line or "n //" in line for line in panels)
    assert not any("T.likely(i3_1" in line for line in region.splitlines())


def test_a_store_to_part_of_the_columns_behind_the_last_row():
    """n of every kind: none, less than a tile, one more than tiles."""
    b, n = te.var("b"), te.var("n")
    x, w = te.placeholder((b, n, 5), name="x"), te.placeholder((b, 5, n), name="w")
    kernel = tw.compile(create_prim_func([x, w, topi.matmul(x, w)]))
    for size in (0, 1, 7, 8, 9, 31, 33, 64, 65):
        rng = np.random.default_rng(size)
        a, c = rng.normal(size=(3, size, 5)).astype("float32"), rng.normal(size=(3, 5, size)).astype("float32")
        out = np.full((3, size, size), np.nan, "float32")
        kernel(a, c, out)
        np.testing.assert_allclose(out, a.astype("float64") @ c, rtol=1e-4, atol=1e-5)
