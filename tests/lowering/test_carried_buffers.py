"""Values that a guarded write leaves for later iterations stay alive."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.lowering.pipeline import lower
from tilewright.script import from_source
from tilewright.tir import interp

SOURCE = '''@T.prim_func
def f(A: T.Buffer((1,), "int32"), B: T.Buffer((4,), "int32")):
    S = T.alloc_buffer((1,), "int32")
    for i in range(4):
        with T.block("S"):
            v = T.axis.spatial(1, 0)
            T.where(i < 1)
            S[v] = A[v]
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = S[0] + vi
'''


def test_a_write_in_the_first_iteration_only():
    func, a = from_source(SOURCE), np.array([7], "int32")
    flat, built = lower(func), tw.build(func)
    for run in (lambda b: interp.run(func, a, b), lambda b: interp.run(flat, a, b), lambda b: built(a, b)):
        b = np.zeros(4, "int32")
        run(b)
        assert b.tolist() == [7, 8, 9, 10]


GUARDED = '''@T.prim_func
def f(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
    S = T.alloc_buffer((4,), "int32")
    for i in range(3):
        for j in range(4):
            with T.block("pad"):
                v = T.axis.spatial(4, j)
                T.where(j >= 3)
                S[v] = 1
        with T.block("S"):
            v = T.axis.spatial(3, i)
            S[v] = A[v]
        with T.block("B"):
            v = T.axis.spatial(3, i)
            B[v] = S[0] + S[3] * v
'''
BETWEEN = '''@T.prim_func
def f(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
    S = T.alloc_buffer((3,), "int32")
    C = T.alloc_buffer((3,), "int32")
    for i in range(3):
        with T.block("C"):
            v = T.axis.spatial(3, i)
            C[v] = v
        for j in range(2):
            with T.block("S"):
                v = T.axis.spatial(3, i)
                S[v] = A[v]
            with T.block("B"):
                v = T.axis.spatial(3, i)
                B[v] = S[0] + C[v]
'''
STRIDED = '''@T.prim_func
def f(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
    S = T.alloc_buffer((5,), "int32")
    for i in range(3):
        with T.block("first"):
            T.where(i < 1)
            for j in range(5):
                S[j] = A[0]
        for j in range(3):
            with T.block("even"):
                v = T.axis.spatial(3, j)
                S[v * 2] = 0
        with T.block("B"):
            v = T.axis.spatial(3, i)
            B[v] = S[3] + v
'''


@pytest.mark.parametrize("source", [GUARDED, BETWEEN, STRIDED], ids=["guarded", "between", "strided"])
def test_what_other_writes_of_the_iteration_leave_out(source):
    """B is A[0] + its index: the element that an earlier iteration wrote, which the writes beside it do not touch."""
    func, a = from_source(source), np.array([7, 5, 3], "int32")
    flat, built = lower(func), tw.build(func)
    for run in (lambda b: interp.run(func, a, b), lambda b: interp.run(flat, a, b), lambda b: built(a, b)):
        b = np.zeros(3, "int32")
        run(b)
        assert b.tolist() == [7, 8, 9]


def started(given, size):
    """A script of A with so many elements: B of `size` ones, which the first of four iterations of t sets to 100."""
    return f'''@T.prim_func
def f(A: T.Buffer(({given},), "int32"), D: T.Buffer((4, {size}), "int32")):
    B = T.alloc_buffer(({size},), "int32")
    for t in range(4):
        for z in range({size}):
            with T.block("first"):
                v = T.axis.spatial({size}, z)
                T.where(t < 1)
                B[v] = 100
'''


LATER = started(3, 2) + '''
        for i in range(2):
            {loops}
                with T.block("B"):
                    vi = T.axis.spatial(2, i)
                    {body}
        for j in range(2):
            with T.block("D"):
                vt = T.axis.spatial(4, t)
                v = T.axis.spatial(2, j)
                D[vt, v] = B[v]
'''
SUM = '''vk = T.axis.reduce(3, {step})
                    with T.init():
                        B[vi] = 0
                    B[vi] = B[vi] + A[vk]'''


@pytest.mark.parametrize("loops, body, added", [
    ("for k in range(1, 3):", SUM.format(step="k"), 8),                      # never at the step that starts it
    ("for k in range(2):", SUM.format(step="2 - k"), 8),
    ("for k, l in T.grid(2, 2):", "T.where(k == 0 and k + l == 3)\n                    B[vi] = 0", 0),
    ("for k in range(1):", "T.where(A[0] > 7)\n                    B[vi] = 0", 0),
], ids=["later steps", "last steps", "never", "data"])
def test_a_write_below_a_condition_on_inner_loops_that_does_not_hold(loops, body, added):
    func, a = from_source(LATER.format(loops=loops, body=body)), np.array([7, 5, 3], "int32")
    flat, built = lower(func), tw.build(func)
    for run in (lambda d: interp.run(func, a, d), lambda d: interp.run(flat, a, d), lambda d: built(a, d)):
        d = np.zeros((4, 2), "int32")
        run(d)
        assert d.tolist() == [[100 + added * (t + 1)] * 2 for t in range(4)]


def test_a_reduction_that_starts_in_each_iteration_keeps_its_buffer_inside():
    func = from_source(LATER.format(loops="for k in range(3):", body=SUM.format(step="k")))
    lines = str(lower(func, simple_mode=True)).splitlines()
    loop, inside = (next(n for n, s in enumerate(lines) if text in s) for text in ("for t in", " B = "))
    assert loop < inside


MIXED = started(4, 4) + '''        {loops}
            with T.block("B"):
                vt, vi = T.axis.remap("SS", [t, i])
                T.where({written})
                B[vi] = A[vi] + vt
        {loops}
            with T.block("D"):
                vt, vi = T.axis.remap("SS", [t, i])
                T.where({read})
                D[vt, vi] = B[{element}]
'''


@pytest.mark.parametrize("loops, written, read, element", [
    ("for i in range(4):", "t * 4 + i < 14", "t < 4", "i"),                    # a part is written, all is read
    ("for i in range(4):", "3 - t + i >= 2", "3 - t + i >= 2", "max(i - 1, 0)"),         # its neighbour is read
    ("for k, i in T.grid(2, 4):", "t + k == 1", "t + k == 2", "i"),
    ("for k, i in T.grid(4, 4):", "t - k == 0", "t - k == 0", "i"),
    ("for k, i in T.grid(2, 4):", "k + 7 < 8 - t", "k == 1", "i"),
], ids=["ragged", "neighbours", "another step", "the same step", "some steps"])
def test_conditions_on_the_loop_outside_and_loops_inside(loops, written, read, element):
    vi = "vi" if element == "i" else "T.max(vi - 1, 0)"
    func = from_source(MIXED.format(loops=loops, written=written, read=read, element=vi))
    a, want, b = np.array([4, 3, 2, 1], "int32"), np.full((4, 4), -1, "int32"), [100] * 4
    names = {"max": max}
    steps = [(k, i) for k in range(4 if "(4, 4)" in loops else 2) for i in range(4)]
    for t in range(4):
        for k, i in steps:
            if eval(written, {**names, "t": t, "k": k, "i": i}):
                b[i] = a[i] + t
        for k, i in steps:
            if eval(read, {**names, "t": t, "k": k, "i": i}):
                want[t, i] = b[eval(element, {**names, "i": i})]
    _leaves(func, a, want)


def _leaves(func, a, want):
    """func leaves `want` in its second argument, by the interpreter, lowered, and as native code."""
    flat, built = lower(func), tw.build(func)
    for run in (lambda d: interp.run(func, a, d), lambda d: interp.run(flat, a, d), lambda d: built(a, d)):
        d = np.full(want.shape, -1, "int32")
        run(d)
        assert d.tolist() == want.tolist()


INSIDE_OF_ONE_LOOP = started(4, 4) + '''        for q in range(4):
            with T.block("B"):
                vt, vi = T.axis.remap("SS", [t, q])
                B[vi] = A[vi] + vt
            with T.block("D"):
                vt, vi = T.axis.remap("SS", [t, q])
                D[vt, vi] = B[3 - vi]
'''


def test_a_write_and_a_read_in_one_inner_loop():
    """B[3] is read in the first iteration of q, and written in the last."""
    a, want, b = np.array([4, 3, 2, 1], "int32"), np.zeros((4, 4), "int32"), [100] * 4
    for t in range(4):
        for q in range(4):
            b[q] = a[q] + t
            want[t, q] = b[3 - q]
    _leaves(from_source(INSIDE_OF_ONE_LOOP), a, want)


IN_A_WHILE = '''@T.prim_func
def f(A: T.Buffer((4,), "int32"), D: T.Buffer((4, 4), "int32")):
    B = T.alloc_buffer((4,), "int32")
    N = T.alloc_buffer((1,), "int32")
    N[0] = 0
    while N[0] < 4:
        with T.block("step"):
            {let}
            for i in range(4):
                if t * 4 + i < 14:
                    B[i] = A[i] + t
            for i in range(4):
                D[t, i] = B[i]
            N[0] = t + 1
'''
IN_A_LET = '''@T.prim_func
def f(A: T.Buffer((4,), "int32"), D: T.Buffer((4, 4), "int32")):
    B = T.alloc_buffer((4,), "int32")
    for s in range(4):
        t: T.int32 = s + A[0] - 4
        with T.block("step"):
            for i in range(4):
                if t * 4 + i < 14:
                    B[i] = A[i] + t
            for i in range(4):
                D[t, i] = B[i]
'''


@pytest.mark.parametrize("source", [IN_A_WHILE.format(let="t: T.int32 = N[0]"), IN_A_LET], ids=["while", "let"])
def test_other_statements_around_an_allocation(source):
    a = np.array([4, 3, 2, 1], "int32")
    _leaves(from_source(source), a, np.array([[4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3], [7, 6, 4, 3]]))


TILES = '''@T.prim_func
def f(A: T.Buffer((14,), "int32"), D: T.Buffer((14,), "int32")):
    B = T.alloc_buffer((14,), "int32")
    for t in range(4):
        for i, k in T.grid(2, 2):
            with T.block("B"):
                v = T.axis.spatial(14, t * 4 + i * 2 + k)
                T.where(t * 4 + i * 2 + k < 14)
                B[v] = A[v] * 2
        for i, k in T.grid(2, 2):
            with T.block("D"):
                v = T.axis.spatial(14, t * 4 + i * 2 + k)
                T.where(t * 4 + i * 2 + k < 14)
                D[v] = B[v]
'''


def test_a_ragged_tile_keeps_its_buffer_inside():
    """What is read of the last tile is what was written of it."""
    func, a = from_source(TILES), np.arange(14, dtype="int32")
    lines = str(lower(func, simple_mode=True)).splitlines()
    loop, inside = (next(n for n, s in enumerate(lines) if text in s) for text in ("for t in", " B = "))
    assert loop < inside
    assert "B = T.decl_buffer((4,)" in lines[inside]
    _leaves(func, a, a * 2)


IN_SOME_ITERATIONS = '''@T.prim_func
def f(A: T.Buffer((6,), "int32"), D: T.Buffer((6,), "int32")):
    B = T.alloc_buffer((4,), "int32")
    M = T.alloc_buffer((1,), "int32")
    for t in range(3):
        for f in range(2):
            M[0] = A[t * 2 + f]
            {inside}
                if f == 0:
                    B[0] = t + 10
                D[t * 2 + f] = B[0]
'''


@pytest.mark.parametrize("inside", ["if M[0] > 0:", "for a in range(M[0]):"])
def test_what_memory_says_of_an_earlier_iteration(inside):
    """Only where f is 0 is B written, and not always then."""
    func = from_source(IN_SOME_ITERATIONS.format(inside=inside))
    _leaves(func, np.array([1, 1, 0, 1, 0, 1], "int32"), np.array([10, 10, -1, 10, -1, 10]))


UNDER_A_CHOICE = '''@T.prim_func
def f(A: T.Buffer((1,), "int32"), D: T.Buffer((3, 8), "int32")):
    B = T.alloc_buffer((2, 4), "int32")
    for t in range(3):
        if t == 0:
            for i in range(2):
                B[i, 0] = i + 5
        for i in range(4):
            B[0, i] = i + 10 + t
        for j in range(8):
            D[t, j] = B[j // 4, 0] + T.if_then_else(j < 4, B[0, j], 0)
'''


def test_a_read_that_a_choice_may_leave_out():
    want = [[10 + t + (10 + j + t if j < 4 else 0) if j < 4 else 6 for j in range(8)] for t in range(3)]
    _leaves(from_source(UNDER_A_CHOICE), np.zeros(1, "int32"), np.array(want))


VECTORS = '''@T.prim_func
def f(A: T.Buffer((8,), "int32"), D: T.Buffer((16,), "int32")):
    B = T.alloc_buffer((32,), "int32")
    for t in range(4):
        if t == 0:
            for i in range(32):
                B[i] = 100 + i
        {stores}
        D[T.Ramp(t * 4, 1, 4)] = B[T.Ramp({read}, {stride}, 4)]
'''


@pytest.mark.parametrize("stores, read, stride, carried", [
    ("B[T.Ramp(t, 1, 4)] = A[T.Ramp(t, 1, 4)]; B[T.Ramp(t + 4, 1, 2)] = A[T.Ramp(t, 1, 2)]", "t", 1, False),
    ("B[T.Ramp(0, 2, 4)] = A[T.Ramp(t, 1, 4)]", "0", 2, True),               # no box of elements
    ("B[T.Ramp(0, 2, 4)] = A[T.Ramp(t, 1, 4)]", "0", 1, True),
    ("B[T.Ramp(0, 1, 4)] = A[T.Ramp(t, 1, 4)]", "1", 1, True),
    ("B[T.Ramp(0, 1, 4)] = A[T.Ramp(t, 1, 4)]; B[T.Ramp(4, 1, 4)] = A[T.Ramp(t, 1, 4)]", "2", 1, False),
], ids=["two lengths", "the same lanes", "other lanes", "one lane more", "of two"])
def test_vectors(stores, read, stride, carried):
    func = from_source(VECTORS.format(stores=stores.replace("; ", "\n        "), read=read, stride=stride))
    a, b, want = np.arange(8, dtype="int32"), np.arange(32) + 100, []
    for t in range(4):
        for text in stores.split("; "):
            begin, step, lanes = map(int, text[text.index("(") + 1:text.index(")")].replace(
                "t + 4", str(t + 4)).replace("t", str(t)).split(","))
            b[begin:begin + step * lanes:step] = a[t:t + lanes]
        begin = t if read == "t" else int(read)
        want.append(b[begin:begin + 4 * stride:stride].copy())
    _leaves(func, a, np.concatenate(want))
    lines = str(lower(func, simple_mode=True)).splitlines()
    loop, place = (next(n for n, s in enumerate(lines) if text in s) for text in ("for t in", " B = "))
    assert (place < loop) == carried


SCALAR = '''@T.prim_func
def f(A: T.Buffer((4,), "int32"), D: T.Buffer((4,), "int32")):
    B = T.alloc_buffer((), "int32")
    for t in range(4):
        {guard}
            B[()] = A[t]
        D[t] = B[()] + 1
'''


@pytest.mark.parametrize("guard, carried, want", [
    ("if t != 2:", True, [5, 4, 4, 2]), ("for u in range(1):", False, [5, 4, 3, 2])])
def test_a_buffer_without_dimensions(guard, carried, want):
    func = from_source(SCALAR.format(guard=guard))
    _leaves(func, np.array([4, 3, 2, 1], "int32"), np.array(want))
    lines = str(lower(func, simple_mode=True)).splitlines()
    loop, place = (next(n for n, s in enumerate(lines) if text in s) for text in ("for t in", " B = "))
    assert (place < loop) == carried
