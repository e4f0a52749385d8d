"""Numbers that look random: a function of a key and of where the number stands, the same for every schedule."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright.support.errors import described
from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.math import cos, log, log1p, sqrt
from tilewright.te.reduction import reduce_axis
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, ceildiv, minimum, negate, select
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr, IntImm
from tilewright.topi.cumulative import cumsum
from tilewright.topi.normalization import hardmax, softmax
from tilewright.topi.shapes import (
    Shape,
    as_shape,
    axis_indices,
    check,
    check_choice,
    check_extent,
    check_numbers,
    check_rank,
    check_tensors,
    constant,
    element,
    per_axis,
    product,
    row_major,
)
from tilewright.topi.sorting import ordered
from tilewright.topi.types import FLOAT, accumulator, check_kind, dtype_name, rounded

MULTIPLIERS, WEYL, ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10
#: how many bits of a word, or of two for float64, make up a number of a type
_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def _word(value: int) -> Expr:
    return const(value, "uint32")


def philox_words(counter: Sequence[Expr], key: Sequence[Expr]) -> tuple[Expr, ...]:
    """Philox 4x32-10 of four words under a key of two, all uint32.

    Source: Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3 (2011).
    """
    (a, b, c, d), (k, m) = counter, key
    for n in range(ROUNDS):
        if n:
            k, m = binary("add", k, _word(WEYL[0])), binary("add", m, _word(WEYL[1]))
        first, second = (binary("mul", cast("uint64", x), const(by, "uint64")) for x, by in zip((a, c), MULTIPLIERS))
        high = [cast("uint32", binary("shr", p, const(32, "uint64"))) for p in (first, second)]
        a, b, c, d = (binary("bitxor", binary("bitxor", high[1], b), k), cast("uint32", second),
                      binary("bitxor", binary("bitxor", high[0], d), m), cast("uint32", first))
    return a, b, c, d


def _check_key(op: str, key: Any) -> None:
    check_tensors(op, key=key)
    check_rank(op, "key", key, 1)
    check_extent(op, "the extent of key", key.shape[0], 2)
    check(key.dtype == "uint32", op, f"key is {key.dtype}, uint32 is needed", 'key.astype("uint32")')


def philox(x: Tensor, key: Tensor) -> Tensor:
    """y[..., :] = Philox 4x32-10 of the counters x[..., :] under the key: four words make four others.

    x, y: uint32[..., 4]; key: uint32[2]. Source: Salmon and others (2011), as in Random123.
    """
    op = "philox"
    _check_key(op, key)
    check_tensors(op, x=x)
    check_rank(op, "x", x, 1, 100)
    check_extent(op, "the last extent of x", x.shape[-1], 4)
    check(x.dtype == "uint32", op, f"x is {x.dtype}, uint32 is needed", 'x.astype("uint32")')
    words = compute(x.shape[:-1], lambda *i: philox_words([x(*i, k) for k in range(4)], [key(0), key(1)]), name=op)
    return compute(x.shape, lambda *i: _chosen([w(*i[:-1]) for w in words], i[-1]), name=f"{op}_words")


def _chosen(values: Sequence[Expr], which: Expr) -> Expr:
    """The value of a number."""
    out = values[-1]
    for k in range(len(values) - 2, -1, -1):
        out = select(binary("eq", which, k), values[k], out)
    return out


def _blocks(op: str, key: Tensor, shape: Shape, stream: Any, each: int) -> Sequence[Tensor]:
    """Four tensors of words for the elements of a shape, `each` of them from one block."""
    _check_key(op, key)
    check(isinstance(stream, int) and 0 <= stream < 1 << 64, op, f"stream is {described(stream)}, not a natural number "
          "of 64 bits")

    def words(n: Expr) -> tuple[Expr, ...]:
        wide = cast("uint64", n)
        counter = [cast("uint32", wide), cast("uint32", binary("shr", wide, const(32, "uint64"))),
                   _word(stream & 0xFFFFFFFF), _word(stream >> 32)]
        return philox_words(counter, [key(0), key(1)])
    out: Sequence[Tensor] = compute((simplified(ceildiv(product(shape), each)),), words, name=f"{op}_philox")
    return out


def random_bits(key: Tensor, shape: Any, *, stream: int = 0) -> Tensor:
    """y: uint32 of a shape; element number n, row by row, is word n % 4 of `philox` of the counter n // 4.

    The words of the counter, from the lowest: n // 4 and the stream, of 64 bits each. key: uint32[2].
    """
    op = "random_bits"
    out = as_shape(op, shape)
    blocks = _blocks(op, key, out, stream, 4)

    def at(*i: Any) -> Expr:
        n = row_major(i, out)
        return _chosen([w(binary("floordiv", n, 4)) for w in blocks], binary("floormod", n, 4))
    return compute(out, at, name=op)


def _fractions(op: str, key: Tensor, shape: Shape, stream: int, dtype: str) -> Tensor:
    """Numbers of at least 0 and below 1, in float32 or float64."""
    check_choice(op, "dtype", dtype, _BITS)
    bits, wide = _BITS[dtype], accumulator(dtype)
    if dtype != "float64":
        words = random_bits(key, shape, stream=stream)
        return compute(shape, lambda *i: cast(wide, binary("shr", words(*i), _word(32 - bits))) * 2.0 ** -bits,
                       name=f"{op}_fractions")
    blocks = _blocks(op, key, shape, stream, 2)

    def at(*i: Any) -> Expr:
        n = row_major(i, shape)
        block, second = binary("floordiv", n, 2), binary("floormod", n, 2)
        high, low = (cast("uint64", _chosen([blocks[k](block), blocks[k + 2](block)], second)) for k in (0, 1))
        whole = binary("bitor", binary("shl", binary("shr", high, const(5, "uint64")), const(26, "uint64")),
                       binary("shr", low, const(6, "uint64")))
        return cast(wide, whole) * 2.0 ** -bits
    return compute(shape, at, name=f"{op}_fractions")


def uniform(key: Tensor, shape: Any, *, low: float = 0.0, high: float = 1.0, stream: int = 0,
            dtype: Any = "float32") -> Tensor:
    """y = low + (high - low) * u; u: the upper bits of `random_bits` as a fraction, at least 0 and below 1.

    As many bits as the type has, 24 for float32; float64 takes 53 of two words. Equal keys and streams give equal
    numbers. Raises TensorExpressionError for a type that is no float of 16 bits or more.
    """
    op, kind = "uniform", dtype_name(dtype)
    out = as_shape(op, shape)
    u = _fractions(op, key, out, stream, kind)
    return compute(out, lambda *i: cast(kind, u(*i) * (float(high) - float(low)) + float(low)), name=op)


def normal(key: Tensor, shape: Any, *, mean: float = 0.0, std: float = 1.0, stream: int = 0,
           dtype: Any = "float32") -> Tensor:
    """y = mean + std * sqrt(-2 * log(1 - u)) * cos(2 * pi * v): normally distributed (Box and Muller, 1958).

    u and v: elements 2 * n and 2 * n + 1 of `uniform`, for element number n, row by row.
    """
    op, kind = "normal", dtype_name(dtype)
    out = as_shape(op, shape)
    wide = "float64" if kind == "float64" else "float32"
    u = _fractions(op, key, (*out, *as_shape(op, 2)), stream, wide)
    check_choice(op, "dtype", kind, _BITS)

    def at(*i: Any) -> Expr:
        radius = sqrt(log1p(negate(u(*i, 0))) * -2.0)
        return cast(kind, radius * cos(u(*i, 1) * (2.0 * math.pi)) * float(std) + float(mean))
    return compute(out, at, name=op)


def exponential(key: Tensor, shape: Any, *, rate: float = 1.0, stream: int = 0, dtype: Any = "float32") -> Tensor:
    """y = -log(1 - u) / rate, u: `uniform`: exponentially distributed. Raises TensorExpressionError unless rate > 0."""
    op, kind = "exponential", dtype_name(dtype)
    check_numbers(op, rate=rate)
    check(rate > 0, op, f"rate is {rate}, a positive number is needed")
    out = as_shape(op, shape)
    u = _fractions(op, key, out, stream, kind)
    return compute(out, lambda *i: cast(kind, log1p(negate(u(*i))) * (-1.0 / rate)), name=op)


def gumbel(key: Tensor, shape: Any, *, stream: int = 0, dtype: Any = "float32") -> Tensor:
    """y = -log(-log(u)), u: `uniform` and half of a step of its fractions, below 1: extreme values, for random choices.

    The place of the largest of logits + y has their softmax as distribution (Gumbel, 1954).
    """
    op, kind = "gumbel", dtype_name(dtype)
    out = as_shape(op, shape)
    wide = "float64" if kind == "float64" else "float32"
    u, half = _fractions(op, key, out, stream, wide), 2.0 ** -(_BITS[wide] + 1)
    check_choice(op, "dtype", kind, _BITS)

    def at(*i: Any) -> Expr:
        share = minimum(u(*i) + half, const(1.0 - 2 * half, wide))           # the last sum rounds to 1
        return cast(kind, negate(log(negate(log(share)))))
    return compute(out, at, name=op)


def gumbel_softmax(x: Tensor, key: Tensor, *, tau: float = 1.0, hard: bool = False, axis: int = -1,
                   stream: int = 0) -> Tensor:
    """The softmax along an axis of (x + `gumbel`) / tau; with hard 1 for its largest element, 0 for the others.

    Source: Jang, Gu and Poole (2016). Raises TensorExpressionError unless tau > 0.
    """
    op = "gumbel_softmax"
    check_tensors(op, x=x)
    check_kind(op, "x", x.dtype, FLOAT)
    check_numbers(op, tau=tau)
    check(tau > 0, op, f"tau is {tau}, a positive number is needed")
    wide = accumulator(x.dtype)
    noise = gumbel(key, x.shape, stream=stream, dtype=wide)
    moved = compute(x.shape, lambda *i: (cast(wide, x(*i)) + noise(*i)) / tau, name=f"{op}_moved")
    return rounded((hardmax if hard else softmax)(moved, axis=axis), x.dtype, f"{op}_rounded")


def randint(key: Tensor, shape: Any, *, low: int = 0, high: int, stream: int = 0, dtype: Any = "int64") -> Tensor:
    """y = low + floor(w * (high - low) / 2 ** 32), w: `random_bits`: integers of at least low and below high.

    Raises TensorExpressionError for a range that is empty or above 2 ** 32, and for what dtype does not hold.
    """
    op, kind = "randint", dtype_name(dtype)
    check(dt.is_integer(kind), op, f"dtype is {kind}, an integer is needed")
    (low,), (high,) = (per_axis(op, name, v, 1, -(1 << 62)) for name, v in (("low", low), ("high", high)))
    check(0 < high - low <= 1 << 32, op, f"low is {low}, high is {high}")
    least, most = dt.integer_range(kind)
    check(least <= low and high - 1 <= most, op, f"low is {low}, high is {high}, beyond the range of {kind}")
    words, wide = random_bits(key, as_shape(op, shape), stream=stream), "int64" if dt.is_signed(kind) else "uint64"

    def at(*i: Any) -> Expr:
        product = binary("mul", cast("uint64", words(*i)), const(high - low, "uint64"))
        return cast(kind, cast(wide, binary("shr", product, const(32, "uint64"))) + const(low, wide))
    return compute(words.shape, at, name=op)


def permutation(key: Tensor, size: Any, *, stream: int = 0) -> Tensor:
    """int64[size]: 0, 1, ..., size - 1 in the order of `random_bits`; equal words, which are rare, keep theirs."""
    words = random_bits(key, size, stream=stream)
    check_rank("permutation", "size", words, 1)
    return ordered("permutation", words, 0, False)


def bernoulli(x: Tensor, key: Tensor, *, stream: int = 0, dtype: Any = None) -> Tensor:
    """y = 1 with the probability x, where `uniform` in float32 is below it, else 0; in the type of x, or dtype."""
    op = "bernoulli"
    check_tensors(op, x=x)
    check_kind(op, "x", x.dtype, FLOAT)
    kind, u = x.dtype if dtype is None else dtype_name(dtype), _fractions(op, key, x.shape, stream, "float32")
    return compute(x.shape, lambda *i: cast(kind, binary("lt", u(*i), cast("float32", x(*i)))), name=op)


def multinomial(x: Tensor, key: Tensor, *, samples: Any, stream: int = 0) -> Tensor:
    """int64[..., samples]: places in the rows of x: T[..., n], each with a probability in proportion to its element.

    With replacement: how many running sums of a row are not above u * its sum, in float64, u: `uniform` in float32.
    Elements are not negative. Raises TensorExpressionError for rows without elements.
    """
    op = "multinomial"
    check_tensors(op, x=x)
    check_rank(op, "x", x, 1, 100)
    check_kind(op, "x", x.dtype, FLOAT)
    n = x.shape[-1]
    check(constant(n) != 0, op, f"x has the shape {shape_text(x.shape)}, without an element to choose")
    shape = (*x.shape[:-1], *as_shape(op, samples))
    u, sums = _fractions(op, key, shape, stream, "float32"), cumsum(x, axis=-1, dtype="float64")
    k = reduce_axis((0, n), name="k")

    def passed(*i: Any) -> Expr:
        point = cast("float64", u(*i)) * sums(*i[:-1], binary("sub", n, 1))
        return te_sum(cast("int64", binary("le", sums(*i[:-1], k), point)), axis=k)
    count = compute(shape, passed, name=f"{op}_count")
    return compute(shape, lambda *i: minimum(count(*i), cast("int64", n) - 1), name=op)


def dropout(x: Tensor, key: Tensor, *, p: float = 0.5, stream: int = 0, shared: Any = ()) -> Tensor:
    """y = x / (1 - p) where `uniform` in float32 is at least p, else 0: elements are left out with the probability p.

    Equal keys and streams leave out the same elements, so a gradient needs no mask that is kept. shared: axes along
    which elements have one number, such as those of space, to leave out whole channels.
    """
    op = "dropout"
    check_tensors(op, x=x)
    check_kind(op, "x", x.dtype, FLOAT)
    check(isinstance(p, (int, float)) and 0 <= p <= 1, op, f"p is {described(p)}, not between 0 and 1")
    axes = axis_indices(op, shared, x.ndim, "shared")
    form = tuple(IntImm(1) if n in axes else extent for n, extent in enumerate(x.shape))
    u, wide = _fractions(op, key, form, stream, "float32"), accumulator(x.dtype)
    scale = 0.0 if p == 1 else 1.0 / (1.0 - p)
    return compute(x.shape, lambda *i: cast(x.dtype, select(
        binary("ge", element(u, i), const(float(p), "float32")), cast(wide, x(*i)) * scale, const(0.0, wide))), name=op)


__all__ = ["bernoulli", "dropout", "exponential", "gumbel", "gumbel_softmax", "multinomial", "normal", "permutation",
           "philox", "randint", "random_bits", "uniform"]
