"""Forms of TVMScript of earlier years, and TVM's options of printing."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.script.round_trip import assert_round_trip
from tilewright import te, tir
from tilewright.script import from_source, ir_module
from tilewright.script import tir as T
from tilewright.support.errors import ArgumentError, IRError, ScriptError
from tilewright.support.target import Target
from tilewright.tir import assert_structural_equal


def test_functions_that_state_the_dtype_of_their_result():
    @T.prim_func
    def f(A: T.Buffer((8,), "float16"), n: T.int32):
        for i in range(8):
            A[i] = T.if_then_else(i < T.shift_left(n, 1, dtype="int32"), 0, A[i], dtype="float16")

    assert "T.if_then_else(i < n << 1, T.float16(0), A[i])" in str(f)
    assert_round_trip(f)
    with pytest.raises(ScriptError, match="T.bitwise_and gives int32 here, not int64"):
        @T.prim_func
        def g(A: T.Buffer((8,), "int32")):
            A[0] = T.bitwise_and(A[1], A[2], dtype="int64")


@pytest.mark.parametrize("dtype", ["", "void"])
def test_a_call_whose_result_nobody_takes(dtype):
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        T.evaluate(T.call_extern("work", A.data, dtype=dtype))
    assert 'T.call_extern("int32", "work", A.data)' in str(f)
    assert_round_trip(f)


def test_a_function_states_its_target():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        T.func_attr({"target": T.target("llvm -mcpu=znver4"), "other": T.target({"kind": "cuda"}, host="llvm")})
        A[0] = 1.0
    assert f.attrs["target"] == Target("llvm -mcpu=znver4") and f.attrs["other"].kind == "cuda"
    assert_round_trip(f)


def test_pointers_to_a_part_of_a_buffer():
    A = tir.decl_buffer((4, 8), "float32", name="A")
    assert str(A.access_ptr("rw", offset=12)) == 'T.access_ptr(A[1, 4], 20, dtype="handle")'
    assert str(A.access_ptr("r", content_lanes=4, offset=te.var("n"), extent=3)) == (
        'T.access_ptr(A[n // 8, n % 8], 3, dtype="handle")')
    strided = tir.decl_buffer((4, 8), "float32", name="A", strides=[16, 1])
    for wrong, said in (({"offset": 2.5}, "not an integer"), ({"content_lanes": 0}, "not a number of lanes"),
                        ({"ptr_type": "int8"}, 'is "handle"'), ({"access_mask": "x"}, 'the access is "r"')):
        with pytest.raises(IRError, match=said):
            A.access_ptr(**wrong)
    with pytest.raises(IRError, match="has strides; an offset counts none"):
        strided.access_ptr("r", offset=4)


@ir_module
class Two:
    @T.prim_func
    def first(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = 1.0

    @T.prim_func
    def second(A: T.Buffer((4,), "float32")):
        A[0] = 2.0


def test_options_of_printing():
    f = Two["first"]
    named = f.script(name="other", show_meta=True, verbose_expr=True, tir_prefix="T")
    assert "def other(" in named
    assert_structural_equal(from_source(named), f)
    assert "\n  for i in range(4):\n    A[i]" in f.script(indent_spaces=2)
    assert Two.script(name="Both").split("\n")[1] == "class Both:"
    assert_structural_equal(from_source(Two.script(indent_spaces=3)), Two)
    for options in ({"tir_prefix": "tir"}, {"print_line_numbers": True}, {"nonsense": 1}):
        with pytest.raises(ArgumentError, match=f"script has no option {next(iter(options))}"):
            f.script(**options)
    for options in ({"name": "a b"}, {"indent_spaces": 0}):
        with pytest.raises(ArgumentError, match=next(iter(options))):
            f.show(**options)


def test_show_takes_the_options_of_script(capsys):
    Two["first"].show("default", False, name="shown")
    assert "def shown(" in capsys.readouterr().out
    Two.show(black_format=False)
    assert "class Module:" in capsys.readouterr().out


def test_attributes_of_functions():
    f = Two["first"].with_attr({"a": 1, "tir.noalias": True})
    assert f.attrs["a"] == 1 and f.attrs["tir.noalias"] is True
    assert f.without_attr("a").attrs == Two["first"].with_attr("tir.noalias", True).attrs


def test_division_as_in_c_under_the_names_of_nodes():
    @T.prim_func
    def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.Div(A[i], 3) * 10 + T.Mod(A[i], 3)
            B[i] = T.Div(B[i], 2.0)
    a, b = np.arange(-4, 4, dtype="int32"), np.arange(8, dtype="float32")
    expected = np.trunc(a / 3) * 10 + np.fmod(a, 3)
    tw.build(f)(a, b)
    assert (a == expected).all() and (b == np.arange(8) / 2).all()
    assert_round_trip(f)


def test_memory_that_a_call_gives():
    @T.prim_func
    def f(A: T.Buffer((4,), "int32")):
        p: T.handle("int32") = T.call_extern("handle", "malloc", 16)
        B = T.decl_buffer((4,), "int32", data=p)
        for i in range(4):
            B[i] = i * i
        for i in range(4):
            A[i] = B[3 - i]
        T.evaluate(T.call_extern("int32", "free", p))
    assert 'B = T.Buffer((4,), "int32", data=p)' in str(f)
    assert_round_trip(f)
    a = np.zeros(4, "int32")
    tw.build(f)(a)
    assert a.tolist() == [9, 4, 1, 0]


@pytest.mark.parametrize(("name", "why"), [("vscale", "a constant number of lanes"), ("tvm_warp_shuffle", "of a GPU"),
                                           ("undef", "starts unwritten"), ("tvm_struct_get", "bound by their types")])
def test_a_name_that_is_missing_says_why(name, why):
    with pytest.raises(AttributeError, match=f"T has no name '{name}'\n\nhint: .*{why}"):
        getattr(T, name)


def test_integers_and_bools_are_their_own_rounding():
    @T.prim_func
    def f(A: T.Buffer((4,), "int32"), n: T.int32):
        A[0] = T.floor(n) + T.ceil(A[1])
    assert "A[0] = n + A[1]" in str(f)
    flag = te.var("b", "bool")
    assert te.round(flag) is flag and te.trunc(te.var("n")).dtype == "int32"
