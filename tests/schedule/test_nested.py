"""Primitives on blocks inside other blocks, and on blocks that hold others."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.support.errors import ScheduleError
from tilewright.tir import interp


@T.prim_func
def matmul(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]


@T.prim_func
def stages(A: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32")):
    """A block that holds two stages, over tiles."""
    for i, j in T.grid(4, 4):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            T.writes(D[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            B = T.alloc_buffer((4, 4))
            for x, y in T.grid(4, 4):
                with T.block("B"):
                    vx, vy = T.axis.remap("SS", [x, y])
                    B[vx, vy] = A[vi * 4 + vx, vj * 4 + vy] + T.float32(1)
            for x, y in T.grid(4, 4):
                with T.block("D"):
                    vx, vy = T.axis.remap("SS", [x, y])
                    D[vi * 4 + vx, vj * 4 + vy] = B[vx, vy] * B[vx, 3 - vy]


a, b = np.random.default_rng(0).random((2, 16, 16), "float32")


def check(sch: Schedule, expected, *inputs) -> None:
    """The function and its replay compute `expected`, natively and under the interpreter."""
    again = Schedule(sch.original)
    sch.trace.apply_to_schedule(again)
    assert str(again) == str(sch)
    for run in (tw.build(sch.func), lambda *x: interp.run(sch.func, *x)):
        out = np.zeros((16, 16), "float32")
        run(*(x.copy() for x in inputs), out)
        np.testing.assert_allclose(out, expected, rtol=1e-5)


def start(func) -> Schedule:
    sch = Schedule(func)
    sch.original = func
    return sch


def squares():
    tiles = (a + 1).reshape(4, 4, 4, 4)
    return (tiles * tiles[..., ::-1]).reshape(16, 16)


def tiled():
    sch = start(matmul)
    loops = [x for loop in sch.get_loops("C") for x in sch.split(loop, [None, 4])]
    sch.reorder(*loops[::2], *loops[1::2])
    return sch, loops, sch.blockize(loops[1])


def test_what_a_block_of_blocks_reads_is_cached():
    sch, loops, outer = tiled()
    copy = sch.cache_read(outer, 1, "local")
    sch.compute_at(copy, loops[4])
    text = str(sch)
    assert "B_local[vj_o * 4 + vj_i, vk_o * 4 + vk_i]" in text and "B_local[v0, v1] = B[v0, v1]" in text
    check(sch, a @ b.T, a, b)


def test_a_cache_inside_of_a_block_belongs_to_it():
    sch = start(stages)
    sch.cache_read("B", 0, "local")
    assert sch.get(sch.get_block("tile")).alloc_buffers[-1].name == "A_local"
    sch.cache_write("D", 0, "local")
    check(sch, squares(), a)
    assert [r.buffer.name for r in sch.get(sch.get_block("tile")).writes] == ["D"]


def test_stages_inside_of_a_block_move_and_dissolve():
    sch = start(stages)
    sch.compute_at("B", sch.get_loops("D")[0])
    check(sch, squares(), a)
    sch = start(stages)
    sch.compute_inline("B")
    assert "B = T.alloc_buffer" not in str(sch)
    check(sch, squares(), a)
    sch = start(stages)
    sch.reverse_compute_at("D", sch.get_loops("B")[0])
    check(sch, squares(), a)


def test_a_block_of_blocks_moves():
    @T.prim_func
    def two(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        B = T.alloc_buffer((16, 16))
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
                T.writes(B[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
                for x, y in T.grid(4, 4):
                    with T.block("B_inner"):
                        vx, vy = T.axis.remap("SS", [x, y])
                        B[vi * 4 + vx, vj * 4 + vy] = A[vi * 4 + vx, vj * 4 + vy] + T.float32(1)
        for i, j in T.grid(16, 16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] * T.float32(2)

    sch = start(two)
    i, _ = sch.get_loops("C")
    outer, _ = sch.split(i, [None, 8])
    sch.compute_at("B", outer)
    assert [str(loop.extent) for loop in map(sch.get, sch.get_loops("B"))] == ["2", "2", "4"]
    check(sch, (a + 1) * 2, a)


def test_what_must_stay():
    sch = start(stages)
    with pytest.raises(ScheduleError, match="writes D, an output"):
        sch.compute_inline("D")                     # D is memory of the function around
    with pytest.raises(ScheduleError, match="block B.* not inside the same block"):
        sch.compute_at("B", sch.get_loops("tile")[0])
    sch, loops, outer = tiled()
    with pytest.raises(ScheduleError, match="block C_o around block C has an init"):
        sch.cache_read("C", 1, "local")


def test_the_regions_of_the_blocks_around_grow():
    @T.prim_func
    def edges(A: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32")):
        for i in range(16):
            with T.block("row"):
                vi = T.axis.spatial(16, i)
                T.reads(A[vi, 0:16])
                T.writes(D[vi, 0:16])
                for y in range(16):
                    with T.block("D"):
                        vy = T.axis.spatial(16, y)
                        D[vi, vy] = A[vi, vy] + A[vi, 15 - vy]

    sch = start(edges)
    sch.cache_read("D", 0, "local")
    row = sch.get(sch.get_block("row"))
    assert [str(r) for r in row.reads] == ["A[vi, 0:16]"] and [b.name for b in row.alloc_buffers] == ["A_local"]
    check(sch, a + a[:, ::-1], a)


def twice_named(second: str) -> str:
    """A block of three stages that names its memory twice; `second` writes by the second name."""
    return f"""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), D: T.Buffer((16,), "float32")):
    for io in range(4):
        with T.block("tile"):
            vo = T.axis.spatial(4, io)
            T.reads(A[vo * 4:vo * 4 + 4])
            T.writes(B[vo * 4:vo * 4 + 4], D[vo * 4:vo * 4 + 4])
            V = T.match_buffer(B[vo * 4:vo * 4 + 4], (4,), offset_factor=1)
            W = T.match_buffer(B[vo * 4:vo * 4 + 4], (4,), offset_factor=1)
            for i in range(4):
                with T.block("first"):
                    vi = T.axis.spatial(4, i)
                    V[vi] = A[vo * 4 + vi]
            for i in range(4):
                with T.block("second"):
                    vi = T.axis.spatial(4, i)
                    {second}
            for i in range(4):
                with T.block("last"):
                    vi = T.axis.spatial(4, i)
                    D[vo * 4 + vi] = V[vi]
"""


@pytest.mark.parametrize("second", ["B[vo * 4 + vi] = A[vo * 4 + vi] * 2.0", "W[vi] = A[vo * 4 + vi] * 2.0"])
def test_memory_with_two_names_in_a_block_is_refused(second):
    with pytest.raises(ScheduleError, match="in block tile (B and V|V and W) are the same memory, which is written"):
        Schedule(from_source(twice_named(second)))


def test_a_view_that_stands_for_its_source_is_one_name():
    sch = Schedule(from_source(twice_named("V[vi] = A[vo * 4 + vi] * 2.0")))
    with pytest.raises(ScheduleError, match="block"):
        sch.reverse_compute_at("last", sch.get_loops("first")[-1])
    sch.reverse_compute_at("last", sch.get_loops("second")[-1])
    x, outs = np.arange(16, dtype="float32"), np.zeros((2, 16), "float32")
    interp.run(sch.func, x, *outs)
    np.testing.assert_array_equal(outs, [x * 2, x * 2])


def test_a_block_that_holds_a_sum_states_no_read_of_its_output():
    sch = Schedule(from_source('''@T.prim_func
def f(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4, 8), "int32")):
    for i in range(4):
        with T.block("outer"):
            v = T.axis.spatial(4, i)
            T.reads(A[v, 0:8])
            T.writes(B[v], C[v, 0:8])
            for k in range(8):
                with T.block("B"):
                    r = T.axis.reduce(8, k)
                    with T.init():
                        B[v] = 0
                    B[v] = B[v] + A[v, r]
            for k in range(8):
                with T.block("C"):
                    r = T.axis.spatial(8, k)
                    C[v, r] = A[v, r]
'''))
    sch.decompose_reduction("B", sch.get_loops("B")[-1])
    sch.cache_read("C", 0, "local")
    assert [r.buffer.name for r in sch.get("outer").reads] == ["A"]


def test_an_argument_in_a_new_layout_is_an_argument_after_a_block_was_worked_in():
    sch = Schedule(from_source('''@T.prim_func
def f(A: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32"), E: T.Buffer((8,), "int32")):
    for i in range(4):
        with T.block("tile"):
            v = T.axis.spatial(4, i)
            for x in range(4):
                with T.block("D"):
                    w = T.axis.spatial(4, x)
                    D[v * 4 + w] = A[v * 4 + w]
    for i in range(8):
        with T.block("E"):
            v = T.axis.spatial(8, i)
            E[v] = A[v * 2]
'''))
    sch.cache_read("D", 0, "local")
    sch.transform_layout("E", ("read", 0), lambda i: (i // 4, i % 4), of_arguments=True)
    sch.cache_read("E", 0, "local")
    a, d, e = np.arange(16, dtype="int32"), np.zeros(16, "int32"), np.zeros(8, "int32")
    interp.run(sch.func, a.reshape(4, 4), d, e)
    assert (d == a).all() and (e == a[::2]).all()
