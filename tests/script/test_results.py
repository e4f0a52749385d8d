"""Functions that return a number, and parameters that are addresses."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.script.round_trip import assert_round_trip
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.support.errors import ScriptError, StructuralError
from tilewright.tir import interp, verify


def both(func, *args):
    """The result, natively and under the interpreter."""
    native, oracle = tw.build(func)(*args), interp.run(func, *args)
    assert native == oracle and type(native) in (int, float, bool)
    return native


def test_numbers_of_every_kind_are_returned():
    @T.prim_func
    def successor(a: T.int32) -> T.int32:
        T.ret(a + 1)

    @T.prim_func
    def is_large(n: T.int64) -> T.bool:
        T.ret(n > 3)

    @T.prim_func
    def half(x: T.float16):
        T.ret(x * T.float16(0.5))

    assert both(successor, 3) == 4 and both(successor, -8) == -7
    assert both(is_large, 4) is True and both(is_large, 3) is False
    assert tw.build(half)(0.25) == 0.125
    for func in (successor, is_large, half):
        assert_round_trip(func)
    assert "def successor(a: T.int32) -> T.int32:" in str(successor) and "-> T.float16:" in str(half)


@pytest.mark.parametrize("x", [0, 2**63 - 1, 2**63, 2**64 - 1])
def test_uint64_has_its_whole_range(x):
    @T.prim_func
    def inverted(x: T.uint64, C: T.Buffer((1,), "uint64")) -> T.uint64:
        C[0] = x
        T.ret(~x)

    c, d = np.zeros(1, "uint64"), np.zeros(1, "uint64")
    f = tw.build(inverted)
    for call in (lambda: f(x, c), lambda: f(np.uint64(x), C=c), lambda: f(C=c, x=x),
                 lambda: interp.run(inverted, x, c)):
        c[0] = 1
        assert call() == int(~np.uint64(x)) and c[0] == x
    assert f.time_evaluator("inverted", number=2)(x, d).min > 0 and d[0] == x


def test_each_way_through_a_function_returns():
    @T.prim_func
    def total(A: T.Buffer((4,), "float32"), n: T.int32) -> T.float32:
        B = T.alloc_buffer((1,))
        for i in range(4):
            with T.block("B"):
                v = T.axis.reduce(4, i)
                with T.init():
                    B[0] = 0.0
                B[0] += A[v]
        if n > 0:
            T.ret(B[0] * 2.0)
        else:
            least: T.float32 = T.min(A[0], A[1])
            T.ret(least)

    a = np.array([3, 1, 4, 1], "float32")
    assert both(total, a, 1) == 18 and both(total, a, 0) == 1
    assert_round_trip(total)


HEAD = "@T.prim_func\ndef f(A: T.Buffer((4,), 'int32'), p: T.handle('int32', 'global'), n: T.int32){}:\n"
WRONG = [
    ("", "T.ret(n)\nA[0] = 1", "T.ret is not the last thing that the function does"),
    ("", "for i in range(n):\n    T.ret(i)", "T.ret is not the last thing"),
    ("", "if n > 0:\n    T.ret(n)", "T.ret does not stand on every way through the function"),
    ("", "if n > 0:\n    T.ret(n)\nelse:\n    T.ret(T.float32(1))", "T.ret gives int32 and float32"),
    (" -> T.int64", "T.ret(n)", "the function returns int32, not int64"),
    (" -> T.int64", "A[0] = 1", "the function returns nothing, not int64"),
    ("", "B = T.decl_buffer((4,), 'float32', data=p)\nB[0] = 1.0", "p points to int32 in scope global, not to float32"),
]


@pytest.mark.parametrize(("result", "body", "said"), WRONG)
def test_wrong_results(result, body, said):
    text = HEAD.format(result) + "".join(f"    {line}\n" for line in body.split("\n"))
    with pytest.raises(ScriptError, match=said):
        from_source(text)


def test_the_verifier_knows_returns():
    func = from_source(HEAD.format("") + "    T.ret(n)\n    A[0] = 1\n", check_well_formed=False)
    with pytest.raises(StructuralError, match="T.ret is not the last thing"):
        verify(func, "loop")


@pytest.mark.parametrize("annotation", ["T.handle('float32')", "T.Ptr('float32')", "T.handle(T.float32, 'global')"])
def test_the_memory_behind_an_address_is_said_in_the_body(annotation):
    func = from_source(f"@T.prim_func\ndef f(p: {annotation}):\n    A = T.decl_buffer((4,), 'float32', data=p)\n"
                       "    B = T.Buffer((2, 2), 'float32', data=p)\n    A[0] = B[1, 1] * 2.0\n")
    assert "def f(A: T.Buffer((4,), \"float32\"))" in str(func)
    assert_round_trip(func)
    a = np.arange(4, dtype="float32")
    tw.build(func)(a)
    assert a.tolist() == [6, 1, 2, 3]
    with pytest.raises(ScriptError, match="'nowhere' is not a storage scope"):
        from_source("@T.prim_func\ndef f(p: T.handle('int8', 'nowhere')):\n    pass")
