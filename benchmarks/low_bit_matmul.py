"""Products of int8 and bfloat16 matrices by the rules of `compile`, beside the instruction's peak and PyTorch.

    python benchmarks/low_bit_matmul.py --peers /tmp/peers/bin/python [--rounds 9] [--sizes 512 1000x784x256T]

A size is MxNxK, or N for NxNxN; T: B lies transposed, as the weights of a linear layer do. One thread; each call packs
its operands. Prints Gop/s (multiplications and additions; medians of interleaved rounds),
the fraction of the peak measured beside each case, and the ratio to PyTorch: `_int_mm` of int8 (it takes no uint8) and
`mm` of bfloat16.
"""
from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import harness
import numpy as np

# name: (dtype of A, of B, of the sum, of the result)
CASES = {
    "s8 x s8 -> s32": ("int8", "int8", "int32", "int32"),
    "u8 x s8 -> s32": ("uint8", "int8", "int32", "int32"),
    "s8 x u8 -> s32": ("int8", "uint8", "int32", "int32"),
    "bf16 -> f32": ("bfloat16", "bfloat16", "float32", "float32"),
    "bf16 -> bf16": ("bfloat16", "bfloat16", "float32", "bfloat16"),
}
SIZES = ["512", "1024", "500", "1000x784x256", "1000x784x256T", "32x1024x1024T"]


@dataclass(frozen=True)
class Size:
    """A: [m, k]; B: [k, n], or [n, k] where it is transposed."""
    m: int
    n: int
    k: int
    transposed: bool

    @staticmethod
    def parse(text: str) -> Size:
        extents = [int(e) for e in text.removesuffix("T").split("x")]
        m, n, k = extents * 3 if len(extents) == 1 else extents
        return Size(m, n, k, text.endswith("T"))

    @property
    def of_a(self) -> tuple[int, int]:
        return self.m, self.k

    @property
    def of_b(self) -> tuple[int, int]:
        return (self.n, self.k) if self.transposed else (self.k, self.n)


def integers(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


def floats(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def check(got: np.ndarray, a: np.ndarray, b: np.ndarray, exact: bool, rounding: float) -> None:
    """Raise unless some rows of the product are right: exact, or within the roundings of k sums and of the result."""
    rows = np.linspace(0, len(a) - 1, 8).astype(int)
    want = a[rows].astype("float64") @ b.astype("float64")
    if exact:
        np.testing.assert_array_equal(got[rows], want)
        return
    size = np.abs(a[rows].astype("float64")) @ np.abs(b.astype("float64"))
    error = np.abs(got[rows].astype("float64") - want)
    assert np.all(error <= size * len(b) * 2.0**-23 + np.abs(want) * rounding), error.max()


# ---- Tilewright


def product(size: Size, a_type: str, b_type: str, sum_type: str, result: str) -> Any:
    """The function of a product."""
    from tilewright import te
    a, b = te.placeholder(size.of_a, a_type, name="A"), te.placeholder(size.of_b, b_type, name="B")
    r = te.reduce_axis((0, size.k), name="k")
    c = te.compute((size.m, size.n), lambda i, j: te.sum(
        a[i, r].astype(sum_type) * (b[j, r] if size.transposed else b[r, j]).astype(sum_type), axis=r), name="C")
    if result != sum_type:
        c = te.compute((size.m, size.n), lambda i, j, c=c: c[i, j].astype(result), name="D")
    return te.create_prim_func([a, b, c], name="matmul")


def prepare_tilewright(threads: int, size: str, case: str) -> Any:
    import tilewright as tw
    of, (a_type, b_type, sum_type, result) = Size.parse(size), CASES[case]
    tw.set_num_threads(threads)
    module = tw.compile(product(of, a_type, b_type, sum_type, result), target=f"llvm -num-cores={threads}")
    exact = sum_type == "int32"
    given = ((a_type, of.of_a, 0), (b_type, of.of_b, 1))
    x, y = (tw.nd.array(integers(t, shape, s) if exact else floats(shape, s), dtype=t) for t, shape, s in given)
    z, f = tw.nd.empty((of.m, of.n), result), module["matmul"]
    f(x, y, z)
    b = y.numpy().T if of.transposed else y.numpy()
    check(z.numpy(), x.numpy(), b, exact, 2.0**-8 if result == "bfloat16" else 0.0)
    return lambda: f(x, y, z), {}


def prepare_tilewright_peak(threads: int, case: str) -> Any:
    from peak import prepare
    return prepare("int8" if "8" in case else "bfloat16", threads)


# ---- the peer


def prepare_torch(threads: int, size: str, case: str) -> Any:
    import torch
    torch.set_num_threads(threads)
    of, exact = Size.parse(size), "8" in case
    made = (integers("int8", shape, s) if exact else floats(shape, s) for shape, s in ((of.of_a, 0), (of.of_b, 1)))
    x, y = (t if exact else t.to(torch.bfloat16) for t in map(torch.from_numpy, made))
    y = y.T if of.transposed else y
    out = torch.empty(of.m, of.n, dtype=torch.int32 if exact else torch.bfloat16)
    return (lambda: torch._int_mm(x, y, out=out)) if exact else (lambda: torch.mm(x, y, out=out)), {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", help="Python of an environment with benchmarks/peers.txt")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    options = parser.parse_args()
    workers = harness.start("low_bit_matmul", ["tilewright", "torch"], 1, options.peers)
    peak_worker = harness.Worker(harness.sys.executable, "low_bit_matmul", "tilewright_peak", 1)
    print("1 thread, Gop/s; peak measured beside each case")
    print(f"{'case':30s} {'peak':>6s} {'tilewright':>11s} {'torch':>8s}   of peak   of torch")
    for case in options.cases:
        operations = peak_worker.ask(setup={"case": case})["operations"]
        for size in options.sizes:
            of = Size.parse(size)
            before = min(peak_worker.ask(run=5)["seconds"])
            seconds = harness.interleave(workers, {"size": size, "case": case}, options.rounds)
            peak = operations / min(before, min(peak_worker.ask(run=5)["seconds"]))
            speed = {e: 2.0 * of.m * of.n * of.k / s for e, s in seconds.items()}
            ours, peer = speed.get("tilewright", 0.0), speed.get("torch")
            print(f"{case + f' {size}':30s} {peak / 1e9:6.0f} {ours / 1e9:11.0f} "
                  + (f"{peer / 1e9:8.0f}   {ours / peak:7.2f}   {ours / peer:8.2f}" if peer else
                     f"{'-':>8s}   {ours / peak:7.2f}"), flush=True)
    harness.close([*workers, peak_worker])


if __name__ == "__main__":
    main()
