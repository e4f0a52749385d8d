"""parallel, vectorize, unroll, bind, annotate, set_scope, unsafe_set_dtype."""
from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.core_support import check, check_replay, matmul, matmul_relu, scale
from tests.schedule.test_loops import refused
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.te.prim_func import create_prim_func


@pytest.mark.parametrize("primitive", ["parallel", "vectorize", "bind"])
def test_a_reduction_does_not_run_at_once(primitive):
    sch = Schedule(matmul())
    r = sch.get_loops("C")[2]
    extra = ("blockIdx.x",) if primitive == "bind" else ()
    text = refused(f"cannot {primitive} loop r: it carries the reduction axis of block C",
                   getattr(sch, primitive), r, *extra)
    assert "for r in range(5):  # <-- here" in text
    r0, r1 = sch.split(r, [None, 2])
    refused("reduction", getattr(sch, primitive), r1, *extra)
    fused = sch.fuse(sch.get_loops("C")[1], r0)
    refused("reduction", getattr(sch, primitive), fused, *extra)


def test_loops_of_the_output_run_at_once():
    func = matmul()
    sch = Schedule(func)
    i, j, r = sch.get_loops("C")
    sch.parallel(i)
    sch.reorder(r, j)
    sch.vectorize(j)
    sch.unroll(r)
    sch.unroll(r)
    assert [sch.get(rv).kind for rv in (i, r, j)] == ["parallel", "unroll", "vectorized"]
    check(sch, func, lambda a, b: a @ b, (4, 5), (5, 6), size=(4, 6))


def test_iterations_that_write_one_element_do_not_run_at_once():
    a = te.placeholder((8,), "int32", name="A")
    b = te.compute((8,), lambda i: a[i] * 3, name="B")
    sch = Schedule(create_prim_func([a, b]))
    i, = sch.get_loops("B")
    sch.parallel(i)
    refused("loop i is parallel already", sch.vectorize, i)


def test_constant_extents_are_needed():
    sch = Schedule(scale(te.var("n")))
    i, = sch.get_loops("B")
    refused("its extent n is not a constant", sch.vectorize, i)
    refused("its extent n is not a constant", sch.unroll, i)
    sch.parallel(i)


def test_bind():
    func = matmul_relu()
    sch = Schedule(func)
    i, j, _ = sch.get_loops("C")
    k, m = sch.get_loops("D")
    refused("'threadIdx.w' is not a thread axis", sch.bind, i, "threadIdx.w")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    sch.bind(k, "blockIdx.x")
    sch.bind(m, te.thread_axis("threadIdx.x"))
    check_replay(sch, func)


def test_loops_of_one_thread_axis_share_an_extent():
    func = matmul(4, 6)
    sch = Schedule(func)
    i, j, r = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.decompose_reduction("C", j)
    first, second = sch.get_loops("C_init")[1], j
    sch.bind(first, "threadIdx.x")
    outer, inner = sch.split(second, [None, 3])
    text = refused("loop j_1 has extent 3, and loop j_init, bound to threadIdx.x in the same kernel, has 6",
                   sch.bind, inner, "threadIdx.x")
    assert "share an extent" in text
    square = Schedule(matmul(4, 4))
    i, j, r = square.get_loops("C")
    square.bind(i, "blockIdx.x")
    refused("and the loops are nested", square.bind, j, "blockIdx.x")


def test_annotate_and_unannotate():
    func = scale()
    sch = Schedule(func)
    block = sch.get_block("B")
    i, = sch.get_loops(block)
    sch.annotate(i, "prefetch", {"distance": [1, 2.5], "how": None})
    sch.annotate(block, "tag", "x")
    assert sch.get(i).annotations == {"prefetch": {"distance": [1, 2.5], "how": None}}
    assert sch.get(block).annotations == {"tag": "x"}
    check_replay(sch, func)
    refused("has the annotation 'tag' already", sch.annotate, block, "tag", "y")
    refused("no annotation 'tog'", sch.unannotate, block, "tog")
    refused("is not plain data", sch.annotate, block, "f", print)
    refused("is not a string", sch.annotate, block, 3, 3)
    sch.unannotate(block, "tag")
    assert sch.get(block).annotations == {}


def test_set_scope():
    func = matmul_relu()
    sch = Schedule(func)
    block = sch.get_block("C")
    sch.set_scope(block, 0, "local")
    assert sch.get(block).writes[0].buffer.scope == "local"
    assert sch.root.block.alloc_buffers[0] is sch.get(sch.get_block("D")).reads[0].buffer
    sch.set_scope(block, "C", "shared")
    check(sch, func, lambda a, b: (a @ b).clip(0), (4, 5), (5, 6), size=(4, 6))
    refused("is an argument of the function", sch.set_scope, "D", 0, "local")
    refused("there is no number 1", sch.set_scope, block, 1, "local")
    refused("writes no buffer 'Q'", sch.set_scope, block, "Q", "local")
    refused("'fast' is not a storage scope", sch.set_scope, block, 0, "fast")


def test_a_dtype_is_recorded_by_its_name():
    func = matmul_relu()
    sch = Schedule(func)
    sch.unsafe_set_dtype("C", 0, np.float16)
    assert sch.trace.entries[-1].arguments["dtype"] == "float16"
    check_replay(sch, func)


def test_an_annotation_may_read_what_nothing_writes():
    func = from_source("""
@T.prim_func
def f(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            T.block_attr({"n": A[0]})
            C[vi] = A[vi]
""")
    assert Schedule(func).func is func


def test_a_bound_that_reads_what_an_earlier_iteration_left_is_refused():
    sch = Schedule(from_source('''@T.prim_func
def f(C: T.Buffer((3, 4, 8), "int32")):
    P = T.alloc_buffer((2,), "int32", scope="local")
    for t in range(3):
        for i in T.parallel(4):
            with T.block("first"):
                P[1] = 2
            for k in range(P[0]):
                with T.block("C"):
                    u, v, w = T.axis.remap("SSS", [t, i, k])
                    C[u, v, w] = 1
            with T.block("last"):
                P[0] = 3
'''))
    refused("would have a P of its own, and reads there what an earlier iteration of a loop around it left",
            sch.annotate, sch.get_loops("C")[0], "note", 1)
