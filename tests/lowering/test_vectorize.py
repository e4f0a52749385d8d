"""The vector forms: ramps, masks, lanes of private buffers, and what stays scalar."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scheduled_programs import function

import tilewright as tw
from tilewright.lowering.vectorize import vectorize
from tilewright.script import tir as T
from tilewright.tir.arithmetic import all_of, any_of, binary, if_then_else, intrinsic
from tilewright.tir.buffer import Buffer, decl_buffer
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Expr, IntImm, Select, Var
from tilewright.tir.interp import run
from tilewright.tir.stmt import Allocate, Evaluate, For, IfThenElse, LetStmt, PrimFunc, Stmt, Store, loop, seq
from tilewright.tir.verify import verify

N = 8


def flat(buffers: list[Buffer], body: Stmt) -> PrimFunc:
    func = function("f", buffers, body)
    return func.replace(body=func.body.block.body)  # type: ignore[attr-defined]


def lanes_of(body: Callable[[Var], Stmt], buffers: list[Buffer], extent: int = N, low: int = 0) -> PrimFunc:
    """A function of one vectorised loop, vectorised."""
    i = Var("i")
    return check(flat(buffers, For(i, IntImm(low), IntImm(extent), "vectorized", body(i))))


def check(func: PrimFunc) -> PrimFunc:
    out = vectorize(func)
    verify(out, stage="flat")
    return out


def buf(name: str, size: int = N, dtype: str = "float32") -> Buffer:
    return decl_buffer((size,), dtype, name)


def test_affine_accesses_become_ramps() -> None:
    A, B = buf("A", 32), buf("B", 32)
    text = str(lanes_of(lambda i: Store(B, A[i * 2 + 3] * 2.0, (i + 1,)), [A, B]))
    assert "B[1:9] = A[3:19:2] * T.Broadcast(T.float32(2), 8)" in text


def test_an_index_that_is_not_affine_gathers() -> None:
    A, B = buf("A", 32), buf("B", 32)
    func = lanes_of(lambda i: Store(B, A[i // 3 + i % 2], (i,)), [A, B])
    a, b = np.arange(32, dtype="float32"), np.zeros(32, "float32")
    run(func, a, b)
    np.testing.assert_array_equal(b[:8], [i // 3 + i % 2 for i in range(8)])


def test_a_loop_inside_becomes_a_loop_over_vectors() -> None:
    A, B = buf("A", 40), buf("B")
    k = Var("k")
    func = lanes_of(lambda i: seq([Store(B, IntImm(0).astype("float32"), (i,)),
                                   loop(k, 5, Store(B, B[i] + A[i * 5 + k], (i,)))]), [A, B])
    assert "for k in range(5)" in str(func) and "for i" not in str(func)
    a, b = np.random.default_rng(0).random(40, "float32"), np.zeros(N, "float32")
    run(func, a, b)
    np.testing.assert_allclose(b, a.reshape(8, 5).sum(1), rtol=1e-6)


def test_a_private_buffer_holds_one_element_per_lane() -> None:
    A, B, P = buf("A", 24), buf("B"), buf("P", 3)
    k, q = Var("k"), Var("q")

    def body(i: Var) -> Stmt:
        fill = loop(k, 3, Store(P, A[i * 3 + k], (k,)))
        use = seq([Store(B, P[0], (i,)), loop(q, 2, Store(B, B[i] * P[q + 1], (i,)))])
        return Allocate(P, seq([fill, use]))

    func = lanes_of(body, [A, B])
    assert "P = T.decl_buffer((24,))" in str(func)
    a, b = np.random.default_rng(0).random(24, "float32"), np.zeros(N, "float32")
    run(func, a, b)
    np.testing.assert_allclose(b, a.reshape(8, 3).prod(1), rtol=1e-6)


def test_a_condition_on_lanes_masks_loads_and_stores() -> None:
    A, B = buf("A", 5), buf("B", 5)
    func = lanes_of(lambda i: IfThenElse(intrinsic("likely", i < 5), Store(B, A[i] + 1.0, (i,))), [A, B])
    assert "predicate=T.Ramp(0, 1, 8) < T.Broadcast(5, 8)" in str(func)
    a, b = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    run(func, a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_a_uniform_load_under_a_mask_needs_an_active_lane() -> None:
    n, base, out = Var("n"), Var("base"), buf("B", 64)
    A = decl_buffer((n,), name="A")
    i, o = Var("i"), Var("o")
    store = Store(out, A[n - 1] + A[o * 8 + i], (o * 8 + i,))
    nest = loop(o, 8, loop(i, 8, IfThenElse(intrinsic("likely", o * 8 + i < n), store), "vectorized"))
    func = check(flat([A, out], nest))
    assert "if T.likely(o * 8 < n):" in str(func), base.name
    for size in (0, 1, 9, 64):
        a, b = np.arange(size, dtype="float32"), np.zeros(64, "float32")
        run(func, a, b)
        np.testing.assert_array_equal(b[:size], a + (a[-1] if size else 0))


def test_both_sides_of_a_condition_are_masked() -> None:
    A, B = buf("A"), buf("B")
    func = lanes_of(lambda i: IfThenElse(A[i] > 0.0, Store(B, A[i] * 2.0, (i,)), Store(B, A[i] - 1.0, (i,))), [A, B])
    a, b = np.array([1, -1, 2, -2, 0, 3, -3, 4], "float32"), np.zeros(N, "float32")
    run(func, a, b)
    np.testing.assert_array_equal(b, np.where(a > 0, a * 2, a - 1))


@pytest.mark.parametrize("other", [False, True])
def test_a_condition_that_a_branch_changes_is_decided_once(other: bool) -> None:
    A, B = buf("A"), buf("B")

    def body(i: Var) -> Stmt:
        last = Store(A, A[i] - 1.0, (i,)) if other else None
        return IfThenElse(A[i] < 0.0, seq([Store(A, A[i] * -3.0, (i,)), Store(B, A[i] + 1.0, (i,))]), last)

    func = lanes_of(body, [A, B])
    a = np.array([1, -1, 2, -2, 0, 3, -3, 4], "float32")
    got, b = a.copy(), np.zeros(N, "float32")
    run(func, got, b)
    np.testing.assert_array_equal(got, np.where(a < 0, a * -3, a - 1 if other else a))
    np.testing.assert_array_equal(b, np.where(a < 0, a * -3 + 1, 0))


def test_a_condition_on_a_private_element_that_a_nested_branch_changes() -> None:
    A, B, x = buf("A"), buf("B"), decl_buffer((1,), name="x", scope="local")

    def body(i: Var) -> Stmt:
        inner = IfThenElse(B[i] > 0.0, Store(x, cast("float32", IntImm(9)), (IntImm(0),)), Store(B, x[0], (i,)))
        outer = IfThenElse(x[0] < 0.0, inner, Store(x, x[0] * 2.0, (IntImm(0),)))
        return Allocate(x, seq([Store(x, A[i], (IntImm(0),)), outer, Store(A, x[0], (i,))]))

    func = lanes_of(body, [A, B])
    a, b = np.array([1, -1, 2, -2, 0, 3, -3, 4], "float32"), np.array([1, 1, 0, 0, 1, 0, -1, 1], "float32")
    got_a, got_b = a.copy(), b.copy()
    run(func, got_a, got_b)
    np.testing.assert_array_equal(got_a, np.where(a < 0, np.where(b > 0, 9, a), a * 2))
    np.testing.assert_array_equal(got_b, np.where((a < 0) & (b <= 0), a, b))


def test_if_then_else_reads_only_the_lanes_it_chooses() -> None:
    A, B = buf("A", 6), buf("B")

    def body(i: Var) -> Stmt:
        inside: Expr = all_of(i >= 1, i < 7)
        return Store(B, if_then_else(inside, A[i - 1], 0.0), (i,))

    func = lanes_of(body, [A, B])
    a, b = np.arange(1, 7, dtype="float32"), np.ones(N, "float32")
    run(func, a, b)
    np.testing.assert_array_equal(b, np.pad(a, 1))


@pytest.mark.parametrize("op", ["and", "or"])
def test_what_decides_alone_keeps_the_other_side_from_reading(op: str) -> None:
    """A has elements for the first lanes only: `i < 5 and A[i] > 0`, `i >= 5 or A[i] > 0` read no others."""
    A, B = buf("A", 5), buf("B")

    def condition(i: Var) -> Expr:
        first = i < 5 if op == "and" else i >= 5
        return binary(op, first, A[i] > 0.0)

    a = np.array([1, -1, 1, -1, 1], "float32")
    want = np.where(np.append(a, [0, 0, 0] if op == "and" else [1, 1, 1]) > 0, 2, 7).astype("float32")
    whole = lanes_of(lambda i: IfThenElse(condition(i), Store(B, IntImm(2).astype("float32"), (i,))), [A, B])
    value = lanes_of(lambda i: Store(B, Select(condition(i), IntImm(2).astype("float32"),
                                               IntImm(7).astype("float32")), (i,)), [A, B])
    for func in (whole, value):
        b = np.full(8, 7, "float32")
        run(func, a, b)
        np.testing.assert_array_equal(b, want)


def test_a_term_of_all_lanes_is_asked_after_the_lanes_that_it_needs() -> None:
    """`k + i < 5 and A[k] > 0`: no lane is left where k is 5, and A has no such element."""
    A, B = buf("A", 5), buf("B")
    k = Var("k")
    func = check(flat([A, B], loop(k, 7, For(i := Var("i"), IntImm(0), IntImm(N), "vectorized", IfThenElse(
        all_of(k + i < 5, A[k] > 0.0), Store(B, cast("float32", k), (i,)))))))
    a, b = np.array([1, -1, 1, -1, -1], "float32"), np.full(8, 9, "float32")
    run(func, a, b)
    np.testing.assert_array_equal(b, [2, 2, 2, 0, 0, 9, 9, 9])


def test_a_condition_reads_only_the_lanes_that_the_conditions_before_it_leave_open() -> None:
    A, B = buf("A", 6), buf("B")

    def body(i: Var) -> Stmt:
        two: Expr = any_of(A[i - 1] < 0.0, A[i - 1] > 3.0)
        return IfThenElse(all_of(i >= 1, i < 7, two), Store(B, A[i - 1], (i,)))

    func = lanes_of(body, [A, B])
    assert "vstore" in str(func)
    a, b = np.array([-1, 1, 5, 3, -3, 4], "float32"), np.full(N, 9, "float32")
    run(func, a, b)
    np.testing.assert_array_equal(b, [9, -1, 9, 5, 9, -3, 4, 9])


def test_the_second_part_of_an_or_reads_only_the_lanes_in_which_the_first_fails() -> None:
    A, B, C = buf("A", 4), buf("B"), buf("C")

    def body(i: Var) -> Stmt:
        wanted: Expr = any_of(i < 2, i >= 6, A[i - 2] < 0.0)
        return seq([Store(B, if_then_else(wanted, 1.0, 2.0), (i,)),
                    IfThenElse(wanted, Store(C, B[i] + 4.0, (i,)), Store(C, A[i - 2], (i,)))])

    func = lanes_of(body, [A, B, C])
    assert "vstore" in str(func)
    a, b, c = np.array([-1, 1, 5, -3], "float32"), np.zeros(N, "float32"), np.zeros(N, "float32")
    run(func, a, b, c)
    np.testing.assert_array_equal(b, [1, 1, 1, 2, 2, 1, 1, 1])
    np.testing.assert_array_equal(c, [5, 5, 5, 1, 5, 5, 5, 5])


def test_a_chain_of_conditions_that_read_grows_by_the_same_with_each() -> None:
    A, B = buf("A", 24), buf("B")

    def size(count: int) -> int:
        def body(i: Var) -> Stmt:
            return IfThenElse(all_of(*(A[i * 3 + k] > 0.0 for k in range(count))), Store(B, A[i * 3], (i,)))
        return len(str(lanes_of(body, [A, B], 12)))

    assert size(12) - size(11) == size(11) - size(10)


def test_a_uniform_load_behind_a_condition_on_lanes_waits_for_it() -> None:
    n, B = Var("n"), buf("B")
    C = decl_buffer((n,), name="C")

    def first(o: Var, i: Var) -> Stmt:
        return IfThenElse(all_of(o * 4 + i < n, C[n - 1] > 0.0), Store(B, C[o * 4 + i], (o * 4 + i,)))

    i, o = Var("i"), Var("o")
    func = check(flat([C, B], loop(o, 2, loop(i, 4, first(o, i), "vectorized"))))
    assert "if T.likely(o * 4 < n):" in str(func) and "if C[n - 1] > " in str(func)
    for size in (0, 1, 5, 8):
        c, b = np.arange(1, size + 1, dtype="float32"), np.zeros(N, "float32")
        run(func, c, b)
        np.testing.assert_array_equal(b, np.pad(c, (0, N - size)))


@pytest.mark.parametrize("nested", [False, True])
def test_a_uniform_condition_in_the_lanes_of_another(nested: bool) -> None:
    n, A, B = Var("n"), buf("A"), buf("B")
    C = decl_buffer((n,), name="C")

    def body(i: Var) -> Stmt:
        write = Store(B, A[i] * 2.0, (i,))
        if nested:
            return IfThenElse(A[i] > 0.0, IfThenElse(C[n - 1] > 0.0, write, Store(B, A[i] * 3.0, (i,))))
        return IfThenElse(all_of(A[i] > 0.0, C[n - 1] > 0.0, A[i] < 9.0), write)

    func = lanes_of(body, [A, C, B])
    assert "vstore" in str(func)
    for last in (None, 1, -1):
        a = np.full(N, -1, "float32") if last is None else np.array([1, -1, 2, -2, 0, 3, -3, 4], "float32")
        c, b = np.zeros(0, "float32") if last is None else np.array([0, last], "float32"), np.zeros(N, "float32")
        run(func, a, c, b)
        factor = 2 if last == 1 else 3 if nested else 0
        np.testing.assert_array_equal(b, np.where(a > 0, a * factor, 0))


def test_a_loop_whose_end_only_some_lanes_may_read_runs_lane_by_lane() -> None:
    n, A, B, k = Var("n"), buf("A"), buf("B"), Var("k")
    C = decl_buffer((n,), "int32", "C")
    func = lanes_of(lambda i: IfThenElse(A[i] > 0.0, loop(k, C[n - 1], Store(B, B[i] + A[i], (i,)))), [A, C, B])
    for c in (np.zeros(0, "int32"), np.array([3], "int32")):
        a = np.array([1, -1, 2, -2, 0, 3, -3, 4] if len(c) else [-1] * N, "float32")
        b = np.zeros(N, "float32")
        run(func, a, c, b)
        np.testing.assert_array_equal(b, np.where(a > 0, a * 3, 0))


def test_native_code_of_conditions_that_read() -> None:
    @T.prim_func
    def main(A: T.Buffer((3, 10), "int32"), B: T.Buffer((10,), "int32")):
        for i in range(10):
            with T.block("B"):
                v = T.axis.spatial(10, i)
                T.where(A[(i + 1) % 3, i] != -1 or A[i % 3, i] > 0)
                B[v] = A[(v + 1) % 3, v] + B[v]

    sch = tw.Schedule(main)
    i, = sch.get_loops("B")
    sch.vectorize(sch.split(i, [None, 4])[1])
    sch.split(sch.get_loops("B")[0], [None, 2])
    a, start = np.random.default_rng(3).integers(-1, 2, (3, 10)).astype("int32"), np.arange(10, dtype="int32")
    at = np.arange(10)
    near, far = a[(at + 1) % 3, at], a[at % 3, at]
    wanted = np.where((near != -1) | (far > 0), near + start, start)
    lowered, native = start.copy(), start.copy()
    run(tw.lower(sch.mod["main"])["main"], a, lowered)
    tw.build(sch.mod["main"])(a, native)
    np.testing.assert_array_equal(lowered, wanted)
    np.testing.assert_array_equal(native, wanted)


def test_math_casts_and_lets_work_on_lanes() -> None:
    A, B = buf("A"), buf("B", dtype="int32")
    v = Var("v", "float32")
    func = lanes_of(lambda i: LetStmt(v, intrinsic("floor", A[i] * 4.0), Store(B, cast("int32", v) + i, (i,))), [A, B])
    assert "for" not in str(func).split("):", 1)[1].replace("float", "")
    a, b = np.random.default_rng(1).random(N).astype("float32"), np.zeros(N, "int32")
    run(func, a, b)
    np.testing.assert_array_equal(b, np.floor(a * 4).astype(int) + np.arange(N))


@pytest.mark.parametrize("extent", [7, 64, 65, 96, 130])
def test_long_loops_are_cut_into_vectors(extent: int) -> None:
    A, B = buf("A", extent), buf("B", extent)
    func = lanes_of(lambda i: Store(B, A[i] + 1.0, (i,)), [A, B], extent)
    assert "vectorized" not in str(func)
    a, b = np.arange(extent, dtype="float32"), np.zeros(extent, "float32")
    run(func, a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_lanes_that_update_one_element_run_one_by_one() -> None:
    A, B = buf("A"), buf("B", 1)
    func = lanes_of(lambda i: Store(B, B[0] + A[i], (IntImm(0),)), [A, B])
    assert "for i in range(8)" in str(func)
    a, b = np.arange(N, dtype="float32"), np.zeros(1, "float32")
    run(func, a, b)
    assert b[0] == a.sum()


def test_calls_with_effects_and_symbolic_extents_stay_scalar() -> None:
    n = Var("n")
    A = decl_buffer((n,), name="A")
    i, j = Var("i"), Var("j")
    call = loop(i, 4, Evaluate(intrinsic("call_extern", "putchar", i)), "vectorized")
    free = loop(j, n, Store(A, cast("float32", j), (j,)), "vectorized")
    text = str(check(flat([A], seq([call, free]))))
    assert "for i in range(4)" in text and "for j in range(n)" in text


def test_a_vector_loop_around_another_is_serial() -> None:
    A, B = buf("A", 12), buf("B", 12)
    i, j = Var("i"), Var("j")
    nest = loop(i, 3, loop(j, 4, Store(B, A[i * 4 + j], (i * 4 + j,)), "vectorized"), "vectorized")
    text = str(check(flat([A, B], nest)))
    assert "for i in range(3)" in text and "B[i * 4:i * 4 + 4] = A[i * 4:i * 4 + 4]" in text
