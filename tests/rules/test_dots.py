"""Few rows times matrices whose lines lie in memory, one of which may be numbers with the scales of their blocks."""
import numpy as np
import pytest

import tilewright as tw
from tests.rules.products import (
    ALDERLAKE,
    BF,
    HASWELL,
    HOST,
    NEOVERSE,
    S8,
    SU,
    U8,
    UU,
    ZEN4,
    compiled,
    einsum,
    extremes,
    multiplied,
    product,
)
from tilewright import te, topi
from tilewright.frontend.weights import quantized
from tilewright.rules import apply_rules
from tilewright.rules.apply import Scheduling
from tilewright.tir import run

RNG = np.random.default_rng(4)


def blocks(rows, outputs, inner, bits, bias=False):
    """(te tensors, arrays, the result in float64) of rows times a matrix in blocks."""
    w = quantized(RNG.standard_normal((outputs, inner)).astype("float32"), bits)
    x, b = RNG.standard_normal((rows, inner)).astype("float32"), RNG.standard_normal(outputs).astype("float32")
    arrays = [x, w.numbers, w.scale, *([b] if bias else [])]
    tensors = [te.placeholder(a.shape, str(a.dtype), name=f"in{k}") for k, a in enumerate(arrays)]
    want = x.astype("float64") @ w.dense().astype("float64").T + (b if bias else 0)
    return [*tensors, topi.linear_blocks(*tensors)], arrays, want


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3"])
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("rows, outputs, inner", [
    (1, 1, 64), (1, 37, 96), (1, 128, 256), (3, 50, 64), (8, 17, 128), (9, 5, 64)])
def test_matrices_in_blocks(rows, outputs, inner, bits, target):
    tensors, arrays, want = blocks(rows, outputs, inner, bits, bias=outputs == 37)
    got = np.full(want.shape, np.nan, "float32")
    tw.compile(tensors, target=target)(*arrays, got)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows, outputs, inner, rule", [
    (1, 1000, 256, "dots"), (8, 1000, 256, "dots"), (1000, 1, 256, "dots"), (1, 1000, 32, "row_reduction")])
def test_which_rule_takes_blocks(rows, outputs, inner, rule):
    tensors, _, _ = blocks(rows, outputs, inner, 8)
    work = Scheduling(te.create_prim_func(tensors), tw.target("llvm -mcpu=x86-64-v4")).finish()
    assert [d.rule for d in work.decisions] == [rule]


@pytest.mark.parametrize("factors", ["xyz", "xxy", "xyy"])
def test_operands_that_vary_with_both_are_not_lines(factors):
    """Sums of products in which an operand has rows and columns are what other rules take, and right."""
    tensors = {"x": te.placeholder((4, 64), name="x"), "y": te.placeholder((50, 64), name="y"),
               "z": te.placeholder((4, 50, 64), name="z")}
    k = te.reduce_axis((0, 64), name="k")

    def term(i, j):
        parts = {"x": tensors["x"][i, k], "y": tensors["y"][j, k], "z": tensors["z"][i, j, k]}
        return te.sum(parts[factors[0]] * parts[factors[1]] * parts[factors[2]], axis=k)
    y = te.compute((4, 50), term)
    used = [tensors[n] for n in dict.fromkeys(factors)]
    work = Scheduling(te.create_prim_func([*used, y]), tw.target("llvm -mcpu=x86-64-v4")).finish()
    assert ("dots" in [d.rule for d in work.decisions]) == ("z" not in factors)
    arrays = {n: RNG.standard_normal([int(e) for e in t.shape]).astype("float32") for n, t in tensors.items()}
    got = np.zeros((4, 50), "float32")
    tw.compile([*used, y])(*(arrays[n] for n in dict.fromkeys(factors)), got)
    wide = {"x": arrays["x"][:, None].astype("float64"), "y": arrays["y"][None], "z": arrays["z"]}
    want = (wide[factors[0]] * wide[factors[1]] * wide[factors[2]]).sum(-1)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


# ---- low-bit elements, whose dot product instruction adds a group to each lane

@pytest.mark.parametrize("target", [HOST, HASWELL])
@pytest.mark.parametrize("types", [S8, U8, SU, UU, BF])
@pytest.mark.parametrize("m, n, k", [(1, 37, 256), (3, 16, 64), (8, 5, 128), (50, 2, 64), (1, 1, 64), (2, 9, 100)])
def test_low_bit_lines(types, m, n, k, target):
    """Lines of whole vectors and of others, at the extremes."""
    a, b = extremes(types[0], (m, k)), extremes(types[1], (n, k), 1)
    got = compiled(product(m, n, k, types, transposed=True), a, b, target=target)
    np.testing.assert_array_equal(got, a.astype("float64") @ b.astype("float64").T)


@pytest.mark.parametrize("batch, symbolic", [(3, False), (4, True)])
def test_low_bit_lines_of_batches(batch, symbolic):
    size = te.var("batch") if symbolic else batch
    a, b = extremes("int8", (batch, 2, 128)), extremes("int8", (batch, 20, 128), 1)
    func = einsum("bik", "bjk", {"b": size, "i": 2, "j": 20, "k": 128}, S8)
    out = np.zeros((batch, 2, 20), "int32")
    tw.compile(func, target=HOST)(a, b, out)
    np.testing.assert_array_equal(out, np.einsum("bik,bjk->bij", a.astype(int), b.astype(int)))


def test_low_bit_lines_with_an_epilogue():
    func = product(1, 64, 128, S8, True, epilogue=lambda x: te.round(x.astype("float32") * 0.002).astype("int8"))
    a, b = extremes("int8", (1, 128)), extremes("int8", (64, 128), 1)
    want = np.clip(np.rint(multiplied(a, b.T).astype("float32") * np.float32(0.002)), -128, 127)
    np.testing.assert_array_equal(compiled(func, a, b), want)


@pytest.mark.parametrize("target, types, m, k, rule", [
    (ZEN4, S8, 1, 128, "dots_of_groups"), (ZEN4, S8, 8, 128, "dots_of_groups"), (ZEN4, U8, 1, 96, "dots_of_groups"),
    (ZEN4, U8, 1, 100, "dot_product"), (ZEN4, BF, 1, 64, "dots_of_groups"), (ALDERLAKE, U8, 1, 96, "dots_of_groups"),
    (HASWELL, S8, 1, 80, "dots_of_groups"), (NEOVERSE, S8, 1, 80, "dots_of_groups"),
    (ZEN4, U8, 9, 128, "dot_product")])
def test_which_rule_takes_low_bit_lines(target, types, m, k, rule):
    """Those that are whole numbers of the instruction's vectors, of few rows."""
    func = product(m, 100, k, types, transposed=True)
    assert [d.rule for d in Scheduling(func, tw.target(target)).finish().decisions] == [rule]


def test_bfloat16_lines_in_order_under_strict_math(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_STRICT_MATH", "1")
    func = product(1, 100, 64, BF, transposed=True)
    work = Scheduling(func, tw.target(ZEN4)).finish()
    assert "dots_of_groups" not in [d.rule for d in work.decisions]


def test_low_bit_lines_mean_the_same():
    """The scheduled function, interpreted."""
    for types in (S8, U8, BF):
        func = product(2, 5, 64, types, transposed=True)
        sch = apply_rules(func, tw.Target(ZEN4))
        a, b = extremes(types[0], (2, 64)), extremes(types[1], (5, 64), 1)
        out = np.zeros((2, 5), types[2])
        run(sch.func, a, b, out)
        np.testing.assert_array_equal(out, a.astype("float64") @ b.astype("float64").T)
