"""Memory in scope shared that the threads of a block fill together: what may be scheduled so, and what comes out."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.lowering import PASSES, lower, split
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.support.errors import ScheduleError
from tilewright.tir import interp
from tilewright.tir.node import walk
from tilewright.tir.stmt import Allocate, IRModule
from tilewright.tir.verify import verify
from tilewright.tir.verify.gpu import verify_gpu

BARRIER = 'T.sync("shared")'


def check_every_form(func, inputs, want):
    """func gives `want` in block form, after every pass, and in the form that is meant for reading; its flat form."""
    def run(form, what):
        out = np.full_like(want, 93)
        interp.run(form, *[a.copy() for a in inputs], out)
        np.testing.assert_array_equal(out, want, what)

    given = func
    run(func, "block form")
    simple = lower(func, simple_mode=True)
    run(simple, "simple mode")
    for p in PASSES:
        func = p.run(func)
        verify(func, stage=p.stage)
        run(func, p.name)
    verify_gpu(func)
    run(IRModule({f.name: f for f in split(lower(given, "cuda"), "cuda")}), "split")
    return simple


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-9, 9, shape).astype("int32")


def shared_size(func):
    """The number of elements of each shared allocation, by its name."""
    return {n.buffer.name: n.buffer.shape[0].value for n in walk(func.body)
            if isinstance(n, Allocate) and n.buffer.scope == "shared"}


def matmul(n):
    a, b = te.placeholder((n, n), "int32", "A"), te.placeholder((n, n), "int32", "B")
    k = te.reduce_axis((0, n), "k")
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "C")])


def tiled(n, tile, bind=True):
    """(schedule, block C, the loop over tiles of the reduction, [(loop, axis)...])"""
    sch = Schedule(matmul(n))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    (by, ty), (bx, tx), (ko, ki) = (sch.split(x, [None, tile]) for x in (i, j, k))
    sch.reorder(by, bx, ty, tx, ko, ki)
    axes = [(by, "blockIdx.y"), (bx, "blockIdx.x"), (ty, "threadIdx.y"), (tx, "threadIdx.x")]
    for loop, axis in axes if bind else ():
        sch.bind(loop, axis)
    return sch, block, ko, axes


@pytest.mark.parametrize("n", [16, 15])
def test_a_tiled_product_with_tiles_that_all_threads_fetch(n):
    sch, block, ko, _ = tiled(n, 4)
    for operand in (0, 1):
        copy = sch.cache_read(block, operand, "shared")
        sch.compute_at(copy, ko)
        rows, columns = sch.get_loops(copy)[-2:]
        sch.bind(rows, "threadIdx.y")
        sch.bind(columns, "threadIdx.x")
    a, b = numbers(n, n), numbers(n, n, seed=1)
    flat = check_every_form(sch.func, [a, b], a @ b)
    assert str(flat).count(BARRIER) == 3                   # before, between and after the two copies
    assert shared_size(flat) == {"A_shared": 16, "B_shared": 16}


def test_bound_afterwards():
    sch, block, ko, axes = tiled(12, 4, bind=False)
    for operand, axis in enumerate(("threadIdx.x", "threadIdx.y")):
        copy = sch.cache_read(block, operand, "shared")
        sch.compute_at(copy, ko)                           # no threads yet: one row, or one column, of the tile
        axes.append((sch.get_loops(copy)[-1], axis))
    for loop, axis in axes:
        sch.bind(loop, axis)
    a, b = numbers(12, 12), numbers(12, 12, seed=1)
    flat = check_every_form(sch.func, [a, b], a @ b)
    assert shared_size(flat) == {"A_shared": 16, "B_shared": 16}


def test_loops_of_the_copies_bound_first():
    sch, block, ko, axes = tiled(8, 4, bind=False)
    copy = sch.cache_read(block, 0, "shared")
    sch.compute_at(copy, ko)
    for loop, axis in [(sch.get_loops(copy)[-1], "threadIdx.x"), *axes[::-1]]:
        sch.bind(loop, axis)
    a, b = numbers(8, 8), numbers(8, 8, seed=1)
    check_every_form(sch.func, [a, b], a @ b)


@pytest.mark.parametrize("bound", [(), ("threadIdx.x",), ("threadIdx.y",)])
def test_what_no_loop_spreads_runs_in_the_first_thread(bound):
    sch, block, ko, _ = tiled(8, 4)
    copy = sch.cache_read(block, 1, "shared")
    sch.compute_at(copy, ko)
    for loop, axis in zip(sch.get_loops(copy)[-2:], bound):
        sch.bind(loop, axis)
    a, b = numbers(8, 8), numbers(8, 8, seed=1)
    flat = str(check_every_form(sch.func, [a, b], a @ b))
    assert flat.count(BARRIER) == 2
    for axis in ("x", "y"):
        alone = any("if" in line and f"threadIdx_{axis} == 0" in line for line in flat.splitlines())
        assert alone == (f"threadIdx.{axis}" not in bound)


def test_a_copy_of_fused_loops_whose_parts_do_not_divide():
    sch, block, ko, _ = tiled(9, 3)
    copy = sch.cache_read(block, 0, "shared")
    sch.compute_at(copy, ko)
    fused = sch.fuse(*sch.get_loops(copy)[-2:])
    _, threads = sch.split(fused, [None, 2])               # two threads of three, nine elements
    sch.bind(threads, "threadIdx.x")
    a, b = numbers(9, 9), numbers(9, 9, seed=1)
    flat = str(check_every_form(sch.func, [a, b], a @ b))
    assert "threadIdx_x < 2" in flat


@pytest.mark.parametrize("n, tile", [(24, 8), (21, 8)])
def test_a_stencil_with_its_halo(n, tile):
    a = te.placeholder((n + 2,), "int32", "A")
    c = te.compute((n,), lambda i: a[i] + 2 * a[i + 1] + 4 * a[i + 2], "C")
    sch = Schedule(te.create_prim_func([a, c]))
    block = sch.get_block("C")
    bx, tx = sch.split(sch.get_loops(block)[0], [None, tile])
    sch.bind(bx, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")
    copy = sch.cache_read(block, 0, "shared")
    sch.compute_at(copy, tx)
    _, part = sch.split(sch.get_loops(copy)[-1], [None, tile])
    sch.bind(part, "threadIdx.x")
    x = numbers(n + 2)
    flat = check_every_form(sch.func, [x], x[:-2] + 2 * x[1:-1] + 4 * x[2:])
    assert str(flat).count(BARRIER) == 2


def test_a_value_that_every_thread_needs_is_computed_once():
    a = te.placeholder((6, 8), "int32", "A")
    k = te.reduce_axis((0, 8), "k")
    s = te.compute((6,), lambda i: te.sum(a[i, k], axis=k), "S")
    c = te.compute((6, 8), lambda i, j: a[i, j] - s[i], "C")
    sch = Schedule(te.create_prim_func([a, c]))
    i, j = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    sch.set_scope("S", 0, "shared")
    sch.compute_at("S", j)
    x = numbers(6, 8)
    assert str(check_every_form(sch.func, [x], x - x.sum(1, keepdims=True).astype("int32"))).count("== 0") >= 1


def test_virtual_threads_share_a_copy():
    sch = Schedule(matmul(8))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    bi, vi, ti = sch.split(i, [None, 2, 2])
    ko, ki = sch.split(k, [None, 4])
    sch.reorder(bi, vi, ti, ko, ki, j)
    for loop, axis in [(bi, "blockIdx.x"), (vi, "vthread"), (ti, "threadIdx.x")]:
        sch.bind(loop, axis)
    copy = sch.cache_read(block, 1, "shared")
    sch.compute_at(copy, ko)
    sch.bind(sch.split(sch.get_loops(copy)[-1], [None, 2])[1], "threadIdx.x")
    a, b = numbers(8, 8), numbers(8, 8, seed=1)
    check_every_form(sch.func, [a, b], a @ b)


@pytest.mark.parametrize("how", ["double_buffer", "pipeline"])
def test_tiles_that_are_fetched_ahead(how):
    sch, block, ko, _ = tiled(12, 4)
    copies = [sch.cache_read(block, operand, "shared") for operand in (0, 1)]
    for copy in copies:
        sch.compute_at(copy, ko)
        for loop, axis in zip(sch.get_loops(copy)[-2:], ("threadIdx.y", "threadIdx.x")):
            sch.bind(loop, axis)
        if how == "double_buffer":
            sch.annotate(copy, "double_buffer_scope", 0)
    if how == "pipeline":
        sch.annotate(ko, "software_pipeline_stage", [0, 0, 1])
        sch.annotate(ko, "software_pipeline_order", [0, 1, 2])
    a, b = numbers(12, 12), numbers(12, 12, seed=1)
    assert shared_size(check_every_form(sch.func, [a, b], a @ b)).keys() == {"A_shared", "B_shared"}
    assert shared_size(lower(sch.func)) == {"A_shared": 32, "B_shared": 32}


def test_stages():
    n = 12
    a, b = te.placeholder((n, n), "int32", "A"), te.placeholder((n, n), "int32", "B")
    k = te.reduce_axis((0, n), "k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "C")
    s = te.create_schedule(c.op)
    fetched, kept = [s.cache_read(t, "shared", [c]) for t in (a, b)], s.cache_write(c, "local")
    bx, by, tx, ty = (te.thread_axis(t) for t in ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y"))
    i, j = s[c].op.axis
    (yo, yi), (xo, xi) = s[c].split(i, 4), s[c].split(j, 4)
    s[c].reorder(yo, xo, yi, xi)
    for loop, axis in zip((yo, xo, yi, xi), (by, bx, ty, tx)):
        s[c].bind(loop, axis)
    s[kept].compute_at(s[c], xi)
    ko, _ = s[kept].split(kept.op.reduce_axis[0], 4)
    for t in fetched:
        s[t].compute_at(s[kept], ko)
        for loop, axis in zip(s[t].op.axis, (ty, tx)):
            s[t].bind(loop, axis)
    x, y, out = numbers(n, n), numbers(n, n, seed=1), np.zeros((n, n), "int32")
    for simple in (True, False):
        flat = tw.lower(s, [a, b, c], simple_mode=simple)["default_function"]
        interp.run(flat, x, y, out)
        np.testing.assert_array_equal(out, x @ y)
        assert shared_size(flat) == {"A_shared": 16, "B_shared": 16}


@pytest.mark.parametrize("n", [16, 20])
@pytest.mark.parametrize("double_buffer", [False, True])
def test_a_product_with_virtual_threads_registers_and_vectors(n, double_buffer):
    """Tiles of four virtual by four real threads, which fetch vectors together and keep operands in registers."""
    a, b = te.placeholder((n, n), "int32", "A"), te.placeholder((n, n), "int32", "B")
    k = te.reduce_axis((0, n), "k")
    c = te.compute((n, n), lambda i, j: te.sum(a[k, i] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    fetched, kept = [s.cache_read(t, "shared", [c]) for t in (a, b)], s.cache_write(c, "local")
    registers = [s.cache_read(t, "local", [kept]) for t in fetched]
    tx, ty = te.thread_axis("threadIdx.x"), te.thread_axis("threadIdx.y")
    outer = []
    for axis, block, thread in zip(s[c].op.axis, ("blockIdx.y", "blockIdx.x"), (ty, tx)):
        tile, inner = s[c].split(axis, 8)
        virtual, inner = s[c].split(inner, nparts=2)
        real, inner = s[c].split(inner, nparts=2)
        for loop, bound in ((tile, te.thread_axis(block)), (virtual, te.thread_axis("vthread")), (real, thread)):
            s[c].bind(loop, bound)
        outer.append((tile, virtual, real, inner))
    s[c].reorder(*(loop for level in zip(*outer) for loop in level))
    s[kept].compute_at(s[c], outer[1][2])
    ko, ki = s[kept].split(kept.op.reduce_axis[0], 4)
    s[kept].reorder(ko, ki, *kept.op.axis)
    for t, own in zip(fetched, registers):
        s[t].compute_at(s[kept], ko)
        s[own].compute_at(s[kept], ki)
        (y, _), (x, rest) = (s[t].split(axis, nparts=2) for axis in s[t].op.axis)
        s[t].bind(y, ty)
        s[t].bind(x, tx)
        s[t].vectorize(s[t].split(rest, 4)[1])
        if double_buffer:
            s[t].double_buffer()
    x, y = numbers(n, n), numbers(n, n, seed=1)
    for simple in (True, False):
        flat, out = tw.lower(s, [a, b, c], simple_mode=simple)["default_function"], np.zeros((n, n), "int32")
        interp.run(flat, x, y, out)
        np.testing.assert_array_equal(out, x.T @ y)
        versions = 2 if double_buffer and not simple else 1
        assert shared_size(flat) == {"A_shared": 32 * versions, "B_shared": 32 * versions}


def test_a_rewrite_of_a_nest_that_threads_share_is_checked_as_well():
    sch, block, ko, _ = tiled(8, 4)
    copy = sch.cache_read(block, 0, "shared")
    sch.compute_at(copy, ko)
    sch.bind(sch.get_loops(copy)[-1], "threadIdx.x")
    with pytest.raises(ScheduleError, match="the loops are nested: .* block A_shared writes A_shared_local in"):
        sch.cache_write(copy, 0, "local")


@pytest.mark.parametrize("n, threads, width", [(24, 8, 3), (32, 8, 2), (24, 12, 6)])
def test_a_window_that_threads_fetch_with_a_rest(n, threads, width):
    """Each thread reads `width` neighbours: the threads fetch theirs and the overlap, for which few of them run."""
    a = te.placeholder((n + width,), "int32", name="A")
    k = te.reduce_axis((0, width), name="k")
    b = te.compute((n,), lambda i: te.sum(a[i + k], axis=k), name="B")
    sch = Schedule(te.create_prim_func([a, b]))
    block = sch.get_block("B")
    i0, i1 = sch.split(sch.get_loops(block)[0], [None, threads])
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.x")
    copy = sch.cache_read(block, 0, "shared")
    sch.compute_at(copy, i1)
    _, lane = sch.split(sch.get_loops(copy)[-1], [None, threads])
    sch.bind(lane, "threadIdx.x")
    assert "T.where(" in str(sch)
    x = numbers(n + width)
    want = np.stack([x[j:j + n] for j in range(width)]).sum(0).astype("int32")
    assert BARRIER in str(check_every_form(sch.func, [x], want))


@pytest.mark.parametrize("axis", ["vthread", "threadIdx.y"])
def test_threads_do_not_share_what_a_block_with_views_allocates(axis):
    """What a view stands for is what the block declares; its own shared memory is of all threads all the same."""
    sch = Schedule(from_source("""@T.prim_func
def rows(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32")):
    for i in range(4):
        with T.block("row"):
            v = T.axis.spatial(4, i)
            T.reads(A[v, 0:8])
            T.writes(C[v, 0:8])
            S = T.alloc_buffer((8,), "int32", scope="shared")
            c = T.match_buffer(C[v, 0:8], (8,), "int32", offset_factor=1)
            for j in range(8):
                with T.block("fill"):
                    w = T.axis.spatial(8, j)
                    S[w] = A[v, w]
            for j in range(8):
                with T.block("copy"):
                    w = T.axis.spatial(8, j)
                    c[w] = S[7 - w]
"""))
    row, = sch.get_loops("row")
    with pytest.raises(ScheduleError, match="may touch the same element of S, which is written"):
        sch.bind(row, axis)
    sch.bind(row, "blockIdx.x")
    x = numbers(4, 8)
    check_every_form(sch.func, [x], x[:, ::-1].copy())


def test_a_reduction_that_each_thread_starts_is_not_divided_among_them():
    sch = Schedule(matmul(8))
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i, j)
    tile = sch.blockize(i)
    outer = sch.add_unit_loop(tile)
    sch.bind(j, "threadIdx.x")
    with pytest.raises(ScheduleError, match="loop j is bound to threadIdx.x inside of block C_o, which has an init"):
        sch.bind(outer, "threadIdx.x")
    sch.decompose_reduction(tile, k)


def test_the_elements_of_a_view_are_those_of_a_thread_when_the_view_is():
    sch = Schedule(from_source("""@T.prim_func
def rows(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32")):
    S = T.alloc_buffer((4, 8), "int32", scope="shared")
    for i, j in T.grid(4, 8):
        with T.block("fill"):
            v, w = T.axis.remap("SS", [i, j])
            T.reads(A[v, w])
            T.writes(S[v, w])
            a = T.match_buffer(A[v, w], (1, 1), "int32", offset_factor=1)
            s = T.match_buffer(S[v, w], (1, 1), "int32", scope="shared", offset_factor=1)
            for k in range(1):
                s[0, k] = a[0, k] * 3
        with T.block("copy"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = S[v, w]
"""))
    for loop, axis in zip(sch.get_loops("fill"), ("threadIdx.y", "threadIdx.x")):
        sch.bind(loop, axis)
    assert "== 0" not in str(lower(sch.func))
    x = numbers(4, 8)
    check_every_form(sch.func, [x], 3 * x)


def test_a_copy_inside_of_a_block_is_seen_by_the_loops_around_it():
    sch = Schedule(from_source("""@T.prim_func
def rows(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32")):
    for i in range(4):
        with T.block("row"):
            v = T.axis.spatial(4, i)
            c = T.match_buffer(C[v, 0:8], (8,), "int32", offset_factor=1)
            for j in range(8):
                with T.block("copy"):
                    w = T.axis.spatial(8, j)
                    c[w] = A[v, w]
"""))
    sch.bind(sch.get_loops("row")[0], "vthread")
    before = str(sch)
    with pytest.raises(ScheduleError, match="may touch the same element of c_shared, which is written"):
        sch.write_at(sch.get_loops("copy")[0], "copy", 0, "shared")
    assert str(sch) == before


def test_rows_of_threads_do_not_fill_one_row_of_shared_memory():
    """The threads of a row fill S together; those of another row would fill it with other values."""
    sch = Schedule(from_source("""@T.prim_func
def rows(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32")):
    S = T.alloc_buffer((8,), "int32", scope="shared")
    for i, j in T.grid(4, 8):
        for k in range(8):
            with T.block("fill"):
                v, w = T.axis.remap("SS", [i, k])
                S[w] = A[v, w]
        with T.block("copy"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = S[7 - w]
"""))
    row, thread, part = sch.get_loops("fill")
    sch.bind(thread, "threadIdx.x")
    sch.bind(part, "threadIdx.x")
    with pytest.raises(ScheduleError, match="may touch the same element of S, which is written"):
        sch.bind(row, "threadIdx.y")
    sch.bind(row, "blockIdx.x")
    x = numbers(4, 8)
    check_every_form(sch.func, [x], x[:, ::-1].copy())


def test_a_block_that_writes_local_memory_as_well_is_of_each_thread():
    a = te.placeholder((32,), "int32", name="A")
    b, c = te.compute((32,), lambda i: (a[i] + 1, a[i] * 2), name="BC")
    sch = Schedule(te.create_prim_func([a, te.compute((32,), lambda i: b[i] - c[i], name="D")]))
    outer, thread = sch.split(sch.get_loops("D")[0], [None, 8])
    sch.bind(outer, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    sch.set_scope("BC", 0, "shared")
    sch.set_scope("BC", 1, "local")
    sch.compute_at("BC", thread)
    x = numbers(32)
    assert BARRIER not in str(check_every_form(sch.func, [x], 1 - x))


@pytest.mark.parametrize("shift", [0, 1])
def test_threads_do_not_read_what_others_write_in_another_iteration(shift):
    """Thread k reads S[k * 2 + 2] for t = 1, which thread k + 1 writes for t = 0, with no barrier between."""
    sch = Schedule(from_source(f"""@T.prim_func
def rows(A: T.Buffer((4, 20), "int32"), C: T.Buffer((4, 8), "int32")):
    S = T.alloc_buffer((20,), "int32", scope="shared")
    L = T.alloc_buffer((8,), "int32", scope="shared")
    for i, j in T.grid(4, 8):
        for k in range(20):
            with T.block("fill"):
                v, w = T.axis.remap("SS", [i, k])
                S[w] = A[v, w]
        for t in range(2):
            for k in range(8):
                with T.block("take"):
                    u = T.axis.opaque(2, t)
                    w = T.axis.spatial(8, k)
                    L[w] = S[w * 2 + u + {shift}]
                with T.block("put"):
                    u = T.axis.opaque(2, t)
                    w = T.axis.spatial(8, k)
                    S[w * 2 + u] = L[w] + 1
        with T.block("copy"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = S[w]
"""))
    i, j, _ = sch.get_loops("fill")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    part = sch.get_loops("take")[-1]
    if shift:
        with pytest.raises(ScheduleError, match="two threads that share the work of loop k may touch"):
            sch.bind(part, "threadIdx.x")
    else:
        sch.bind(part, "threadIdx.x")
        x = numbers(4, 20)
        want = x[:, :8] + 1
        check_every_form(sch.func, [x], want)


@pytest.mark.parametrize("scope, keeps", [("shared", True), ("local", False)])
def test_what_an_earlier_iteration_left_is_there_in_memory_that_all_threads_see(scope, keeps):
    func = from_source(f'''@T.prim_func
def running(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, 8), "int32")):
    S = T.alloc_buffer((8,), "int32", scope="{scope}")
    for k in range(4):
        for x in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("S"):
                vk = T.axis.scan(4, k)
                v = T.axis.spatial(8, x)
                if vk == 0:
                    S[v] = 0
                S[v] = S[v] + A[vk, v]
            with T.block("B"):
                vk, v = T.axis.remap("SS", [k, x])
                B[vk, v] = S[v]
''')
    sch = Schedule(func)
    loop = sch.get_loops("B")[0]
    if keeps:
        sch.annotate(loop, "note", 1)
    else:
        with pytest.raises(ScheduleError, match="what an earlier iteration of a loop around it left"):
            sch.annotate(loop, "note", 1)


def test_memory_that_one_nest_alone_uses_belongs_to_it_wherever_it_is_allocated():
    """The first thread runs the nest that fills S, G included, so that no other blocks may be asked for inside."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    G = T.alloc_buffer((8,), "int32")
    S = T.alloc_buffer((8,), "int32", scope="shared")
    for t in T.thread_binding(8, thread="threadIdx.x"):
        for i in range(8):
            for z in range(1):
                with T.block("G"):
                    v = T.axis.spatial(8, i + z)
                    G[v] = A[v] + 1
            with T.block("S"):
                v = T.axis.spatial(8, i)
                S[v] = G[v] * 2
        with T.block("B"):
            v = T.axis.spatial(8, t)
            B[v] = S[7 - v]
""")
    sch = Schedule(func)
    a, out = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    for form in (sch.func, lower(sch.func)):
        interp.run(form, a, out)
        np.testing.assert_array_equal(out, (a[::-1] + 1) * 2)
    with pytest.raises(ScheduleError, match="bound to blockIdx.y inside of what the threads of threadIdx.x share"):
        sch.bind(sch.get_loops(sch.get_block("G"))[-1], "blockIdx.y")
