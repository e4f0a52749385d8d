"""Schedules of blocks."""
import numpy as np

from tilewright.compat import tvm
from tilewright.script import tir as T

from . import form
from .same import check_same
from .shared import check_product, product, two_blocks

te, tir = tvm.te, tvm.tir


@form("ScheduleState|schedule.state|no attribute 'state'")
def state_of_a_schedule():
    state = tir.ScheduleState(product(), debug_mask="all")
    block = state.mod["main"].body.block.body.body.body.block
    assert state.get_sref(block).stmt.same_as(block) and tir.Schedule(product()).state.mod is not None


@form("get_sref")
def references_to_statements():
    sch = tir.Schedule(product())
    assert sch.get_sref(sch.get_block("B")).stmt.name_hint == "B"


@form(r"BlockRV\.__init__")
def handles_without_a_schedule():
    assert isinstance(tvm.tir.schedule.BlockRV(), tvm.tir.schedule.BlockRV) and tvm.tir.schedule.LoopRV() is not None


@form(r"tvm\.tir\.trace|Trace\.__init__")
def empty_traces():
    sch = tir.Schedule(product())
    tir.schedule.Trace([], {}).apply_to_schedule(sch, remove_postproc=False)
    tvm.ir.assert_structural_equal(sch.mod["main"], product())


@form("InstructionKind")
def kinds_of_instructions():
    assert tvm.tir.schedule.InstructionKind.get("Split").name == "Split"


@form(r"schedule\.schedule\.ScheduleError")
def errors_of_schedules():
    from tvm.tir.schedule.schedule import ScheduleError
    try:
        tir.Schedule(product()).get_block("nowhere")
    except ScheduleError as error:
        assert "nowhere" in str(error)
    else:
        raise AssertionError("no error")


@form("is_output_block")
def output_blocks():
    from tvm.tir.schedule.analysis import is_output_block
    sch = tir.Schedule(two_blocks())
    assert [is_output_block(sch, sch.get_block(name)) for name in "BC"] == [False, True]


@form("was removed by remove_rv")
def removed_handles():
    sch = tir.Schedule(product())
    sch.remove_rv(sch.get_block("B"))
    assert sch.get(sch.get_block("B")).name_hint == "B"


@form("unsafe_set_dtype")
def dtypes_of_buffers():
    sch = tir.Schedule(two_blocks())
    sch.unsafe_set_dtype("B", 0, "float16")
    a, c = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tvm.build(sch.mod)(a, c)
    np.testing.assert_array_equal(c, a + 2)


@form(r"split\(loop, factors")
def split_without_predicates():
    sch = tir.Schedule(product())
    sch.split(sch.get_loops("B")[0], [None, 4], disable_predication=True)
    check_product(sch.mod["main"])


@form("sampled N")
def products_of_samples():
    A = te.placeholder((64, 64), name="A")
    func = te.create_prim_func([A, te.compute((64, 64), lambda i, j: A[i, j] + 1, name="B")])
    sch = tir.Schedule(func, seed=1)
    i, j = sch.get_loops("B")
    inner = [sch.sample_perfect_tile(loop, n=2)[1] for loop in (i, j)]
    sch.split(sch.fuse(i, j), [None, inner[0] * inner[1]])
    check_same(func, sch)


# ---- caches

@form("got an unexpected keyword argument 'cons")
def consumers_of_a_cache():
    sch = tir.Schedule(two_blocks())
    sch.cache_write(sch.get_block("B"), 0, "local", consumer_blocks=[sch.get_block("C")])
    check_same(two_blocks(), sch)


@T.prim_func
def nested(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for o in range(4):
        with T.block("outer"):
            vo = T.axis.spatial(4, o)
            T.reads(A[vo * 4:vo * 4 + 4])
            T.writes(B[vo * 4:vo * 4 + 4])
            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vo * 4 + vi] = A[vo * 4 + vi] + T.float32(1)


@form("lies ins")
def caches_in_a_block():
    for by_name in (True, False):
        sch = tir.Schedule(nested)
        block = "B" if by_name else sch.get_block("B")
        sch.cache_read(block, 0, "local")
        sch.cache_write(block, 0, "local")
        check_same(nested, sch)


@form(r"cache_read\(block=C_o, .*holds other block")
def caches_of_a_block_of_blocks():
    sch = tir.Schedule(nested)
    sch.cache_read("outer", 0, "global")
    check_same(nested, sch)


@form("runs only w")
def caches_below_a_condition():
    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for o, i in T.grid(3, 6):
            with T.block("T_add"):
                T.where(o * 6 + i < 16)
                v = T.axis.spatial(16, o * 6 + i)
                B[v] = A[v] + T.float32(1)
    sch = tir.Schedule(main)
    sch.cache_write("T_add", 0, "global")
    check_same(main, sch)


@form("read_at|write_at")
def copies_at_a_loop():
    A = te.placeholder((8, 8), name="A")
    func = te.create_prim_func([A, te.compute((8, 8), lambda i, j: A[i, j] + 1, name="B")])
    sch = tir.Schedule(func)
    i, _ = sch.get_loops("B")
    sch.read_at(i, sch.get_block("B"), 0, "shared")
    sch.write_at(i, sch.get_block("B"), 0, "shared")
    check_same(func, sch)


# ---- moves

@T.prim_func
def blockized(A: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
    B = T.alloc_buffer((32, 32))
    for io, jo in T.grid(8, 8):
        with T.block("B_outer"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            T.reads(A[vio * 4:vio * 4 + 4, vjo * 4:vjo * 4 + 4])
            T.writes(B[vio * 4:vio * 4 + 4, vjo * 4:vjo * 4 + 4])
            for ii, ji in T.grid(4, 4):
                with T.block("B_inner"):
                    vi = T.axis.S(32, vio * 4 + ii)
                    vj = T.axis.S(32, vjo * 4 + ji)
                    B[vi, vj] = A[vi, vj] * T.float32(2)
    for io, jo, ii, ji in T.grid(4, 4, 8, 8):
        with T.block("C"):
            vi = T.axis.S(32, io * 8 + ii)
            vj = T.axis.S(32, jo * 8 + ji)
            C[vi, vj] = B[vi, vj] + T.float32(1)


@form("compute_at.*B_outer holds other blocks")
def blocks_of_blocks_move():
    sch = tir.Schedule(blockized)
    sch.compute_at("B_outer", sch.get_loops("C")[1], preserve_unit_loops=True)
    check_same(blockized, sch)


@form(r"the indices \(cvi ")
def consumers_of_a_part():
    @T.prim_func
    def main(A: T.Buffer((32, 32), "float32"), C: T.Buffer((31, 31), "float32")):
        B = T.alloc_buffer((8, 8, 4, 4))
        for i0, j0, i1, j1 in T.grid(8, 8, 4, 4):
            with T.block("B"):
                vi, vj, vm, vn = T.axis.remap("SSSS", [i0, j0, i1, j1])
                B[vi, vj, vm, vn] = A[vi * 4 + vm, vj * 4 + vn] * T.float32(2)
        for i, j in T.grid(31, 31):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi // 4, vj // 4, vi % 4, vj % 4] + T.float32(1)
    sch = tir.Schedule(main)
    sch.reverse_compute_inline("C")
    check_same(main, sch)


@form("drives no reduction axis")
def sums_over_fused_loops():
    @T.prim_func
    def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((1,), "float32")):
        for i0, i1 in T.grid(8, 8):
            with T.block("B"):
                v = T.axis.spatial(1, 0)
                v0, v1 = T.axis.remap("RR", [i0, i1])
                with T.init():
                    B[v] = T.float32(0)
                B[v] = B[v] + A[v0, v1]
    sch = tir.Schedule(main)
    _, inner = sch.split(sch.fuse(*sch.get_loops("B")), [None, 16])
    sch.rfactor(inner, 0)
    check_same(main, sch)


# ---- layouts

@form(r"'axis_separator'|set_axis_separator\(")
def separators():
    for buffer in (("write", 0), "B"):
        sch = tir.Schedule(two_blocks_of_two_dimensions())
        sch.transform_layout("B", buffer, lambda i, j: [i, tvm.te.AXIS_SEPARATOR, j])
        sch.set_axis_separator("B", ("read", 0), [1])
        check_same(two_blocks_of_two_dimensions(), sch)
    sch = tir.Schedule(two_blocks_of_two_dimensions())
    sch.transform_layout("C", "C", lambda i, j: [i, tvm.te.AXIS_SEPARATOR, j])
    sch.set_axis_separator("B", "A", [1])
    check_same(two_blocks_of_two_dimensions(), sch)


def two_blocks_of_two_dimensions():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1, name="B")
    return te.create_prim_func([A, te.compute((8, 8), lambda i, j: B[i, j] * 2, name="C")])


@form(r"\(i \+ N\) <file> N", refused="a quotient and a remainder of a shifted index are not shown to be one to one")
def layouts_from_an_offset():
    sch = tir.Schedule(two_blocks())
    sch.transform_layout("C", "C", lambda i: [0, (i + 4) // 8, (i + 4) % 8])


@form(r"transform_layout\(.*A is an argument of the func|transform_layout\(.*(m, n|<lambda>|pad_value)")
def layouts_of_arguments():
    n = 64
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[i, j] + 1, name="B")
    func = te.create_prim_func([A, te.compute((n, n), lambda i, j: B[i, j] * 2, name="C")])
    tiles = lambda m, n: (m // 16, n // 16, m % 16, n % 16)
    for block, source, target in (("B", ("read", 0), ("write", 0)), ("B", "A", "C")):
        sch = tir.Schedule(func)
        sch.transform_layout(block, source, tiles)
        sch.transform_layout("C", target, tiles)
        a = np.random.rand(n, n).astype("float32")
        tiled = lambda x: x.reshape(4, 16, 4, 16).transpose(0, 2, 1, 3)
        c = np.zeros((4, 4, 16, 16), "float32")
        tvm.build(sch.mod)(np.ascontiguousarray(tiled(a)), c)
        np.testing.assert_allclose(c, tiled((a + 1) * 2), rtol=1e-6)
    sch = tir.Schedule(two_blocks())
    sch.transform_layout("B", "A", lambda h: (h // 5, h % 5), pad_value=0)
    sch.transform_layout("C", "C", lambda h: (h // 5, h % 5), pad_value=7)
    a, c = np.zeros((2, 5), "float32"), np.ones((2, 5), "float32")
    tvm.build(sch.mod)(a, c)
    np.testing.assert_array_equal(c.ravel(), [2] * 8 + [7] * 2)


@form("is blockIdx.x already", refused="a loop runs in one way")
def loops_that_are_bound_again():
    sch = tir.Schedule(product())
    i, _ = sch.get_loops("B")
    sch.bind(i, "blockIdx.x")
    sch.bind(i, "threadIdx.x")
    sch.unroll(i)
    check_product(sch.mod["main"])


@form("B is touched below loop ko before", refused="a block of blocks that starts a sum and goes on with it is not cut")
def first_steps_of_blocks_of_blocks():
    @T.prim_func
    def main(A: T.Buffer((1, 64), "float32"), B: T.Buffer((1,), "float32")):
        for i, ko in T.grid(1, 2):
            with T.block("outer"):
                vi, vko = T.axis.remap("SR", [i, ko])
                C = T.alloc_buffer((32,))
                with T.init():
                    B[vi] = T.float32(0)
                for ki in range(32):
                    with T.block("inner_1"):
                        v = T.axis.S(32, ki)
                        C[v] = A[vi, vko * 32 + v]
                for ki in range(32):
                    with T.block("inner_2"):
                        v = T.axis.R(32, ki)
                        B[vi] += C[v]
    sch = tir.Schedule(main)
    sch.decompose_reduction("outer", sch.get_loops("outer")[1])
    check_same(main, sch)


@form("the thread_binding loop i_o would run a reduction",
      refused="a sum does not move below the loop of the threads that share it")
def reductions_below_threads():
    @T.prim_func
    def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        parts = T.alloc_buffer((8, 4), scope="local")
        for j in T.thread_binding(4, "blockIdx.x"):
            for i_o in T.thread_binding(4, "threadIdx.x"):
                for i_i in range(2):
                    with T.block("parts"):
                        vi = T.axis.S(8, i_o * 2 + i_i)
                        vj = T.axis.S(4, j)
                        parts[vi, vj] = A[vj, vi]
        for j in T.thread_binding(4, "blockIdx.x"):
            for i in T.thread_binding(8, "threadIdx.x"):
                with T.block("B"):
                    vj, vi = T.axis.remap("SR", [j, i])
                    with T.init():
                        B[vj] = T.float32(0)
                    B[vj] = B[vj] + parts[vi, vj]
    sch = tir.Schedule(main)
    sch.reverse_compute_at("B", sch.get_loops("parts")[1])


@form("an index map has no T.Cast", refused="an index map is built from indices and constants with +, -, *, // and %")
def casts_in_an_index_map():
    sch = tir.Schedule(two_blocks())
    sch.transform_block_layout("B", lambda i: (tir.Cast("int64", i),))
