"""Reductions that the threads of a block share: legality, meaning before and after the lowering, old tutorials."""
from __future__ import annotations

import numpy as np
import pytest

from tilewright import te
from tilewright.lowering import PASSES, lower, split
from tilewright.schedule import Schedule, replay
from tilewright.script import from_source
from tilewright.support.errors import ScheduleError
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp
from tilewright.tir.expr import Call
from tilewright.tir.node import walk
from tilewright.tir.stmt import IRModule
from tilewright.tir.verify import verify
from tilewright.tir.verify.gpu import verify_gpu


def rows(n=5, m=12, reducer=te.sum, dtype="float32"):
    a = te.placeholder((n, m), dtype, name="A")
    k = te.reduce_axis((0, m), name="k")
    b = te.compute((n,), lambda i: reducer(a[i, k], axis=k), name="B")
    return create_prim_func([a, b], name="rows")


def check(func, reference, *shapes, out, dtype="float32"):
    """func computes reference at every stage of the lowering, and keeps the limits of a GPU."""
    rng, given = np.random.default_rng(0), func
    inputs = [rng.integers(-5, 5, s).astype(dtype) for s in shapes]
    for p in [None, *PASSES]:
        if p is not None:
            func = p.run(func)
            verify(func, stage=p.stage)
            verify_gpu(func)
        result = np.full(out, 77, dtype)
        interp.run(func, *inputs, result)
        np.testing.assert_array_equal(result, reference(*[x.astype("int64") for x in inputs]),
                                      err_msg=p.name if p else "block form")
    result = np.full(out, 77, dtype)
    interp.run(IRModule({f.name: f for f in split(lower(given, "cuda"), "cuda")}), *inputs, result)
    np.testing.assert_array_equal(result, reference(*[x.astype("int64") for x in inputs]), err_msg="split")
    return func


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 12, 8, 5])
@pytest.mark.parametrize("position", ["outer", "inner"])
def test_threads_share_a_sum(threads, position):
    """Ragged parts, any number of threads, steps of a thread next to each other or apart."""
    sch = Schedule(rows())
    i, k = sch.get_loops("B")
    ko, ki = sch.split(k, [threads, None] if position == "outer" else [None, threads])
    bound = ko if position == "outer" else ki
    if position == "inner":
        sch.reorder(ki, ko)
    sch.bind(i, "blockIdx.x")
    sch.bind(bound, "threadIdx.x")
    again = Schedule(rows())
    replay(sch.trace.as_json(), again)
    assert str(again) == str(sch)
    flat = check(sch.func, lambda a: a.sum(1), (5, 12), out=(5,))
    barriers = [n for n in walk(flat.body) if isinstance(n, Call) and n.op == "sync"]
    assert len(barriers) == (2 + int(np.ceil(np.log2(threads))) if threads > 1 else 0)


@pytest.mark.parametrize("reducer, reference", [(te.max, lambda a: a.max(1)), (te.min, lambda a: a.min(1)),
                                                (te.prod, lambda a: a.prod(1))])
def test_other_combiners(reducer, reference):
    sch = Schedule(rows(reducer=reducer, dtype="int32"))
    i, k = sch.get_loops("B")
    sch.bind(k, "threadIdx.y")
    check(sch.func, lambda a: reference(a).astype("int32"), (5, 12), out=(5,), dtype="int32")


def test_two_axes_of_threads_and_rows_beside_each_other():
    """Threads of y are rows, those of x share the sum of a row; the last rows are missing."""
    sch = Schedule(rows(n=7, m=8))
    i, k = sch.get_loops("B")
    io, ii = sch.split(i, [None, 4])
    sch.bind(io, "blockIdx.x")
    sch.bind(ii, "threadIdx.y")
    ko, ki = sch.split(k, [4, None])
    sch.bind(ko, "threadIdx.x")
    check(sch.func, lambda a: a.sum(1), (7, 8), out=(7,))


def test_a_reduction_over_two_axes_of_threads():
    a = te.placeholder((3, 4, 6), "float32", name="A")
    x, y = te.reduce_axis((0, 4), name="x"), te.reduce_axis((0, 6), name="y")
    b = te.compute((3,), lambda i: te.sum(a[i, x, y], axis=[x, y]), name="B")
    sch = Schedule(create_prim_func([a, b]))
    i, lx, ly = sch.get_loops("B")
    sch.bind(lx, "threadIdx.y")
    sch.bind(ly, "threadIdx.x")
    check(sch.func, lambda a: a.sum((1, 2)), (3, 4, 6), out=(3,))


def test_a_start_that_is_not_the_identity():
    """max(0, the largest of a row): the start counts once, whatever the parts start with."""
    source = """@T.prim_func
def rows(A: T.Buffer((4, 6), "int32"), B: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 6):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = T.max(B[vi], A[vi, vk] - 4)
"""
    sch = Schedule(from_source(source))
    sch.bind(sch.get_loops("B")[1], "threadIdx.x")
    check(sch.func, lambda a: np.maximum(0, (a - 4).max(1)), (4, 6), out=(4,), dtype="int32")


def test_the_position_of_the_largest():
    """A reduction of pairs: both parts meet in shared memory."""
    def combine(x, y):
        return te.select(x[1] >= y[1], x[0], y[0]), te.select(x[1] >= y[1], x[1], y[1])

    argmax = te.comm_reducer(combine, lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax")
    a = te.placeholder((3, 8), "int32", name="A")
    k = te.reduce_axis((0, 8), name="k")
    at, best = te.compute((3,), lambda i: argmax((k.var, a[i, k]), axis=k), name="B")
    sch = Schedule(create_prim_func([a, at, best]))
    sch.bind(sch.get_loops("B")[-1], "threadIdx.x")
    func = sch.func
    x = np.random.default_rng(0).permutation(24).reshape(3, 8).astype("int32")
    for p in [None, *PASSES]:
        func = p.run(func) if p else func
        index, value = np.zeros(3, "int32"), np.zeros(3, "int32")
        interp.run(func, x, index, value)
        np.testing.assert_array_equal(index, x.argmax(1))
        np.testing.assert_array_equal(value, x.max(1))


def test_the_reduction_tutorial():
    """Parts by rfactor, computed by the threads that then share the sum; only one of them stores."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    ko, ki = s[b].split(k, factor=16)
    parts = s.rfactor(b, ki)
    xo, xi = s[b].split(s[b].op.axis[0], factor=32)
    s[b].bind(xo, te.thread_axis("blockIdx.x"))
    s[b].bind(xi, te.thread_axis("threadIdx.y"))
    tx = te.thread_axis("threadIdx.x")
    s[b].bind(s[b].op.reduce_axis[0], tx)
    s[parts].compute_at(s[b], s[b].op.reduce_axis[0])
    s[b].set_store_predicate(tx.var.equal(0))
    sch = s.replay([a, b])
    check(sch.func, lambda a: a.sum(1), (37, 41), out=(37,))


@pytest.mark.parametrize("change, message", [
    (lambda sch, i, ko, ki: sch.bind(ki, "threadIdx.x"), "loop k_0, outside of it, runs steps of the same reduction"),
    (lambda sch, i, ko, ki: (sch.reorder(ko, i, ki), sch.bind(ko, "threadIdx.x")),
     "loop i drives an output axis of block B"),
    (lambda sch, i, ko, ki: sch.bind(ko, "blockIdx.x"), "it carries the reduction axis of block B"),
    (lambda sch, i, ko, ki: (sch.decompose_reduction("B", ko), sch.bind(ko, "threadIdx.x")),
     "not the whole reduction by a combiner"),
    (lambda sch, i, ko, ki: (sch.bind(ko, "threadIdx.x"), sch.decompose_reduction("B", ko)),
     "threads share the reduction"),
])
def test_refusals(change, message):
    sch = Schedule(rows())
    i, k = sch.get_loops("B")
    ko, ki = sch.split(k, [4, None])
    with pytest.raises(ScheduleError, match=message):
        change(sch, i, ko, ki)


def test_parts_that_meet_inside_of_a_block():
    """Their memory is that of the block, of which each block of threads runs an instance."""
    sch = Schedule(rows())
    i, k = sch.get_loops("B")
    outer = sch.add_unit_loop(sch.blockize(i))
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    sch.bind(outer, "blockIdx.y")
    check(sch.func, lambda a: a.sum(1), (5, 12), out=(5,))


def test_virtual_threads_outside_of_the_blocks_do_not_meet():
    sch = Schedule(create_prim_func(matmul_of(3, 4, 6)))
    i, j, k = sch.get_loops("C")
    sch.blockize(j)
    sch.bind(i, "vthread")
    sch.bind(k, "threadIdx.x")
    with pytest.raises(ScheduleError, match="loop j, between the threads, is blockIdx.y"):
        sch.bind(j, "blockIdx.y")


def matmul_of(n, m, steps):
    a, b = te.placeholder((n, steps), "int32", "A"), te.placeholder((steps, m), "int32", "B")
    k = te.reduce_axis((0, steps), name="k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]


def test_a_condition_on_a_loop_that_drives_nothing_is_one_of_the_steps():
    func = from_source("""@T.prim_func
def main(A: T.Buffer((5, 3), "float32"), B: T.Buffer((5,), "float32")):
    for i in T.thread_binding(5, thread="blockIdx.x"):
        for k in T.thread_binding(3, thread="threadIdx.x"):
            for again in range(4):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.where(again < 1)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
""")
    check(func, lambda a: a.sum(1), (5, 3), out=(5,))


def test_a_sum_that_nothing_reads():
    func = from_source("""@T.prim_func
def main(A: T.Buffer((5, 3), "float32"), B: T.Buffer((5,), "float32")):
    S = T.alloc_buffer((5,))
    for i in range(5):
        for k in T.thread_binding(3, thread="threadIdx.x"):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + A[vi, vk]
    for i in range(5):
        with T.block("B"):
            vi = T.axis.spatial(5, i)
            B[vi] = A[vi, 0]
""")
    check(func, lambda a: a[:, 0], (5, 3), out=(5,))
