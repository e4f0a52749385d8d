"""Programs that LLVM 22 ends the process for, were they given to it as they stand."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source

LEVELS = ["llvm -opt-level=1", "llvm -opt-level=2 -mcpu=x86-64-v3", "llvm -opt-level=3"]


def function(parameters, *lines):
    return from_source("@T.prim_func\ndef f(" + parameters + "):\n" + "".join(f"    {line}\n" for line in lines))


@pytest.mark.parametrize("target", LEVELS)
@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_vectors_that_are_stored_in_any_order_and_read_at_once(lanes, target):
    """LLVM joins them behind the store of the last elements, though values of other stores may be made after it."""
    x = np.arange(4 * lanes, dtype="uint16")
    for order in itertools.permutations(range(4)):
        stores = (f"t[{p * lanes}:{(p + 1) * lanes}] = T.Cast('float32x{lanes}', A[{k * lanes}:{(k + 1) * lanes}])"
                  for k, p in enumerate(order))
        whole = 4 * lanes
        f = function(f"A: T.Buffer(({whole},), 'uint16'), B: T.Buffer(({whole},), 'float32')",
                     f"t = T.decl_buffer(({whole},), scope='local')", *stores, f"B[0:{whole}] = t[0:{whole}]")
        out = np.empty(whole, "float32")
        tw.build(f, target=target)(x, out)
        wanted = np.empty((4, lanes), "float32")
        wanted[list(order)] = x.reshape(4, lanes)
        np.testing.assert_array_equal(out, wanted.reshape(-1))


@pytest.mark.parametrize("target", LEVELS)
@pytest.mark.parametrize("source, result", [("float64", "float32"), ("int64", "float32"), ("uint8", "int64")])
def test_elements_that_loops_store_backwards_and_read_forwards(source, result, target):
    """Both loops become vectors, of different lengths."""
    for count in (8, 16, 32, 13):
        f = function(f"A: T.Buffer(({count},), '{source}'), B: T.Buffer(({count},), '{result}')",
                     f"t = T.decl_buffer(({count},), '{result}', scope='local')",
                     f"for i in range({count}):", f"    t[{count - 1} - i] = T.Cast('{result}', A[i])",
                     f"for i in range({count}):", "    B[i] = t[i] + t[i]")
        x, out = np.arange(1, count + 1).astype(source), np.empty(count, result)
        tw.build(f, target=target)(x, out)
        np.testing.assert_array_equal(out, 2 * x[::-1].astype(result))


@pytest.mark.parametrize("target", [*LEVELS, "llvm -opt-level=3 -mcpu=skylake-avx512"])
def test_sums_of_comparisons_that_are_written_out(target):
    """Vectors that LLVM makes of straight-line code; its code generator for AVX-512 does not take these."""
    f = function("A: T.Buffer((32,), 'int32'), B: T.Buffer((32,), 'int32')",
                 "for i, j in T.grid(4, 8):", "    B[i * 8 + j] = j * 2", "    for r, q in T.grid(5, 5):",
                 "        B[i * 8 + j] = B[i * 8 + j] + T.Select(A[(q + 3) % 4 * 8 - i + 7] != -1, 0, j)")
    built = tw.build(f, target=target)
    if "skylake" in target:
        return
    x = np.random.default_rng(0).integers(-1, 1, 32).astype("int32")
    out = np.empty(32, "int32")
    built(x, out)
    j, q = np.arange(8), np.arange(5)
    hits = np.array([5 * (x[(q + 3) % 4 * 8 - i + 7] == -1).sum() for i in range(4)])
    np.testing.assert_array_equal(out.reshape(4, 8), 2 * j + hits[:, None] * j)
