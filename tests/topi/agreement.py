"""Do the operators give what NumPy gives in float64? `python -m tests.topi.agreement --samples 50` is the long run.

A case draws samples of one operator: arrays, attributes, what comes out. The operator runs on symbolic placeholders
in some of them, in the interpreter and, in the long run, as compiled code too.
"""
from __future__ import annotations

import argparse
import math
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import te
from tilewright.arith.analyzer import Analyzer
from tilewright.te.tensor import Tensor
from tilewright.tir import dtype as dt
from tilewright.tir import interp
from tilewright.tir.node import substitute

FLOATS = ("float32", "float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTEGERS)
#: of results, relative to the largest of them
TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 3e-3, "bfloat16": 2.5e-2, "float8_e4m3fn": 0.0,
             "float8_e5m2": 0.0}


class Draw:
    """Random choices of one sample."""

    def __init__(self, seed: Sequence[int]) -> None:
        self.rng = np.random.default_rng(seed)

    def integer(self, low: int, high: int) -> int:
        """A number from low to high."""
        return int(self.rng.integers(low, high + 1))

    def choice(self, *values: Any) -> Any:
        return values[self.integer(0, len(values) - 1)]

    def flag(self, chance: float = 0.5) -> bool:
        return bool(self.rng.random() < chance)

    def extent(self, high: int = 7, zero: float = 0.04) -> int:
        """An extent from 1, rarely 0."""
        return 0 if self.flag(zero) else self.integer(1, high)

    def shape(self, least: int = 0, most: int = 4, high: int = 5, zero: float = 0.04) -> tuple[int, ...]:
        return tuple(self.extent(high, zero) for _ in range(self.integer(least, most)))

    def dtype(self, *kinds: str) -> str:
        return self.choice(*(kinds or FLOATS))

    def array(self, shape: Sequence[int], dtype: str = "float32", low: float = -2.0, high: float = 2.0) -> np.ndarray:
        """Numbers from low to high; of integers all that fit in small ranges."""
        kind = dt.numpy_dtype(dtype)
        if dt.is_bool(dtype):
            return np.asarray(self.rng.random(tuple(shape)) < 0.5)
        if dt.is_float(dtype):
            return np.asarray(self.rng.random(tuple(shape)) * (high - low) + low).astype(kind)
        least, most = dt.integer_range(dtype)
        low, high = (low, high) if (low, high) != (-2.0, 2.0) else (-9, 9)
        return np.asarray(self.rng.integers(max(int(low), least), min(int(high), most) + 1, tuple(shape))).astype(kind)

    def axis(self, rank: int) -> int:
        """An axis, counted from the front or the end."""
        return self.integer(-rank, rank - 1)

    def axes(self, rank: int) -> Any:
        """None, one axis, or some of them."""
        if rank == 0 or self.flag(0.2):
            return None if self.flag() or rank == 0 else ()
        if self.flag(0.4):
            return self.axis(rank)
        chosen = self.rng.permutation(rank)[:self.integer(1, rank)]
        return tuple(int(a) - (rank if self.flag(0.3) else 0) for a in chosen)

    def broadcastable(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to this one."""
        kept = shape[self.integer(0, len(shape)):] if self.flag(0.3) else shape
        return tuple(1 if self.flag(0.3) else n for n in kept)


@dataclass
class Sample:
    """`call` of tensors gives `expected`. dtype: that of the results, else of the expected arrays.

    symbolic: which axes of which arrays may be variables; "all", or one tuple of axes for each array.
    """
    call: Callable[..., Any]
    arrays: Sequence[np.ndarray]
    expected: Any
    dtype: Any = None
    symbolic: Any = "all"
    tolerance: float = 1.0


CASES: dict[str, Callable[[Draw], Sample]] = {}


def case(make: Callable[[Draw], Sample]) -> Callable[[Draw], Sample]:
    """Register the samples of the operator of the function's name."""
    name = make.__name__.rstrip("_")
    assert name not in CASES, name
    CASES[name] = make
    return make


def wide(x: np.ndarray) -> np.ndarray:
    """A float array in float64, others as they are."""
    return x.astype("float64") if dt.is_float(dt.canonical(x.dtype)) else x


def _placeholders(sample: Sample, draw: Draw) -> tuple[list[Tensor], dict[Any, int]]:
    """The arguments, in some samples of symbolic extents: one variable for each value."""
    sizes: dict[int, Any] = {}
    chance = draw.flag(0.4) and sample.symbolic is not None
    out = []
    for n, array in enumerate(sample.arrays):
        axes = range(array.ndim) if sample.symbolic == "all" else () if sample.symbolic is None else tuple(
            a % max(array.ndim, 1) for a in sample.symbolic[n])
        shape = [sizes.setdefault(e, te.var(f"n{e}")) if chance and k in axes and e != 1 else e
                 for k, e in enumerate(array.shape)]
        out.append(te.placeholder(shape, dt.canonical(array.dtype), name=f"x{n}"))
    return out, {v: e for e, v in sizes.items()}


def _shape(x: Tensor, sizes: dict[Any, int]) -> tuple[int, ...]:
    values = {v: te.const(n, v.dtype) for v, n in sizes.items()}
    return tuple(int(Analyzer().simplify(substitute(e, values)).value) for e in x.shape)


def run(sample: Sample, draw: Draw, compiled: bool = False) -> None:
    """Compare. Raises AssertionError, or whatever the operator and the compiler raise."""
    args, sizes = _placeholders(sample, draw)
    found = sample.call(*args)
    outs = list(found) if isinstance(found, (tuple, list)) else [found]
    expected = list(sample.expected) if isinstance(sample.expected, (tuple, list)) else [sample.expected]
    assert len(outs) == len(expected), f"{len(outs)} results, {len(expected)} expected"
    dtypes = list(sample.dtype) if isinstance(sample.dtype, (tuple, list)) else [sample.dtype] * len(outs)
    arrays = []
    for x, e, kind in zip(outs, expected, dtypes):
        shape, kind = _shape(x, sizes), kind or dt.canonical(np.asarray(e).dtype)
        assert shape == np.shape(e), f"the shape is {shape}, not {np.shape(e)}"
        assert x.dtype == kind, f"the dtype is {x.dtype}, not {kind}"
        arrays.append(np.zeros(shape, dt.numpy_dtype(x.dtype)))
    copies = [te.compute(x.shape, lambda *i, x=x: x(*i)) if x in args or x in outs[:n] else x
              for n, x in enumerate(outs)]
    used = {t for op in te.post_order([x.op for x in copies]) for t in op.input_tensors}
    unused = [v for v in sizes if not any(v in a.shape for a in args if a in used)]
    assert not unused or any(v in a.shape for a in args for v in unused)
    func = te.create_prim_func([*args, *copies])
    inputs = [np.array(a, order="C") for a in sample.arrays]
    if compiled:
        tw.compile(func)(*inputs, *arrays)
    else:
        interp.run(func, *inputs, *arrays)
    for got, e in zip(arrays, expected):
        _compare(got, np.asarray(e), sample.tolerance)


def _compare(got: np.ndarray, expected: np.ndarray, factor: float) -> None:
    kind = dt.canonical(got.dtype)
    if not dt.is_float(kind):
        np.testing.assert_array_equal(got, expected.astype(got.dtype))
        return
    with np.errstate(all="ignore"):
        e, g = expected.astype(got.dtype).astype("float64"), got.astype("float64")
        finite = np.abs(e[np.isfinite(e)])
        near = TOLERANCE[kind] * factor * max(finite.max() if finite.size else 0.0, 1e-30)
    np.testing.assert_allclose(g, e, rtol=TOLERANCE[kind] * factor, atol=near)


def seed_of(name: str, number: int) -> list[int]:
    return [zlib.crc32(name.encode()), number]


def samples(name: str, numbers: Sequence[int]) -> Iterator[tuple[int, Sample, Draw]]:
    for number in numbers:
        draw = Draw(seed_of(name, number))
        yield number, CASES[name](draw), draw


def failures(name: str, numbers: Sequence[int], every: int = 0) -> list[str]:
    """What went wrong, sample by sample. Every `every`-th sample runs compiled too."""
    wrong = []
    for number in numbers:
        try:
            draw = Draw(seed_of(name, number))
            sample = CASES[name](draw)
            run(sample, draw)
            if every and number % every == 0:
                run(sample, draw, compiled=True)
        except Exception:
            text = traceback.format_exc().strip().splitlines()
            wrong.append(f"{name} {number}: " + "\n    ".join(text[-4:]))
    return wrong


def main() -> int:
    from tests.topi import cases  # noqa: F401 - registers them
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="number of the first sample")
    parser.add_argument("--every", type=int, default=10, help="compile every n-th sample too; 0: none")
    parser.add_argument("names", nargs="*", help="operators; all of them without names")
    given = parser.parse_args()
    total, bad, start = 0, 0, time.time()
    for name in given.names or CASES:
        begin = time.time()
        wrong = failures(name, range(given.first, given.first + given.samples), given.every)
        total, bad = total + given.samples, bad + len(wrong)
        print(f"{name}: {given.samples} samples, {len(wrong)} mismatches, {time.time() - begin:.1f} s", flush=True)
        for text in wrong[:3]:
            print(text, flush=True)
    took = math.ceil(time.time() - start)
    print(f"{len(given.names or CASES)} operators, {total} samples, {bad} mismatches, {took} s")
    return bool(bad)


if __name__ == "__main__":
    from tests.topi import agreement  # the module that the cases register in
    sys.exit(agreement.main())
