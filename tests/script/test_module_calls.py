"""Functions of a module that call each other."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.script.round_trip import assert_round_trip
from tilewright.script import from_source, ir_module
from tilewright.script import tir as T
from tilewright.support.errors import LowerError, ScriptError
from tilewright.tir import interp


def results(module, *args):
    """The arrays and the result of the function main, natively and under the interpreter, which must agree."""
    native, oracle = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in range(2))
    values = tw.build(module)["main"](*native), interp.run(module, *oracle)
    assert values[0] == values[1]
    for a, b in zip(native, oracle, strict=True):
        np.testing.assert_array_equal(a, b)
    return native, values[0]


@ir_module
class Fills:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((2, 2), "float32")):
        Fills.fill(A.data, 3.0)
        for i in range(2):
            Fills.scale(B, T.cast(i + 2, "float32"))

    @T.prim_func(private=True)
    def fill(p: T.handle("float32"), x: T.float32):
        A = T.decl_buffer((4,), "float32", data=p)
        for i in range(4):
            A[i] = x

    @T.prim_func(private=True)
    def scale(B: T.Buffer((2, 2), "float32"), x: T.float32):
        C = T.alloc_buffer((2, 2))
        for i, j in T.grid(2, 2):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] * x
        for i, j in T.grid(2, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = C[vi, vj]


def test_statements_of_the_called_function_stand_at_the_call():
    b = np.arange(4, dtype="float32").reshape(2, 2)
    (a, c), _ = results(Fills, np.zeros(4, "float32"), b)
    assert a.tolist() == [3.0] * 4 and (c == b * 6).all()
    assert_round_trip(Fills)
    assert 'T.call_function("int32", "fill", ' in str(Fills["main"])
    assert "call_function" not in str(tw.lower(Fills))


@ir_module
class Numbers:
    @T.prim_func
    def square(x: T.int32) -> T.int32:
        T.ret(x * x)

    @T.prim_func
    def largest(A: T.Buffer((4,), "int32"), n: T.int32) -> T.int32:
        most = T.decl_buffer((1,), "int32")
        most[0] = A[0]
        for i in range(1, n):
            most[0] = T.max(most[0], Numbers.square(A[i]))
        T.ret(most[0])

    @T.prim_func
    def main(A: T.Buffer((4,), "int32"), B: T.Buffer((2,), "int32")) -> T.int32:
        B[0] = Numbers.square(A[0]) + Numbers.square(A[1])
        m: T.int32 = Numbers.largest(A.data, 4)
        if m > 10:
            B[1] = m
        else:
            B[1] = Numbers.largest(A, 2)
        T.ret(m)


@pytest.mark.parametrize("a", [(1, 2, 3, 2), (5, -4, 1, 0)])
def test_results_are_values(a):
    (_, b), value = results(Numbers, np.array(a, "int32"), np.zeros(2, "int32"))
    largest = max(a[0], *(x * x for x in a[1:]))
    assert value == largest and b[0] == a[0] ** 2 + a[1] ** 2
    assert b[1] == (largest if largest > 10 else max(a[0], a[1] ** 2))
    assert_round_trip(Numbers)
    assert tw.build(Numbers)["square"](-7) == 49


TEXT = """
@I.ir_module
class M:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), n: T.int32):
        {}
    @T.prim_func(private=True)
    def sub(A: T.Buffer((4,), "float32"), x: T.float32) -> T.float32:
        A[0] = x
        T.ret(A[1])
    @T.prim_func(private=True)
    def sized(a: T.handle):
        m = T.int32()
        A = T.match_buffer(a, (m,), "float32")
        A[0] = 1.0
    @T.prim_func(private=True)
    def large(A: T.Buffer((8,), "float32")):
        A[7] = 1.0
    @T.prim_func(private=True)
    def whole(A: T.Buffer((4,), "int32")):
        A[3] = 1
    @T.prim_func(private=True)
    def quiet(A: T.Buffer((4,), "float32")):
        A[0] = 1.0
    @T.prim_func(private=True)
    def again(A: T.Buffer((4,), "float32")):
        M.again(A)
"""


def test_arguments_of_a_call_may_be_calls():
    @ir_module
    class M:
        @T.prim_func(private=True)
        def twice(x: T.int32) -> T.int32:
            T.ret(x * 2)

        @T.prim_func(private=True)
        def put(A: T.Buffer((4,), "int32"), x: T.int32) -> T.int32:
            A[0] = x
            T.ret(A[1] + x)

        @T.prim_func
        def main(A: T.Buffer((4,), "int32"), n: T.int32):
            M.put(A.data, M.twice(n + 1))
            M.put(A.data, M.put(A.data, M.twice(A[0]) + 1))
    (a, _), _ = results(M, np.array([0, 100, 0, 0], "int32"), 3)
    assert a.tolist() == [117, 100, 0, 0]


def test_a_statement_may_read_what_a_call_in_it_only_reads():
    @ir_module
    class M:
        @T.prim_func(private=True)
        def second(A: T.Buffer((4,), "int32"), out: T.Buffer((1,), "int32")) -> T.int32:
            out[0] = A[1]
            T.ret(A[1])

        @T.prim_func
        def main(A: T.Buffer((4,), "int32"), B: T.Buffer((1,), "int32"), C: T.Buffer((1,), "int32")):
            C[0] = A[0] * 10 + M.second(A, B)
    (_, b, c), _ = results(M, np.array([3, 4, 0, 0], "int32"), np.zeros(1, "int32"), np.zeros(1, "int32"))
    assert b.tolist() == [4] and c.tolist() == [34]


@pytest.mark.parametrize(("call", "error", "said"), [
    ("M.other(A)", ScriptError, "the module M has no function other"),
    ("T.call_function('int32', 'other', A)", LowerError, "main calls other, which the module does not have"),
    ("M.sub(A)", LowerError, "calls sub with 1 arguments, it takes 2"),
    ("M.sub(A, n)", LowerError, "takes x as float32, int32 is given"),
    ("M.sub(n, 1.0)", LowerError, "takes the memory of A, n is given"),
    ("M.sub(A.access_ptr('rw', offset=2), 1.0)", LowerError, "takes the memory of A"),
    ("M.sized(A)", LowerError, "which takes m from the shape of an argument"),
    ("M.large(A)", LowerError, "takes A of 8 elements, A has 4"),
    ("M.whole(A)", LowerError, "takes A of int32, A is float32"),
    ("M.again(A)", LowerError, "function again calls itself: main -> again -> again"),
    ("x: T.int32 = M.quiet(A)", LowerError, "quiet gives nothing, int32 is expected"),
    ("A[0] = T.if_then_else(n > 0, M.sub(A, 1.0), T.float32(0))", LowerError, "called within"),
    ("A[0] = T.Cast('float32', n > 0 and M.sub(A, 1.0) > 0.0)", LowerError, "called within"),
    ("A[0] = T.Let(M.sub(A, y), where={y: A[1]})", LowerError, "called within"),
    ("A[0] = A[3] + M.sub(A, 1.0)", LowerError, r"reads A\[3\], and calls a function that writes A"),
    ("M.sub(A, M.sub(A, 1.0) + A[3])", LowerError, r"reads A\[3\], and calls a function that writes A"),
    ("A[T.Cast('int32', M.sub(A, 1.0))] = A[3]", LowerError, r"reads A\[3\], and calls a function that writes A"),
    ("for i in range(T.Cast('int32', M.sub(A, 1.0))):\n            A[i] = 1.0", LowerError, "a bound or condition"),
])
def test_wrong_calls(call, error, said):
    with pytest.raises(error, match=said):
        tw.build(from_source(TEXT.format(call)))


@pytest.mark.parametrize("element", ["A[0, 2]", "A[1, 0]", "A[1, 2]"])
def test_the_address_of_an_inner_element_is_no_whole_buffer(element):
    source = """
@I.ir_module
class M:
    @T.prim_func
    def main(A: T.Buffer((2, 4), "float32")):
        M.sub(T.address_of({}))
    @T.prim_func(private=True)
    def sub(A: T.Buffer((2,), "float32")):
        A[0] = 1.0
"""
    with pytest.raises(LowerError, match="takes the memory of A"):
        tw.build(from_source(source.format(element)))
    a = np.zeros((2, 4), "float32")
    tw.build(from_source(source.format("A[0, 0]")))(a)
    assert a.ravel().tolist() == [1, 0, 0, 0, 0, 0, 0, 0]
