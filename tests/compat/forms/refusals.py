"""Calls that TVM refuses: some are refused here as well, others are accepted, and the result is right.

A test that expects TVM's error stops at the latter. They stand here as forms that check the result, which no message
asks for, beside a form of the same name that expects the error.
"""
import pytest

from tilewright.compat import tvm
from tilewright.script import from_source
from tilewright.script import tir as T

from . import form
from .same import check_same

te, tir = tvm.te, tvm.tir

MESSAGE = "DID NOT RAISE"
WIDER = "accepted here: legality is decided by what the program computes, and the result is right"


def accepted(change):
    """Decorator: change() gives a function and a schedule of it that TVM refuses to make, and that is right."""
    def right():
        func, sch = change()
        check_same(func, sch)

    def raises():
        with pytest.raises(tir.ScheduleError):
            change()
    right.__name__, raises.__name__ = f"{change.__name__}_is_right", f"{change.__name__}_raises"
    right.__module__ = raises.__module__ = change.__module__
    form()(right)
    return form(MESSAGE, refused=WIDER)(raises)


@T.prim_func
def sums_of_chosen(A: T.Buffer((16, 32), "float32"), B: T.Buffer((16,), "float32")):
    for i, k in T.grid(16, 8):
        with T.block("B"):
            vi = T.axis.S(16, i)
            vk = T.axis.R(32, k * k // 2)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def below_a_predicate(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            T.where(i * 8 + j < 20)
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)


def doubled(columns, axis):
    """B = A * 2 at the columns where the second axis, of this source, is."""
    return from_source(f'''@T.prim_func
def doubled(A: T.Buffer((8, {columns}), "float32"), B: T.Buffer((8, {columns}), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi = T.axis.S(8, i)
            vj = {axis}
            B[vi, vj] = A[vi, vj] * T.float32(2)
''')


@T.prim_func
def squares(A: T.Buffer((40, 4), "float32"), B: T.Buffer((40, 4), "float32")):
    for i, j, k in T.grid(6, 4, 4):
        with T.block("B"):
            vi = T.axis.S(40, i * i + j)
            vk = T.axis.S(4, k)
            B[vi, vk] = A[vi, vk] + T.float32(1)


def reordered(func, *order):
    sch = tir.Schedule(func)
    loops = sch.get_loops("B")
    sch.reorder(*[loops[k] for k in order])
    return func, sch


@accepted
def parallel_beside_a_sum_over_chosen_elements():
    sch = tir.Schedule(sums_of_chosen)
    sch.parallel(sch.get_loops("B")[0])
    return sums_of_chosen, sch


@accepted
def reorder_below_a_predicate():
    return reordered(below_a_predicate, 1, 0)


@accepted
def reorder_with_steps():
    return reordered(doubled(32, "T.axis.S(32, j * 4)"), 1, 0)


@accepted
def reorder_of_a_scan():
    return reordered(doubled(8, "T.axis.scan(8, j)"), 1, 0)


@accepted
def reorder_with_squares():
    return reordered(squares, 0, 2, 1)


@T.prim_func
def from_one(A: T.Buffer((8, 9), "float32"), B: T.Buffer((8, 9), "float32")):
    for i in range(8):
        for j in range(1, 9):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)


@accepted
def split_and_fuse_from_one():
    sch = tir.Schedule(from_one)
    i, j = sch.get_loops("B")
    sch.split(sch.fuse(i, j), [None, 5])
    return from_one, sch


# ---- rfactor

def rows(init="B[vi] = T.float32(0)"):
    """Sums of rows, with this statement first."""
    return tvm.script.from_source(f'''@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32")):
    for i, k in T.grid(16, 16):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                {init}
            B[vi] = B[vi] + A[vi, vk]
''')


def factored(func, axis=0):
    sch = tir.Schedule(func)
    sch.rfactor(sch.get_loops("B")[1], axis)
    return func, sch


@accepted
def sums_that_start_at_one():
    return factored(rows("B[vi] = T.float32(1)"))


@accepted
def sums_that_start_at_a_variable():
    return factored(rows("zero: T.float32 = T.float32(0)\n                B[vi] = zero"))


@accepted
def sums_below_a_predicate():
    sch = tir.Schedule(rows())
    outer, _ = sch.split(sch.get_loops("B")[1], [None, 5])
    sch.rfactor(outer, 1)
    return rows(), sch


def greatest(values, shape=16):
    """The place and the value of the greatest element of each row; `values` says how both are stored."""
    return tvm.script.from_source(f'''@T.prim_func
def main(idx: T.Buffer((16, 16), "int32"), val: T.Buffer((16, 16), "float32"), m0: T.Buffer(({shape},), "int32"),
         m1: T.Buffer((16,), "float32")):
    for i, k in T.grid(16, 16):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                m0[vi] = -1
                m1[vi] = T.min_value("float32")
            v0: T.int32 = T.Select(m1[vi] >= val[vi, vk], m0[vi], idx[vi, vk])
            {values}
''')


@accepted
def greatest_in_buffers_of_different_shapes():
    return factored(greatest("v1: T.float32 = T.Select(m1[vi] >= val[vi, vk], m1[vi], val[vi, vk])\n"
                             "            m0[vi] = v0\n            m1[vi] = v1", shape=32), 1)


@accepted
def greatest_with_one_variable():
    return factored(greatest("m0[vi] = v0\n            m1[vi] = T.Select(m1[vi] >= val[vi, vk], m1[vi], "
                             "val[vi, vk])"), 1)


# ---- moves and caches

def two_consumers(last="D[vi, vj] = B[vi, vj]"):
    return tvm.script.from_source(f'''@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]
    for i, j in T.grid(16, 16):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            {last}
''')


def moved(func):
    sch = tir.Schedule(func)
    sch.compute_at("B", sch.get_loops("C")[0])
    return func, sch


@accepted
def producers_at_the_first_of_two_consumers():
    return moved(two_consumers())


@accepted
def producers_of_what_is_written_again_later():
    return moved(two_consumers("B[vi, vj] = C[vi, vj]"))


@T.prim_func
def written_twice(B: T.Buffer((16,), "float32")):
    A = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("A0"):
            v = T.axis.S(16, i)
            A[v] = T.float32(1)
    for i in range(16):
        with T.block("A1"):
            v = T.axis.S(16, i)
            A[v] = T.float32(2)
    for i in range(16):
        with T.block("B"):
            v = T.axis.S(16, i)
            B[v] = A[v]


def cached(block_of):
    sch = tir.Schedule(written_twice)
    sch.cache_read(block_of(sch, "B"), 0, "global")
    return written_twice, sch


@accepted
def caches_of_what_two_blocks_write():
    return cached(lambda sch, name: sch.get_block(name))


@accepted
def caches_of_what_two_blocks_write_by_name():
    return cached(lambda sch, name: name)


@accepted
def padding_of_no_sum():
    @T.prim_func
    def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
        for i, j in T.grid(16, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
    sch = tir.Schedule(main)
    sch.pad_einsum("B", [5, 5])
    return main, sch


# ---- refused here as well

def by_address(statement, by_name):
    func = tvm.script.from_source(f'''@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[0:16, 0:16])
            T.writes(C[0:16, 0:16])
            T.evaluate(B.access_ptr("r", extent=16))
            {statement}
            C[vi, vj] = B[vi, vj] + T.float32(1)
''')
    sch = tir.Schedule(func)
    with pytest.raises(tir.ScheduleError):
        sch.compute_inline("B" if by_name else sch.get_block("B"))


@form(MESSAGE)
def inlining_of_what_is_read_by_address():
    by_address("T.evaluate(0)", by_name=False)


@form(MESSAGE)
def inlining_by_name_of_what_is_read_by_address():
    by_address("T.evaluate(0)", by_name=True)


@form(MESSAGE)
def inlining_into_what_is_written_by_address():
    by_address("T.evaluate(C.access_ptr('w', extent=16))", by_name=False)


@form(MESSAGE)
def inlining_by_name_into_what_is_written_by_address():
    by_address("T.evaluate(C.access_ptr('w', extent=16))", by_name=True)
