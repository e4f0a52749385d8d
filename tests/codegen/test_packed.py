"""The packed entry through apache-tvm-ffi and the runtime: arguments, faults, packed functions
called from a kernel.
"""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from kernels import flat, ramp, vector, view

from tilewright import runtime
from tilewright.codegen.layout import kernel_layout
from tilewright.codegen.registry import back_end
from tilewright.lowering import split
from tilewright.runtime.loader import Image
from tilewright.runtime.module import Module
from tilewright.support.errors import CallError
from tilewright.support.target import target
from tilewright.te.math import call_packed
from tilewright.tir.buffer import Load, decl_buffer
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Broadcast, Call, FloatImm, IntImm, StringImm, Var
from tilewright.tir.stmt import Evaluate, LetStmt, PrimFunc, Store, loop, seq


@pytest.fixture(autouse=True, params=["llvm", "c"])
def back_end_in_use(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "TARGET", target(request.param))


TARGET = target("llvm")


def module(func: PrimFunc) -> Module:
    data = back_end(TARGET).image(split(func), TARGET)
    return Module([Image("object", data, (func.name,))], {func.name: kernel_layout(func).signature})


def test_checked_call_with_symbols_and_scalars() -> None:
    n, scale, flag, i = Var("n"), Var("scale", "float32"), Var("flag", "bool"), Var("i")
    a, b = vector("A", n), vector("B", n)
    body = loop(i, n, Store(b, a[i] * scale + cast("float32", flag), (i,)))
    f = module(flat("scaled", [a, b], body, (scale, flag)))["scaled"]
    x, out = np.arange(5, dtype="f4"), np.zeros(5, "f4")
    f(x, out, 0.5, True)
    np.testing.assert_array_equal(out, x * 0.5 + 1)
    with pytest.raises(CallError, match=r"B.shape\[0\]"):
        f(x, np.zeros(4, "f4"), 0.5, True)


def embedding(lanes: int) -> PrimFunc:
    """out[i, j] = table[ids[i], j] with 8 columns, each row in vectors of `lanes`."""
    table, ids, out = (
        decl_buffer((10, 8), name="table"),
        vector("ids", 3, "int32"),
        decl_buffer((3, 8), name="out"),
    )
    i, j = Var("i"), Var("j")
    row = cast("int64", view(ids)[i])                # as `flatten_buffers` writes it: what data makes of int32 wraps
    body = loop(
        i,
        3,
        loop(
            j,
            8 // lanes,
            Store(
                view(out),
                Load(view(table), (ramp(row * 8 + j * lanes, lanes),)),
                (ramp(i * 8 + j * lanes, lanes),),
            ),
        ),
    )
    return flat("embedding", [table, ids, out], body)


@pytest.mark.parametrize("lanes", (1, 8))
def test_an_index_from_data_outside_of_the_buffer_raises(lanes: int) -> None:
    f = module(embedding(lanes))["embedding"]
    table, out = np.random.rand(10, 8).astype("f4"), np.zeros((3, 8), "f4")
    f(table, np.array([9, 0, 4], "i4"), out)
    np.testing.assert_array_equal(out, table[[9, 0, 4]])
    for bad in (10, -1, 2**31 - 1, -2**31):
        with pytest.raises(CallError, match="embedding: the index .* of table.*outside"):
            f(table, np.array([1, bad, 2], "i4"), out)
        np.testing.assert_array_equal(out, np.stack([table[1], np.zeros(8, "f4"), table[2]]))
    f(table, np.array([3, 3, 3], "i4"), out)                 # the fault is gone


def test_scatter_and_gather_with_an_index_outside() -> None:
    ids, a, out = vector("ids", 8, "int32"), vector("A", 8), vector("out", 8)
    at = Load(ids, (ramp(0, 8),))
    body = seq([Store(out, Broadcast(FloatImm(-1.0), 8), (ramp(0, 8),)), Store(out, Load(a, (at,)), (at,))])
    f = module(flat("permute", [ids, a, out], body))["permute"]
    x, y = np.arange(8, dtype="f4"), np.zeros(8, "f4")
    order = np.array([3, 1, 0, 2, 7, 6, 5, 4], "i4")
    f(order, x, y)
    np.testing.assert_array_equal(y, x)
    order[2] = 99
    with pytest.raises(CallError, match="permute"):
        f(order, x, y)
    assert y[0] == -1 and y[3] == 3


def test_let_bound_data_is_checked_too() -> None:
    ids, a, out, v = vector("ids", 1, "int64"), vector("A", 4), vector("out", 1), Var("v", "int64")
    body = LetStmt(v, ids[0], Store(out, a[v + 1], (IntImm(0),)))
    f = module(flat("pick", [ids, a, out], body))["pick"]
    x, y = np.arange(4, dtype="f4"), np.zeros(1, "f4")
    f(np.array([2]), x, y)
    assert y[0] == 3
    with pytest.raises(CallError, match="pick"):
        f(np.array([3]), x, y)


def test_packed_functions_get_tensors_numbers_and_strings() -> None:
    seen: list[object] = []

    @runtime.register_func("test.codegen.axpy", override=True)
    def axpy(x: object, y: object, alpha: float, times: int, label: str) -> int:
        seen.append((x.shape, x.dtype, label))
        y.copyfrom(y.numpy() + alpha * times * x.numpy())
        return 7

    a, b, count = (
        decl_buffer((2, Var("n")), name="A"),
        decl_buffer((2, 3), name="B"),
        vector("count", 1, "int32"),
    )
    n = a.shape[1]
    call = call_packed("test.codegen.axpy", first_of(a, n), first_of(b, 3), FloatImm(0.5), IntImm(4), "text")
    f = module(flat("outer", [a, b, count], Store(count, call, (IntImm(0),))))["outer"]
    x, y, result = np.ones((2, 3), "f4"), np.ones((2, 3), "f4"), np.zeros(1, "i4")
    f(x, y, result)
    np.testing.assert_array_equal(y, 3 * x)
    assert seen == [((2, 3), "float32", "text")] and result[0] == 7


@pytest.mark.parametrize("value", [5, 2**63 - 1, 2**63, 2**64 - 1])
def test_uint64_reaches_packed_functions_and_comes_back(value: int) -> None:
    seen: list[object] = []
    runtime.register_func("test.codegen.seen", seen.append, override=True)
    x = Var("x", "uint64")
    body = seq([Evaluate(call_packed("test.codegen.seen", x)), Evaluate(Call("ret", (x,), "uint64"))])
    f = module(flat("tells", [], body, (x,)))["tells"]
    runtime.register_func("test.codegen.tells", f, override=True)
    assert f(value) == value == runtime.get_global_func("test.codegen.tells")(value)
    assert seen == [value, value]


def first_of(buffer: object, columns: object) -> object:
    from tilewright.tir.conversion import convert
    return Call("access_ptr", (Load(view(buffer), (IntImm(0),)), IntImm(2), convert(columns)), "handle")


def test_errors_of_packed_functions_reach_the_caller() -> None:
    @runtime.register_func("test.codegen.fails", override=True)
    def fails() -> None:
        raise ValueError("from inside")

    a = vector("A", 1)
    body = seq([Evaluate(call_packed("test.codegen.fails")), Evaluate(call_packed("test.codegen.fails"))])
    f = module(flat("calls", [a], body))["calls"]
    for _ in range(2):
        with pytest.raises(ValueError, match="from inside"):
            f(np.zeros(1, "f4"))
    g = module(flat("lost", [a], Evaluate(call_packed("test.codegen.nobody"))))["lost"]
    with pytest.raises(CallError, match="no packed function 'test.codegen.nobody'"):
        g(np.zeros(1, "f4"))


SCALARS = ("int8", "uint8", "int64", "uint64", "float16", "bfloat16", "float32", "float64", "bool")


@pytest.mark.parametrize("dtype", SCALARS)
def test_scalar_arguments_of_every_dtype(dtype: str) -> None:
    out, v = vector("out", 1, "float64"), Var("v", dtype)
    f = module(flat("scalar", [out], Store(out, cast("float64", v), (IntImm(0),)), (v,)))["scalar"]
    x = np.zeros(1)
    for value in (0, 1) if dtype == "bool" else (0, 1, 100) if dtype.startswith("u") else (0, 1, -100):
        f(x, bool(value) if dtype == "bool" else float(value) if "float" in dtype else value)
        assert x[0] == value


RESULTS = [(3, "int32", 3), (2.7, "int32", 2), (-2.7, "float32", -2.7), (np.bool_(True), "int32", 1),
           (True, "bool", 1), (0.25, "bool", 1), (math.inf, "int32", 2**31 - 1), (-1e300, "int32", -(2**31)),
           (1e300, "int64", 2**63 - 1), (2**31, "int32", -(2**31)), (math.nan, "int64", 0),
           (np.int64(4), "int64", 4), (np.float32(1.5), "float64", 1.5)]


@pytest.mark.parametrize("given, dtype, want", RESULTS)
def test_results_of_packed_functions_are_cast(given: object, dtype: str, want: float) -> None:
    runtime.register_func("test.codegen.gives", lambda: given, override=True)
    out = vector("out", 1, dtype)
    x = np.zeros(1, dtype)
    call = Call("call_packed", (StringImm("test.codegen.gives"),), dtype)
    module(flat("takes", [out], Store(out, call, (IntImm(0),))))["takes"](x)
    assert x[0] == np.array(want, dtype)


@pytest.mark.parametrize("given", [None, "s", "a longer text", (1,), np.zeros(3)])
def test_a_result_that_is_no_number_is_no_value(given: object) -> None:
    runtime.register_func("test.codegen.gives", lambda: given, override=True)
    out = vector("out", 1, "int32")
    call = call_packed("test.codegen.gives")
    f = module(flat("takes", [out], Store(out, call, (IntImm(0),))))["takes"]
    x = np.ones(1, "int32")
    with pytest.raises(CallError, match="'test.codegen.gives' gave no number, and a int32 is expected"):
        f(x)
    module(flat("calls", [out], Evaluate(call)))["calls"](x)          # nobody asks for the result


def test_an_int_that_64_bits_do_not_hold() -> None:
    runtime.register_func("test.codegen.gives", lambda: 2**70, override=True)
    f = module(flat("calls", [vector("A", 1)], Evaluate(call_packed("test.codegen.gives"))))["calls"]
    with pytest.raises(Exception, match="has more than 64 bits"):
        f(np.zeros(1, "f4"))


@pytest.mark.parametrize("lanes", (1, 4))
def test_a_packed_function_is_not_called_with_what_lies_outside(lanes: int) -> None:
    seen: list[object] = []
    runtime.register_func("tests.packed.outside", lambda x: seen.append(x if lanes == 1 else x.numpy().tolist()),
                          override=True)
    ids, a = vector("ids", lanes, "int32"), vector("A", 4)
    at = ids[0] if lanes == 1 else Load(ids, (ramp(0, lanes),))
    f = module(flat("tell", [ids, a], Evaluate(call_packed("tests.packed.outside", Load(a, (at,))))))["tell"]
    x = np.array([4, 5, 6, 7], "f4")
    f(np.arange(lanes, dtype="i4"), x)
    assert seen == [4.0 if lanes == 1 else [4.0, 5.0, 6.0, 7.0]]
    with pytest.raises(CallError, match="tell: the index .* of A.*outside"):
        f(np.arange(4, 4 + lanes, dtype="i4"), x)
    assert len(seen) == 1
