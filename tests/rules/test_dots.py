"""Few rows times matrices whose lines lie in memory, one of which may be numbers with the scales of their blocks."""
import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.frontend.weights import quantized
from tilewright.rules.apply import Scheduling

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
