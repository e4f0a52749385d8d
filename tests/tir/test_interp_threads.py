"""The interpreter's threads: barriers order them, missing ones are races, and one memory is shared by a block."""
from __future__ import annotations

import numpy as np
import pytest

from tilewright.support.errors import InterpreterError
from tilewright.tir import (
    Evaluate,
    IfThenElse,
    PrimFunc,
    Seq,
    Store,
    Var,
    binary,
    const,
    decl_buffer,
    loop,
    seq,
)
from tilewright.tir.arithmetic import intrinsic
from tilewright.tir.interp import run
from tilewright.tir.stmt import Allocate

BARRIER = Evaluate(intrinsic("sync", "shared"))
THREADS = 8


def kernel(body, *buffers) -> PrimFunc:
    return PrimFunc(tuple(b.data for b in buffers), body, {b.data: b for b in buffers}, {"global_symbol": "kernel"})


def tree_sum(blocks: int = 3, barrier: bool = True, shared_inside: bool = False) -> PrimFunc:
    """B[b] = sum of the 8 elements of A[b], by halving in shared memory."""
    A, B = decl_buffer((blocks, THREADS), name="A"), decl_buffer((blocks,), name="B")
    S = decl_buffer((THREADS,), name="S", scope="shared")
    b, t, step = Var("b"), Var("t"), Var("step")
    half = binary("shr", const(THREADS // 2), step)
    add = IfThenElse(binary("lt", t, half), Store(S, S[t] + S[t + half], (t,)))
    rounds = loop(step, 3, seq([add, BARRIER] if barrier else [add]))
    body = seq([Store(S, A[b, t], (t,)), BARRIER, rounds,
                IfThenElse(binary("eq", t, 0), Store(B, S[0], (b,)))])
    if shared_inside:
        nest = loop(t, THREADS, Allocate(S, body), "thread_binding", "threadIdx.x")
    else:
        nest = Allocate(S, loop(t, THREADS, body, "thread_binding", "threadIdx.x"))
    return kernel(loop(b, blocks, nest, "thread_binding", "blockIdx.x"), A, B)


@pytest.mark.parametrize("shared_inside", [False, True])
@pytest.mark.parametrize("check", [True, False])
def test_tree_sum(shared_inside, check):
    a, b = np.random.default_rng(0).standard_normal((3, THREADS)).astype("float32"), np.zeros(3, "float32")
    run(tree_sum(shared_inside=shared_inside), a, b, check=check)
    np.testing.assert_allclose(b, a.astype("float64").sum(1), rtol=1e-5)


def test_a_missing_barrier_is_a_race():
    a, b = np.ones((3, THREADS), "float32"), np.zeros(3, "float32")
    with pytest.raises(InterpreterError, match="threadIdx.x loop t touch element 1 of S"):
        run(tree_sum(barrier=False), a, b)


def test_a_barrier_that_some_threads_miss():
    t = Var("t")
    body = loop(t, THREADS, IfThenElse(binary("lt", t, 3), BARRIER), "thread_binding", "threadIdx.x")
    with pytest.raises(InterpreterError, match="reached by 3 of the 8 threads of threadIdx.x"):
        run(kernel(body))


def test_a_barrier_outside_of_threads():
    with pytest.raises(InterpreterError, match="outside of the threads of a block"):
        run(kernel(Seq((BARRIER,))))


def test_a_barrier_of_another_scope():
    body = loop(Var("t"), 4, Evaluate(intrinsic("sync", "warp")), "thread_binding", "threadIdx.x")
    with pytest.raises(InterpreterError, match="barriers of the threads of a block"):
        run(kernel(body))


def test_a_barrier_below_a_parallel_loop_of_a_thread():
    inner = loop(Var("i"), 4, BARRIER, "parallel")
    with pytest.raises(InterpreterError, match="below the parallel loop i of a single thread"):
        run(kernel(loop(Var("t"), 4, inner, "thread_binding", "threadIdx.x")))


def transpose_in_shared(barrier: bool = True) -> PrimFunc:
    """B = A.T for a 4 x 4 block of threads: thread (y, x) stores A[y, x] and reads what thread (x, y) stored."""
    A, B = decl_buffer((4, 4), name="A"), decl_buffer((4, 4), name="B")
    S = decl_buffer((4, 4), name="S", scope="shared")
    y, x = Var("y"), Var("x")
    body = seq([Store(S, A[y, x], (y, x)), *([BARRIER] if barrier else []), Store(B, S[x, y], (y, x))])
    nest = loop(y, 4, loop(x, 4, body, "thread_binding", "threadIdx.x"), "thread_binding", "threadIdx.y")
    return kernel(Allocate(S, nest), A, B)


def test_a_barrier_spans_both_axes_of_a_block():
    a, b = np.arange(16, dtype="float32").reshape(4, 4), np.zeros((4, 4), "float32")
    run(transpose_in_shared(), a, b)
    np.testing.assert_array_equal(b, a.T)


def test_without_it_threads_of_two_axes_race():
    a, b = np.arange(16, dtype="float32").reshape(4, 4), np.zeros((4, 4), "float32")
    with pytest.raises(InterpreterError, match="S is read at element 4, which nothing has written"):
        run(transpose_in_shared(False), a, b)


def test_a_block_race_is_found_through_its_barriers():
    B, t, b = decl_buffer((1,), name="B"), Var("t"), Var("b")
    body = seq([IfThenElse(binary("eq", t, 0), Store(B, const(1.0), (const(0),))), BARRIER])
    nest = loop(b, 2, loop(t, 4, body, "thread_binding", "threadIdx.x"), "thread_binding", "blockIdx.x")
    with pytest.raises(InterpreterError, match="thread_binding loop b touch element 0 of B .both write"):
        run(kernel(nest, B), np.zeros(1, "float32"))


def test_barriers_in_a_deep_nest():
    """Seventeen serial loops around a barrier: the generator continues in inner functions."""
    B, t = decl_buffer((4,), "int32", "B"), Var("t")
    S = decl_buffer((4,), "int32", name="S", scope="shared")
    body = seq([Store(S, t * 2, (t,)), BARRIER, Store(B, S[3 - t], (t,)), BARRIER])
    for k in range(17):
        body = loop(Var(f"i{k}"), 2 if k in (0, 16) else 1, body)
    out = np.zeros(4, "int32")
    run(kernel(Allocate(S, loop(t, 4, body, "thread_binding", "threadIdx.x")), B), out)
    assert out.tolist() == [6, 4, 2, 0]
