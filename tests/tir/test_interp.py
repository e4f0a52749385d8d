"""The interpreter runs loops, blocks, vectors and allocations, and finds what hardware would not report."""

import numpy as np
import pytest
from tir_programs import axis, elementwise, function, matmul, nothing, realize, root

from tilewright.script import from_source
from tilewright.support.errors import InterpreterError
from tilewright.tir import (
    COMM_REDUCE,
    Allocate,
    Block,
    Broadcast,
    Buffer,
    BufferRegion,
    Call,
    Evaluate,
    IfThenElse,
    IntImm,
    IRModule,
    Let,
    LetStmt,
    Load,
    MatchBuffer,
    PrimFunc,
    Ramp,
    Range,
    Store,
    Var,
    While,
    binary,
    cast,
    const,
    decl_buffer,
    if_then_else,
    interp,
    intrinsic,
    loop,
    run,
    select,
    seq,
)


def ramp(base, lanes, stride=1):
    return Ramp(const(base) if isinstance(base, int) else base, IntImm(stride), lanes)


def random(*shape, dtype="float32"):
    return np.random.default_rng(0).random(shape).astype(dtype)


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("kinds", [("serial",) * 3, ("parallel", "vectorized", "unroll")])
def test_matmul_of_blocks(kinds, check):
    a, b, c = random(4, 6), random(6, 5), np.full((4, 5), np.nan, "float32")
    run(matmul(kinds=kinds), a, b, c, check=check)
    np.testing.assert_allclose(c, a.astype("float64") @ b, rtol=1e-6)


def test_parallel_reduction_is_a_race():
    a, b, c = random(4, 6), random(6, 5), np.zeros((4, 5), "float32")
    with pytest.raises(
        InterpreterError, match="two iterations of the parallel loop k touch element 0 of C"
    ) as error:
        run(matmul(kinds=("serial", "serial", "parallel")), a, b, c)
    assert "for k in T.parallel(6):  # <-- here" in str(error.value)
    run(matmul(kinds=("serial", "serial", "parallel")), a, b, c, check=False)


@pytest.mark.parametrize("kind", ["parallel", "vectorized", "thread_binding"])
def test_carried_read_is_a_race(kind):
    B, i = decl_buffer((5,), name="B"), Var("i")
    body = loop(i, 4, Store(B, B[i + 1] + 1.0, (i,)), kind, "threadIdx.x" if kind == "thread_binding" else "")
    with pytest.raises(InterpreterError, match=f"of the {kind} loop i .*one reads, one writes"):
        run(function(body, B), np.zeros(5, "float32"))


def test_race_of_an_outer_loop_through_an_inner_one():
    B, i, j = decl_buffer((4,), name="B"), Var("i"), Var("j")
    body = loop(i, 2, loop(j, 4, Store(B, const(1.0), (j,)), "parallel"), "parallel")
    with pytest.raises(InterpreterError, match="parallel loop i touch element 0 of B .both write"):
        run(function(body, B), np.zeros(4, "float32"))


def test_sequential_code_after_an_inner_parallel_loop_is_no_race():
    B, C, i, j = decl_buffer((2, 4), name="B"), decl_buffer((2,), name="C"), Var("i"), Var("j")
    inner = loop(j, 4, Store(B, const(1.0), (i, j)), "parallel")
    total = Store(C, B[i, 0] + B[i, 3], (i,))
    c = np.zeros(2, "float32")
    run(function(loop(i, 2, seq([inner, total]), "parallel"), B, C), np.zeros((2, 4), "float32"), c)
    assert c.tolist() == [2, 2]


def test_memory_allocated_in_the_loop_is_private():
    B, t, i = decl_buffer((4,), name="B"), decl_buffer((1,), name="t", scope="local"), Var("i")
    inside = Allocate(t, seq([Store(t, cast("float32", i), (IntImm(0),)), Store(B, t[0] * 2.0, (i,))]))
    b = np.zeros(4, "float32")
    run(function(loop(i, 4, inside, "parallel"), B), b)
    assert b.tolist() == [0, 2, 4, 6]
    outside = Allocate(t, loop(i, 4, inside.body, "parallel"))
    with pytest.raises(InterpreterError, match="element 0 of t"):
        run(function(outside, B), b)


def test_root_buffer_used_in_one_concurrent_loop_is_private():
    B, t, i, j = decl_buffer((4,), name="B"), decl_buffer((1,), name="t"), Var("i"), Var("j")
    body = loop(i, 4, seq([Store(t, cast("float32", i), (IntImm(0),)), Store(B, t[0], (i,))]), "parallel")
    b = np.zeros(4, "float32")
    run(function(root(body, t), B), b)
    assert b.tolist() == [0, 1, 2, 3]
    stale = seq([IfThenElse(binary("eq", j, 0), Store(t, const(1.0), (IntImm(0),))), Store(B, t[0], (j,))])
    with pytest.raises(InterpreterError, match="t is read at element 0, which nothing has written"):
        run(function(root(loop(j, 4, stale, "parallel"), t), B), b)


def test_out_of_bounds():
    B, i = decl_buffer((4, 3), name="B"), Var("i")
    body = loop(i, 4, Store(B, B[i, 0], (i, i)))
    with pytest.raises(
        InterpreterError, match=r"f: B\[3, 3\] is out of bounds: the shape is \(4, 3\)"
    ) as error:
        run(function(body, B), np.zeros((4, 3), "float32"))
    assert "B[i, i] = B[i, 0]  # <-- here" in str(error.value)
    with pytest.raises(InterpreterError, match=r"B\[-1\] is out of bounds: the shape is \(4,\)"):
        run(
            elementwise(4, lambda i: V[i - 1], V := decl_buffer((4,), name="B")), *np.zeros((2, 4), "float32")
        )


def test_uninitialised_read():
    t, B, i = decl_buffer((3,), name="t"), decl_buffer((3,), name="B"), Var("i")
    body = seq([Store(t, const(0.0), (IntImm(0),)), loop(i, 3, Store(B, t[i], (i,)))])
    with pytest.raises(InterpreterError, match="t is read at element 1, which nothing has written"):
        run(function(Allocate(t, body), B), np.zeros(3, "float32"))


def test_if_then_else_is_lazy_and_select_is_not():
    A = decl_buffer((4,), name="A")
    lazy = elementwise(6, lambda i: if_then_else(i < 4, A[i] + 1.0, 0.0), A)
    out = np.empty(6, "float32")
    run(lazy, np.arange(4, dtype="float32"), out)
    assert out.tolist() == [1, 2, 3, 4, 0, 0]

    with pytest.raises(InterpreterError, match="out of bounds"):
        run(elementwise(6, lambda i: select(i < 4, A[i], 0.0), A), np.zeros(4, "float32"), out)


def test_and_or_evaluate_the_right_side_only_when_it_decides():
    A = decl_buffer((4,), "int32", "A")
    a, out = np.array([5, 0, 7, 0], "int32"), np.empty(6, "bool")
    run(elementwise(6, lambda i: binary("and", i < 4, A[i] > 0), A, dtype="bool"), a, out)
    assert out.tolist() == [True, False, True, False, False, False]
    run(elementwise(6, lambda i: binary("or", i >= 4, A[i] > 0), A, dtype="bool"), a, out)
    assert out.tolist() == [True, False, True, False, True, True]


def test_block_init_predicate_and_domain():
    A, B = decl_buffer((10,), name="A"), decl_buffer((1,), name="B")
    vk, ko, ki = axis(10, "vk", COMM_REDUCE), Var("ko"), Var("ki")
    zero = IntImm(0)
    block = Block("B", (vk,), (), (), Store(B, B[0] + A[vk], (zero,)), Store(B, const(0.0), (zero,)))

    def program(**where):
        return function(root(loop(ko, 3, loop(ki, 4, realize(block, ko * 4 + ki, **where)))), A, B)

    a, b = random(10), np.full(1, np.nan, "float32")
    run(program(where=ko * 4 + ki < 10), a, b)
    np.testing.assert_allclose(b[0], a.astype("float64").sum(), rtol=1e-6)
    with pytest.raises(InterpreterError, match="block axis vk is 10, outside its domain 0 to 9"):
        run(program(), a, b)


def test_symbolic_shapes_bind_and_are_checked():
    n = Var("n")
    A, B, i = decl_buffer((n,), name="A"), decl_buffer((n + 1,), name="B"), Var("i")
    f = function(seq([loop(i, n, Store(B, A[i], (i,))), Store(B, cast("float32", n), (n,))]), A, B)
    for size in (1, 5):
        a, b = random(size), np.zeros(size + 1, "float32")
        run(f, a, b)
        assert b.tolist() == [*a.tolist(), size]
    with pytest.raises(InterpreterError, match=r"an extent of argument B is 5, expected n \+ 1 = 6"):
        run(f, random(5), random(5))


def test_scalar_parameters():
    n, x = Var("n"), Var("x", "float32")
    B, i = decl_buffer((4,), name="B"), Var("i")
    f = function(loop(i, n, Store(B, x * 2.0, (i,))), n, x, B)
    for count, value in [(2, 1.5), (3, 2.5)]:
        b = np.zeros(4, "float32")
        run(f, count, value, b)
        assert b.tolist() == [2 * value] * count + [0] * (4 - count)


def test_vectors_with_predicates():
    A, B = decl_buffer((10,), name="A"), decl_buffer((10,), name="B")
    i = Var("i")
    index = ramp(i * 4, 4)
    mask = binary("lt", index, Broadcast(const(10), 4))
    body = loop(i, 3, Store(B, Load(A, (index,), mask) + Broadcast(const(1.0), 4), (index,), mask))
    a, b = random(10), np.zeros(10, "float32")
    run(function(body, A, B), a, b)
    np.testing.assert_array_equal(b, a + np.float32(1))
    unguarded = loop(i, 3, Store(B, Load(A, (index,)), (index,)))
    with pytest.raises(
        InterpreterError, match=r"A\[\[8, 9, 10, 11\]\] is out of bounds: the shape is \(10,\)"
    ):
        run(function(unguarded, A, B), a, b)


def test_vector_access_with_stride_and_outer_index():
    A, B = decl_buffer((3, 8), "int32", "A"), decl_buffer((4,), "int32", "B")
    body = Store(B, Load(A, (IntImm(2), ramp(1, 4, 2))), (ramp(0, 4),))
    a, b = np.arange(24, dtype="int32").reshape(3, 8), np.zeros(4, "int32")
    run(function(body, A, B), a, b)
    assert b.tolist() == a[2, 1::2].tolist()


def test_two_lanes_may_not_meet():
    B = decl_buffer((4,), name="B")
    body = Store(B, Broadcast(const(1.0), 4), (Broadcast(const(2), 4),))
    with pytest.raises(InterpreterError, match="two lanes of one store write element 2 of B"):
        run(function(body, B), np.zeros(4, "float32"))


def test_vector_reads_and_writes_count_as_races():
    B, i = decl_buffer((8,), name="B"), Var("i")
    body = loop(i, 2, Store(B, Broadcast(const(1.0), 4), (ramp(i * 3, 4),)), "parallel")
    with pytest.raises(InterpreterError, match="touch element 3 of B"):
        run(function(body, B), np.zeros(8, "float32"))
    disjoint = loop(
        i, 2, Store(B, Load(B, (ramp(i * 4, 4),)) + Broadcast(const(1.0), 4), (ramp(i * 4, 4),)), "parallel"
    )
    run(function(disjoint, B), np.zeros(8, "float32"))


def test_flat_buffer_sees_the_argument():
    A = decl_buffer((2, 3), name="A")
    flat, i = Buffer("A", (IntImm(6),), data=A.data), Var("i")
    a = np.zeros((2, 3), "float32")
    run(function(loop(i, 6, Store(flat, cast("float32", i), (i,))), A), a)
    assert a.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_strided_arguments():
    A = decl_buffer((2, 3), name="A", strides=(8, 2), elem_offset=1)
    flat, B = Buffer("A", (IntImm(16),), data=A.data), decl_buffer((2,), name="B")
    body = seq(
        [
            Store(B, A[1, 2], (IntImm(0),)),
            Store(B, flat[13], (IntImm(1),)),
            Store(A, const(9.0), (IntImm(0), IntImm(1))),
        ]
    )
    a, b = np.arange(6, dtype="float32").reshape(2, 3), np.zeros(2, "float32")
    run(function(body, A, B), a, b)
    assert b.tolist() == [5, 5] and a[0, 1] == 9
    with pytest.raises(InterpreterError, match="element 2, which nothing has written"):
        run(function(Store(B, flat[2], (IntImm(0),)), A, B), a, b)


def test_match_buffer_is_a_view():
    A, B = decl_buffer((4, 6), "int32", "A"), decl_buffer((2, 3), "int32", "B")
    s0, s1, offset = Var("s0"), Var("s1"), Var("off")
    view = decl_buffer((2, 3), "int32", "view", strides=(s0, s1), elem_offset=offset)
    vi, i, j = axis(2, "vi"), Var("i"), Var("j")
    source = BufferRegion(A, (Range(vi.var * 2, IntImm(2)), Range(IntImm(3), IntImm(3))))
    inner = loop(i, 2, loop(j, 3, Store(B, view[i, j] + s0 * 100, (i, j))))
    k = Var("k")
    body = loop(
        k, 2, realize(Block("b", (vi,), (), (), inner, match_buffers=(MatchBuffer(view, source),)), k)
    )
    a, b = np.arange(24, dtype="int32").reshape(4, 6), np.zeros((2, 3), "int32")
    run(function(root(body), A, B), a, b)
    np.testing.assert_array_equal(b, a[2:4, 3:6] + 600)


def test_while_let_and_zero_dimensions():
    S, count = decl_buffer((), "int64", "S"), Var("count", "int64")
    body = While(S[()] < 100, LetStmt(count, S[()] * 2, Store(S, count + 1, ())))
    s = np.array(1, "int64")
    run(function(body, S), s)
    assert s == 127
    x = Var("x")
    assert interp.evaluate(Let(x, const(3) + 0, x * x)) == 9


def test_deep_nests():
    loops = [Var(f"i{k}") for k in range(40)]
    B = decl_buffer((1,), "int32", "B")
    body = Store(B, B[0] + 1, (IntImm(0),))
    for v in reversed(loops):
        body = loop(v, 2 if v in loops[::8] else 1, body)
    b = np.zeros(1, "int32")
    run(function(body, B), b)
    assert b[0] == 32


def test_long_expressions():
    e = x = Var("x")
    for k in range(100):
        e = e * 3 + (x + k)
    value = 5
    for k in range(100):
        value = value * 3 + 5 + k
    assert interp.evaluate(e, {x: 5}) == (value + 2**31) % 2**32 - 2**31


def test_external_functions_see_arrays():
    A, B = decl_buffer((2, 3), name="A"), decl_buffer((3,), name="B")
    pointers = [Call("access_ptr", (b[(0,) * b.ndim], *b.shape), "handle") for b in (A, B)]
    body = Evaluate(intrinsic("call_packed", "colsum", *pointers, 7))
    a, b, seen = random(2, 3), np.zeros(3, "float32"), []

    def colsum(x, y, number):
        y[:] = x.sum(0)
        seen.append(number)

    run(function(body, A, B), a, b, externs={"colsum": colsum})
    np.testing.assert_array_equal(b, a.sum(0))
    assert seen == [7]
    with pytest.raises(InterpreterError, match="'colsum' was not given"):
        run(function(body, A, B), a, b)


@pytest.mark.parametrize("given, stored", [(None, 0), (5, 5), (0, 0)])
def test_what_an_external_function_gives_is_a_value(given, stored):
    B = decl_buffer((1,), "int32", name="B")
    b = np.full(1, 9, "int32")
    run(function(Store(B, intrinsic("call_packed", "f", 3), (IntImm(0),)), B), b, externs={"f": lambda x: given})
    assert b[0] == stored


def test_assumptions_are_checked():
    n = Var("n")
    f = function(seq([Evaluate(intrinsic("assume", binary("eq", n % 4, 0))), nothing()]), n)
    run(f, 8)
    with pytest.raises(InterpreterError, match="an assumption does not hold"):
        run(f, 6)


def test_arguments_are_checked():
    f = matmul()
    a, b, c = random(4, 6), random(6, 5), np.zeros((4, 5), "float32")
    with pytest.raises(InterpreterError, match="matmul takes 3 argument"):
        run(f, a, b)
    with pytest.raises(InterpreterError, match="argument B is float64, expected float32"):
        run(f, a, b.astype("float64"), c)
    with pytest.raises(InterpreterError, match="argument A has 1 dimension"):
        run(f, a[0], b, c)
    with pytest.raises(InterpreterError, match="an extent of argument A is 3, expected 4"):
        run(f, a[:3], b, c)
    square = matmul(4, 4, 4)
    with pytest.raises(InterpreterError, match="arguments A and C overlap"):
        run(square, c[:, :4], random(4, 4), c[:, :4])


def test_sliced_outputs_are_written_in_place():
    whole = np.zeros((4, 10), "float32")
    a, b = random(4, 6), random(6, 5)
    run(matmul(), a, b, whole[:, ::2])
    np.testing.assert_allclose(whole[:, ::2], a @ b, rtol=1e-6)
    assert not whole[:, 1::2].any()


def test_bounds_of_bit_operations_are_not_too_tight():
    B, i = decl_buffer((7,), name="B"), Var("i")
    with pytest.raises(InterpreterError, match=r"B\[7\] is out of bounds"):
        run(function(loop(i, 6, Store(B, const(1.0), (i | 6,))), B), np.zeros(7, "float32"))


def test_a_buffer_between_two_parallel_loops_is_shared():
    B, t, i, j = decl_buffer((4,), name="B"), decl_buffer((4,), name="t"), Var("i"), Var("j")
    first = loop(i, 4, Store(t, cast("float32", i), (i,)), "parallel")
    second = loop(j, 4, Store(B, t[3 - j], (j,)), "parallel")
    b = np.zeros(4, "float32")
    run(function(root(seq([first, second]), t), B), b)
    assert b.tolist() == [3, 2, 1, 0]


def test_shared_memory_belongs_to_the_threads_of_a_block():
    B, t, i = decl_buffer((4,), name="B"), decl_buffer((1,), name="t", scope="shared"), Var("i")
    zero = IntImm(0)
    only_first = IfThenElse(binary("eq", i, 0), Store(t, const(1.0), (zero,)))
    body = loop(i, 4, seq([only_first, Store(B, t[0], (i,))]), "thread_binding", "threadIdx.x")
    with pytest.raises(InterpreterError, match="touch element 0 of t .one reads, one writes"):
        run(function(root(body, t), B), np.zeros(4, "float32"))


def test_memory_is_read_again_after_a_store():
    B, first, second = decl_buffer((2,), "int32", "B"), Var("a"), Var("b")
    at = IntImm(0)
    body = LetStmt(
        first,
        B[0],
        seq([Store(B, first + 1, (at,)), LetStmt(second, B[0], Store(B, second * 10, (IntImm(1),)))]),
    )
    b = np.array([4, 0], "int32")
    run(function(body, B), b)
    assert b.tolist() == [5, 50]


def test_arithmetic_of_a_branch_not_taken_is_not_reused():
    B, k = decl_buffer((8,), "int32", "B"), Var("k")
    one = IntImm(1)
    body = LetStmt(k, B[0], seq([IfThenElse(k > 100, Store(B, one, (k * 2,))), Store(B, one + 1, (k * 2,))]))
    b = np.array([3] + [0] * 7, "int32")
    run(function(body, B), b)
    assert b[6] == 2


def test_wide_integers_round_once_to_float32():
    x = Var("x", "int64")
    value = 2**60 + 2**36 + 1  # just above a tie of float32; float64 would drop the 1
    assert float(interp.evaluate(cast("float32", x), {x: value})) == 2.0**60 + 2**37


def test_only_functions_run():
    for wrong in (IRModule({}), PrimFunc, None):
        with pytest.raises(InterpreterError, match="run takes a PrimFunc, not"):
            interp.run(wrong)


def test_memory_seen_through_a_view_is_made_outside_of_the_concurrent_loop_that_writes_it():
    rows = from_source("""
@T.prim_func
def rows(B: T.Buffer((2, 6), "int32")):
    A = T.alloc_buffer((2, 6), "int32")
    for i in range(2):
        with T.block("row"):
            vi = T.axis.spatial(2, i)
            V = T.match_buffer(A[vi, 0:6], (6,), "int32", offset_factor=1)
            W = T.match_buffer(B[vi, 0:6], (6,), "int32", offset_factor=1)
            for j in T.parallel(6):
                with T.block("element"):
                    vj = T.axis.spatial(6, j)
                    V[vj] = vi * 10 + vj
                    W[vj] = V[vj] + 1
""")
    out = np.zeros((2, 6), "int32")
    interp.run(rows, out)
    assert out.tolist() == [[1, 2, 3, 4, 5, 6], [11, 12, 13, 14, 15, 16]]
