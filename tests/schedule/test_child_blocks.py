"""Child and output blocks, order of iter vars, unit loops, and where compute_at puts a block."""
from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.core_support import check, matmul, matmul_relu
from tests.schedule.test_loops import loops_of
from tests.schedule.test_partition import chain, check_chain
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.te.prim_func import create_prim_func


def test_child_and_output_blocks():
    sch = Schedule(matmul_relu())
    i, j = sch.get_loops("D")
    sch.compute_at("C", i)
    assert [b.name for b in sch.get_child_blocks("root")] == ["C", "D"]
    assert [b.name for b in sch.get_child_blocks(i)] == ["C", "D"]
    assert [b.name for b in sch.get_child_blocks(j)] == ["D"] and sch.get_child_blocks("C") == []
    assert [b.name for b in sch.get_output_blocks("root")] == ["D"]
    assert sch.get_output_blocks(sch.get_block("root")) == [sch.get_block("D")]


def test_child_blocks_stop_at_nested_blocks():
    sch = Schedule(matmul())
    outer = sch.blockize(sch.get_loops("C")[1])
    assert sch.get_child_blocks("root") == [outer] and [b.name for b in sch.get_child_blocks(outer)] != [outer.name]


def test_iter_vars_in_another_order():
    func = matmul_relu()
    sch = Schedule(func)
    sch.reorder_block_iter_var("C", [1, 2, 0])
    assert 'vj, vr, vi = T.axis.remap("SRS", [j, r, i])' in str(sch)
    sch.compute_at("C", sch.get_loops("D")[0], preserve_unit_loops=True)
    assert loops_of(sch, "C") == ["i:4", "j:6", "i:1", "r:5"]
    check(sch, func, lambda a, b: np.maximum(a @ b, 0), (4, 5), (5, 6), size=(4, 6))


def test_unit_loops_around_blocks_and_loops():
    func = matmul()
    sch = Schedule(func)
    inner = sch.add_unit_loop("C")
    outer = sch.add_unit_loop(sch.get_loops("C")[0])
    assert loops_of(sch, "C") == ["u:1", "i:4", "j:6", "r:5", "u:1"]
    assert sch.get_loops("C")[0] == outer and sch.get_loops("C")[-1] == inner
    assert "for u, i, j, r, u_1 in T.grid(1, 4, 6, 5, 1):" in str(sch)
    sch.bind(outer, "blockIdx.x")
    check(sch, func, np.matmul, (4, 5), (5, 6), size=(4, 6))


def test_a_block_without_loops_gets_one():
    a = te.placeholder((), "int32", name="A")
    b = te.compute((), lambda: a[()] + 1, name="B")
    sch = Schedule(create_prim_func([a, b]))
    assert sch.get_loops("B") == []
    loop = sch.add_unit_loop("B")
    assert sch.get_loops("B") == [loop]


def stages():
    """D = B + C in one loop with two producers of its own: B = A + 1, C = A * 2, and E = D - 1 after it."""
    a = te.placeholder((8, 4), "int32", name="A")
    b = te.compute((8, 4), lambda i, j: a[i, j] + 1, name="B")
    c = te.compute((8, 4), lambda i, j: a[i, j] * 2, name="C")
    d = te.compute((8, 4), lambda i, j: b[i, j] + c[i, j], name="D")
    return create_prim_func([a, d])


@pytest.mark.parametrize("index, order", [(-1, ["C", "B", "D"]), (-2, ["B", "C", "D"]), (0, ["B", "C", "D"]),
                                          (1, ["C", "B", "D"])])
def test_the_index_says_where_compute_at_puts_a_block(index, order):
    func = stages()
    sch = Schedule(func)
    i, _ = sch.get_loops("D")
    sch.compute_at("C", i)
    sch.compute_at("B", i, index=index)
    assert [b.name for b in sch.get_child_blocks(i)] == order
    check(sch, func, lambda a: a * 3 + 1, (8, 4), size=(8, 4))


@pytest.mark.parametrize("index, order", [(-1, ["B", "E", "D"]), (-2, ["B", "D", "E"]), (1, ["B", "D", "E"]),
                                          (2, ["B", "E", "D"])])
def test_the_index_says_where_reverse_compute_at_puts_a_block(index, order):
    a = te.placeholder((8, 4), "int32", name="A")
    b = te.compute((8, 4), lambda i, j: a[i, j] + 1, name="B")
    d = te.compute((8, 4), lambda i, j: b[i, j] * 2, name="D")
    e = te.compute((8, 4), lambda i, j: b[i, j] * 3, name="E")
    sch = Schedule(create_prim_func([a, d, e]))
    i, _ = sch.get_loops("B")
    sch.reverse_compute_at("E", i)
    sch.reverse_compute_at("D", i, index=index)
    assert [block.name for block in sch.get_child_blocks(i)] == order


def test_partition_then_merge_is_the_same_computation():
    func = chain()
    sch = Schedule(func)
    sch.loop_partition(sch.get_loops("B")[0], [5, 5])
    sch.loop_partition(sch.get_loops("C")[0], [5, 5])
    sch.merge(sch.get_loops("B_i0")[0], sch.get_loops("B_i1")[0])
    assert [b.name for b in sch.get_child_blocks(sch.get_loops("B_i0")[0])] == ["B_i0", "B_i1"]
    check_chain(sch, func)
