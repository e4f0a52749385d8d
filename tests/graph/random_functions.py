"""Random functions of the graph against NumPy, or PyTorch, in float64.

    python -m tests.graph.random_functions --graphs 1000 --seed 0 [--reference torch]

compiles so many, runs each with several sizes, and prints what differs. Programs are of the operators in
`random_moves.py`, with choices and loops, several results, shared operands, views, and dtypes of 8 to 64 bits. Where a
result is off, the reference runs in float32 too: a program whose result that moves as far says nothing, and is counted
as unstable; so is one whose elements leave the range in which a type is of use ("large").
"""
import argparse
import collections
import sys
import traceback

import numpy as np

from tests.graph.random_moves import MOVES
from tests.graph.random_program import TooLarge, coarsest, start
from tests.graph.references import REFERENCES
from tilewright.graph.compile import build_function
from tilewright.graph.ir.values import check_function

SIZES = {"n": (1, 2, 5, 8, 17), "m": (1, 3, 4, 16)}
RUNS = 3


def generate(seed):
    """A random program with its function."""
    rng = np.random.default_rng(seed)
    p = start(rng)
    with p.bb.function("main", p.params):
        for _ in range(rng.integers(2, 9)):
            p.choice(MOVES)(p)
        count = len(p.values)
        last = max(count - 1, 0)
        p.outputs = [last, *(int(k) for k in rng.integers(0, count, size=rng.integers(0, 4)))]
        p.bb.emit_func_output([p.values[k] for k in p.outputs], p.params)
    p.function = p.bb.get()["main"]
    return p


def difference(got, wanted):
    """The largest difference of two elements, over the largest finite one of those wanted, or 1."""
    if not got.size:
        return 0.0
    a, b = got.astype("float64"), wanted.astype("float64")
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return np.inf
    with np.errstate(invalid="ignore"):
        off = np.where(np.isnan(b) | (a == b), 0.0, np.abs(a - b))
    return float(off.max()) / max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0.0)))


def check(seed, make=REFERENCES["numpy"], runs=RUNS):
    """"right", "large" or "unstable". Raises AssertionError where a random function differs from the reference."""
    p, reference = generate(seed), make()
    check_function(p.function)
    run = build_function(p.function)
    for _ in range(runs):
        sizes = {k: int(p.rng.choice(v)) for k, v in SIZES.items()}
        arrays = p.inputs_for(sizes)
        before = [a.copy() for a in arrays]
        with np.errstate(all="ignore"):
            try:
                wanted = p.expected(reference, arrays, sizes)
            except TooLarge:
                return "large"
        got = run(*arrays)
        got = [np.asarray(a) for a in (got if isinstance(got, tuple) else (got,))]
        for a, b in zip(arrays, before):
            assert a.tobytes() == b.tobytes(), f"an input has changed ({sizes})"
        if not compared(p, got, wanted, sizes, reference, arrays):
            return "unstable"
    return "right"


def compared(p, got, wanted, sizes, reference, arrays):
    """False where rounding in float32 moves a result that is off as far. Raises AssertionError where one is wrong."""
    allowed = coarsest(p)
    for k, (at, a, b) in enumerate(zip(p.outputs, got, wanted, strict=True)):
        v = p.values[at]
        assert a.shape == b.shape, f"result {k} has the shape {a.shape}, not {b.shape} ({sizes})"
        assert str(a.dtype) == v.dtype, f"result {k} is of {a.dtype}, not {v.dtype}"
        limit = allowed[at] if "float" in v.dtype else 0.0
        off = difference(a, b)
        if off > limit:
            with np.errstate(all="ignore"):
                rough = p.expected(reference, arrays, sizes, "float32")[k]
            if limit > 1e-6 and difference(rough, b) > limit / 8:
                return False
            raise AssertionError(f"result {k}, {v.type}, is off by {off:.3g} ({sizes})")
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--graphs", "--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reference", choices=REFERENCES, default="numpy")
    asked = parser.parse_args()
    counts, failed = collections.Counter(), 0
    for seed in range(asked.seed, asked.seed + asked.graphs):
        try:
            counts[check(seed, REFERENCES[asked.reference])] += 1
        except Exception as error:
            failed += 1
            text = "".join(traceback.format_exception_only(error)).strip()
            print(f"{seed}: {text[:600]}\n", flush=True)
    shown = ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
    print(f"{asked.graphs} functions from {asked.seed} on by {asked.reference}: {shown}, {failed} failures")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
