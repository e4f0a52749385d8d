"""storage_align and set_axis_separator: print, flat form, meaning, replay."""
from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.core_support import check_replay
from tests.schedule.test_loops import refused
from tests.schedule.test_partition import chain, check_chain
from tilewright import driver, te
from tilewright.lowering.align_strides import aligned_strides
from tilewright.lowering.pipeline import lower
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp
from tilewright.tir.expr import IntImm


def run_everywhere(sch, func, reference, shape, size):
    """Block form, flat form and native code give what reference says."""
    check_replay(sch, func)
    x = np.random.default_rng(0).integers(-9, 9, shape).astype("int32")
    native = driver.build(sch.func, target="llvm")
    for run in (lambda *a: interp.run(sch.func, *a), lambda *a: interp.run(lower(sch.func), *a), native):
        out = np.full(size, 77, "int32")
        run(x.copy(), out)
        np.testing.assert_array_equal(out, reference(x.astype("int64")))


def test_rows_of_a_buffer_are_padded():
    func = chain()
    sch = Schedule(func)
    sch.storage_align("B", 0, 0, 8, 1)
    assert 'T.block_attr({"buffer_dim_align": [[0, 0, 8, 1]]})' in str(sch)
    text = str(lower(sch.func))
    assert 'B = T.decl_buffer((87,), "int32")' in text and "B[i * 9 + j] = A_1[i * 6 + j] * 3" in text
    run_everywhere(sch, func, lambda a: a * 4, (10, 6), (10, 6))


def test_the_alignment_counts_on_what_is_left_after_compaction():
    func = chain(16, 12)
    sch = Schedule(func)
    i, j = sch.get_loops("C")
    io, ii = sch.split(i, [None, 4])
    sch.compute_at("B", io)
    sch.storage_align("B", 0, -2, 32, 16)
    sch.parallel(io)
    text = str(lower(sch.func))
    assert 'B = T.decl_buffer((60,), "int32")' in text and "16" in text
    run_everywhere(sch, func, lambda a: a * 4, (16, 12), (16, 12))


def test_a_second_call_for_an_axis_replaces_the_first():
    sch = Schedule(chain())
    sch.storage_align("B", 0, 1, 4, 2)
    sch.storage_align("B", 0, -2, 8, 1)
    sch.storage_align("B", 0, 0, 8, 3)
    assert sch.get(sch.get_block("B")).annotations["buffer_dim_align"] == [[0, 0, 8, 3], [0, 1, 4, 2]]
    check_chain(sch, chain())
    run_everywhere(sch, chain(), lambda a: a * 4, (10, 6), (10, 6))


@pytest.mark.parametrize("shape, rows, strides", [
    ((128, 128), {-2: (32, 1)}, (129, 1)), ((4, 8, 16), {-3: (32, 8)}, (136, 16, 1)),
    ((4, 8, 16), {-2: (16, 4), -1: (4, 0)}, (544, 68, 4)), ((4, 8), {}, (8, 1)), ((5, 6), {-2: (6, 0)}, (6, 1))])
def test_strides(shape, rows, strides):
    assert tuple(s.value for s in aligned_strides([IntImm(d) for d in shape], rows)) == strides


def test_a_cache_of_an_argument_is_aligned():
    a = te.placeholder((8, 8), "int32", name="A")
    b = te.compute((8, 8), lambda i, j: a[j, i] + 1, name="B")
    func = create_prim_func([a, b])
    sch = Schedule(func)
    cache = sch.cache_read("B", 0, "local")
    refused("B is an argument", sch.storage_align, "B", 0, 0, 32, 1)
    sch.storage_align(cache, 0, 0, 32, 1)
    assert "* 33" in str(lower(sch.func))
    run_everywhere(sch, func, lambda x: x.T + 1, (8, 8), (8, 8))


def test_separators_are_kept_with_the_buffer():
    func = chain()
    sch = Schedule(func)
    sch.set_axis_separator("B", ("write", 0), [1])
    sch.set_axis_separator("C", "A", (0, 2))
    buffers = {r.buffer.name: r.buffer for r in sch.get(sch.get_block("C")).reads}
    assert buffers["B"].axis_separators == (1,) and buffers["A"].axis_separators == (0, 2)
    assert buffers["A"] is sch.func.buffers[0] and sch.root.block.alloc_buffers[0] is buffers["B"]
    assert "axis_separators=[1]" in str(sch)
    run_everywhere(sch, func, lambda a: a * 4, (10, 6), (10, 6))


def test_a_buffer_that_one_block_has_to_itself_is_aligned():
    func = from_source("""
@T.prim_func
def f(A: T.Buffer((6, 5), 'int32'), C: T.Buffer((6, 5), 'int32')):
    X = T.alloc_buffer((6, 5), 'int32')
    for i in range(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            T.reads(A[vi, 0:5], X[vi, 0:5])
            T.writes(C[vi, 0:5], X[vi, 0:5])
            for j in range(5):
                X[vi, j] = A[vi, j] * 2
            for j in range(5):
                C[vi, j] = X[vi, 4 - j]
""")
    sch = Schedule(func)
    sch.storage_align("C", 1, 0, 8, 4)
    run_everywhere(sch, func, lambda a: a[:, ::-1] * 2, (6, 5), (6, 5))
