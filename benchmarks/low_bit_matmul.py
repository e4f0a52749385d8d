"""Products of int8 and bfloat16 matrices by the rules of `compile`, beside the instruction's peak and PyTorch.

    python benchmarks/low_bit_matmul.py --peers /tmp/peers/bin/python [--rounds 9] [--sizes 512 1024]

One thread; each call packs its operands. Prints Gop/s (multiplications and additions; medians of interleaved rounds),
the fraction of the peak measured beside each case, and the ratio to PyTorch: `_int_mm` of int8 (it takes no uint8) and
`mm` of bfloat16.
"""
from __future__ import annotations

import argparse
from typing import Any

import harness
import numpy as np

# name: (dtype of A, of B, of the sum, of the result)
CASES = {
    "s8 x s8 -> s32": ("int8", "int8", "int32", "int32"),
    "u8 x s8 -> s32": ("uint8", "int8", "int32", "int32"),
    "bf16 -> f32": ("bfloat16", "bfloat16", "float32", "float32"),
    "bf16 -> bf16": ("bfloat16", "bfloat16", "float32", "bfloat16"),
}


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


def product(n: int, a_type: str, b_type: str, sum_type: str, result: str) -> Any:
    """The function of an n x n x n product."""
    from tilewright import te
    a, b = te.placeholder((n, n), a_type, name="A"), te.placeholder((n, n), b_type, name="B")
    r = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, r].astype(sum_type) * b[r, j].astype(sum_type), axis=r), name="C")
    if result != sum_type:
        c = te.compute((n, n), lambda i, j, c=c: c[i, j].astype(result), name="D")
    return te.create_prim_func([a, b, c], name="matmul")


def prepare_tilewright(threads: int, n: int, case: str) -> Any:
    import tilewright as tw
    a_type, b_type, sum_type, result = CASES[case]
    tw.set_num_threads(threads)
    module = tw.compile(product(n, a_type, b_type, sum_type, result), target=f"llvm -num-cores={threads}")
    exact = sum_type == "int32"
    if exact:
        x, y = (tw.nd.array(integers(t, (n, n), s)) for t, s in ((a_type, 0), (b_type, 1)))
    else:
        x, y = (tw.nd.array(floats((n, n), s), dtype=t) for t, s in ((a_type, 0), (b_type, 1)))
    z, f = tw.nd.empty((n, n), result), module["matmul"]
    f(x, y, z)
    check(z.numpy(), x.numpy(), y.numpy(), exact, 2.0**-8 if result == "bfloat16" else 0.0)
    return lambda: f(x, y, z), {}


def prepare_tilewright_peak(threads: int, case: str) -> Any:
    from dot_peak import prepare
    return prepare("int8" if "s8" in case else "bfloat16")


# ---- the peer


def prepare_torch(threads: int, n: int, case: str) -> Any:
    import torch
    torch.set_num_threads(threads)
    if "s8" in case:
        x, y = (torch.from_numpy(integers("int8", (n, n), s)) for s in (0, 1))
        out = torch.empty(n, n, dtype=torch.int32)
        return lambda: torch._int_mm(x, y, out=out), {}
    x, y = (torch.from_numpy(floats((n, n), s)).to(torch.bfloat16) for s in (0, 1))
    out = torch.empty(n, n, dtype=torch.bfloat16)
    return lambda: torch.mm(x, y, out=out), {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", help="Python of an environment with benchmarks/peers.txt")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 1024])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    options = parser.parse_args()
    workers = harness.start("low_bit_matmul", ["tilewright", "torch"], 1, options.peers)
    peak_worker = harness.Worker(harness.sys.executable, "low_bit_matmul", "tilewright_peak", 1)
    print("1 thread, Gop/s; peak measured beside each case")
    print(f"{'case':22s} {'peak':>6s} {'tilewright':>11s} {'torch':>8s}   of peak   of torch")
    for case in options.cases:
        operations = peak_worker.ask(setup={"case": case})["operations"]
        for n in options.sizes:
            before = min(peak_worker.ask(run=5)["seconds"])
            seconds = harness.interleave(workers, {"n": n, "case": case}, options.rounds)
            peak = operations / min(before, min(peak_worker.ask(run=5)["seconds"]))
            speed = {e: 2.0 * n**3 / s for e, s in seconds.items()}
            ours, peer = speed.get("tilewright", 0.0), speed.get("torch")
            print(f"{case + f' {n}':22s} {peak / 1e9:6.0f} {ours / 1e9:11.0f} "
                  + (f"{peer / 1e9:8.0f}   {ours / peak:7.2f}   {ours / peer:8.2f}" if peer else
                     f"{'-':>8s}   {ours / peak:7.2f}"), flush=True)
    harness.close([*workers, peak_worker])


if __name__ == "__main__":
    main()
