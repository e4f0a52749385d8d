"""Samples of numbers that look random; the references are made of Python's integers."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import Draw, Sample, case, wide
from tests.topi.references import softmax
from tilewright import topi

WORD = 0xFFFFFFFF


def words(counter, key):
    """Philox 4x32-10."""
    (a, b, c, d), (k, m) = map(int, counter), map(int, key)
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (second >> 32) ^ b ^ k, second & WORD, (first >> 32) ^ d ^ m, first & WORD
        k, m = (k + 0x9E3779B9) & WORD, (m + 0xBB67AE85) & WORD
    return a, b, c, d


def drawn(draw: Draw):
    """(key, stream)"""
    key = draw.rng.integers(0, WORD, 2, endpoint=True).astype("uint32")
    return key, draw.choice(0, 1, draw.integer(0, 1 << 50))


def bits(key, stream, count):
    out = [w for n in range(-(-count // 4)) for w in words((n, 0, stream & WORD, stream >> 32), key)]
    return np.array(out[:count], "uint32")


def fractions(key, stream, shape, dtype):
    count = int(np.prod(shape))
    if dtype == "float64":
        pairs = bits(key, stream, 2 * count).reshape(-1, 2).astype("uint64")
        return (((pairs[:, 0] >> np.uint64(5)) << np.uint64(26)) + (pairs[:, 1] >> np.uint64(6))).astype(
            "float64").reshape(shape) * 2.0 ** -53
    kept = {"float32": 24, "float16": 11, "bfloat16": 8}[dtype]
    return (bits(key, stream, count) >> np.uint32(32 - kept)).reshape(shape) * 2.0 ** -kept


@case
def philox(draw: Draw) -> Sample:
    x = draw.rng.integers(0, WORD, (*draw.shape(0, 2, 3), 4), endpoint=True).astype("uint32")
    key, _ = drawn(draw)
    y = np.array([words(c, key) for c in x.reshape(-1, 4)], "uint32").reshape(x.shape)
    return Sample(topi.philox, [x, key], y, symbolic=[tuple(range(x.ndim - 1)), ()])


@case
def random_bits(draw: Draw) -> Sample:
    (key, stream), shape = drawn(draw), draw.shape(0, 3)
    return Sample(lambda key: topi.random_bits(key, shape, stream=stream), [key],
                  bits(key, stream, int(np.prod(shape))).reshape(shape), symbolic=None)


@case
def uniform(draw: Draw) -> Sample:
    (key, stream), shape, dtype = drawn(draw), draw.shape(0, 3), draw.dtype()
    low, high = draw.choice((0.0, 1.0), (-2.0, 3.0))
    y = low + (high - low) * fractions(key, stream, shape, dtype)
    return Sample(lambda key: topi.uniform(key, shape, low=low, high=high, stream=stream, dtype=dtype), [key], y, dtype,
                  None)


@case
def normal(draw: Draw) -> Sample:
    (key, stream), shape, dtype = drawn(draw), draw.shape(0, 3), draw.dtype()
    mean, std = draw.choice((0.0, 1.0), (0.5, 2.0))
    u = fractions(key, stream, (*shape, 2), "float64" if dtype == "float64" else "float32")
    y = mean + std * np.sqrt(-2 * np.log1p(-u[..., 0])) * np.cos(2 * np.pi * u[..., 1])
    return Sample(lambda key: topi.normal(key, shape, mean=mean, std=std, stream=stream, dtype=dtype), [key], y, dtype,
                  None, tolerance=4)


@case
def exponential(draw: Draw) -> Sample:
    (key, stream), shape, dtype, rate = drawn(draw), draw.shape(0, 3), draw.dtype(), draw.choice(1.0, 2.5)
    y = -np.log1p(-fractions(key, stream, shape, dtype)) / rate
    attrs = {"rate": rate, "stream": stream, "dtype": dtype}
    return Sample(lambda key: topi.exponential(key, shape, **attrs), [key], y, dtype, None)


@case
def gumbel(draw: Draw) -> Sample:
    (key, stream), shape, dtype = drawn(draw), draw.shape(0, 3), draw.dtype()
    wide_type, bit = ("float64", 54) if dtype == "float64" else ("float32", 25)
    u = fractions(key, stream, shape, wide_type) + 2.0 ** -bit
    u = u if wide_type == "float64" else u.astype("float32").astype("float64")
    return Sample(lambda key: topi.gumbel(key, shape, stream=stream, dtype=dtype), [key], -np.log(-np.log(u)), dtype,
                  None, tolerance=8)


@case
def gumbel_softmax(draw: Draw) -> Sample:
    (key, stream), dtype, tau, hard = drawn(draw), draw.dtype(), draw.choice(1.0, 0.5), draw.flag()
    x = draw.array(draw.shape(1, 3, 5, 0), dtype)
    axis = draw.axis(x.ndim)
    kind, bit = ("float64", 54) if dtype == "float64" else ("float32", 25)
    u = (fractions(key, stream, x.shape, kind) + 2.0 ** -bit).astype(kind).astype("float64")
    y = softmax((wide(x) - np.log(-np.log(u))) / tau, axis)
    if hard:
        y = (np.expand_dims(y.argmax(axis), axis) == np.arange(x.shape[axis]).reshape(
            [-1 if k == axis % x.ndim else 1 for k in range(x.ndim)])).astype("float64")
    return Sample(lambda x, key: topi.gumbel_softmax(x, key, tau=tau, hard=hard, axis=axis, stream=stream), [x, key], y,
                  dtype, [tuple(range(x.ndim)), ()], tolerance=8)


@case
def randint(draw: Draw) -> Sample:
    (key, stream), shape = drawn(draw), draw.shape(0, 3)
    dtype, (low, high) = draw.choice(("int64", (-5, 1 << 31)), ("int32", (-3, 4)), ("uint8", (0, 256)),
                                     ("int64", (0, 1)))
    w = bits(key, stream, int(np.prod(shape))).reshape(shape).astype(object)
    y = np.asarray(low + (w * (high - low) // (1 << 32))).astype("int64")
    return Sample(lambda key: topi.randint(key, shape, low=low, high=high, stream=stream, dtype=dtype), [key], y, dtype,
                  None)


@case
def permutation(draw: Draw) -> Sample:
    (key, stream), size = drawn(draw), draw.extent(20)
    return Sample(lambda key: topi.permutation(key, size, stream=stream), [key],
                  np.argsort(bits(key, stream, size), kind="stable"), "int64", None)


@case
def bernoulli(draw: Draw) -> Sample:
    (key, stream), x = drawn(draw), draw.array(draw.shape(0, 3), draw.dtype(), 0, 1)
    y, kind = fractions(key, stream, x.shape, "float32") < x.astype("float32"), draw.choice(None, "bool", "int32")
    return Sample(lambda x, key: topi.bernoulli(x, key, stream=stream, dtype=kind), [x, key], y,
                  kind or str(x.dtype), [tuple(range(x.ndim)), ()])


@case
def multinomial(draw: Draw) -> Sample:
    (key, stream), samples = drawn(draw), draw.extent(5)
    x = draw.array((*draw.shape(0, 2, 3), draw.integer(1, 6)), draw.dtype(), 0, 1)
    x[draw.rng.random(x.shape) < 0.3] = 0
    x[..., -1] += x.dtype.type(0.25)
    u = fractions(key, stream, (*x.shape[:-1], samples), "float32")
    sums = np.cumsum(wide(x), -1)
    y = (sums[..., None, :] <= (u * sums[..., -1:])[..., None]).sum(-1)
    return Sample(lambda x, key: topi.multinomial(x, key, samples=samples, stream=stream), [x, key], y, "int64",
                  [tuple(range(x.ndim)), ()])


@case
def dropout(draw: Draw) -> Sample:
    (key, stream), p = drawn(draw), draw.choice(0.0, 0.3, 0.5, 1.0)
    x = draw.array(draw.shape(0, 3), draw.dtype())
    shared = [a - x.ndim * draw.flag() for a in range(x.ndim) if draw.flag(0.2)]
    form = [1 if n in shared or n - x.ndim in shared else e for n, e in enumerate(x.shape)]
    kept = fractions(key, stream, form, "float32") >= np.float32(p)
    return Sample(lambda x, key: topi.dropout(x, key, p=p, stream=stream, shared=shared), [x, key],
                  np.where(kept, wide(x) / (1 - p or 1), 0), str(x.dtype), [tuple(range(x.ndim)), ()])
