"""Products of tensors: matrices of every rank, einsum, dense layers."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.support.errors import described
from tilewright.te.definition import compute
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, select
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr
from tilewright.topi.contraction import contraction, reduction_axis
from tilewright.topi.indexing import from_end
from tilewright.topi.shapes import (
    axis_indices,
    batched,
    broadcast_shapes,
    check,
    check_extent,
    check_rank,
    check_tensors,
    constant,
    element,
    is_one,
    product,
)
from tilewright.topi.types import NUMBER, accumulator, check_kind, common_type, dtype_name, promoted, rounded


def _result_type(op: str, out_dtype: Any, *tensors: Tensor) -> str:
    common = common_type(op, *tensors)
    check_kind(op, "an operand", common, NUMBER, 'convert it: x.astype("int32")')
    return common if out_dtype is None else dtype_name(out_dtype)


def matmul(a: Tensor, b: Tensor, *, transpose_a: bool = False, transpose_b: bool = False,
           out_dtype: Any = None) -> Tensor:
    """y[..., i, j] = sum over k of a[..., i, k] * b[..., k, j], of vectors, matrices and batches of them.

    a: T[..., m, k], or T[..., k, m] with transpose_a; b: T[..., k, n], or T[..., n, k] with transpose_b. The leading
    dimensions broadcast. A vector a is a row, a vector b a column, and its dimension is not part of the result (as in
    NumPy). out_dtype: the type in which products are made and added up; default: that of the operands.
    Raises TensorExpressionError for operands without dimensions, and where the extents k differ.
    """
    op = "matmul"
    check_tensors(op, a=a, b=b)
    for name, x, transposed in (("a", a, transpose_a), ("b", b, transpose_b)):
        check_rank(op, name, x, 2 if transposed else 1, 100)
    dtype = _result_type(op, out_dtype, a, b)
    rows, columns = a.ndim > 1, b.ndim > 1
    inner = a.shape[-2 if transpose_a else -1]
    other = b.shape[-1 if transpose_b or not columns else -2]
    check_extent(op, f"the contracted extent of b of shape {shape_text(b.shape)}", other, inner,
                 f"a has the shape {shape_text(a.shape)}")
    batch = broadcast_shapes(op, a.shape[:-2], b.shape[:-2])
    own = ((a.shape[-1 if transpose_a else -2],) if rows else ()) + (
        (b.shape[-2 if transpose_b else -1],) if columns else ())
    k = reduction_axis(inner, "k")

    def factors(*i: Any) -> tuple[Expr, Expr]:
        lead, i = i[:len(batch)], i[len(batch):]
        left = (k, i[0]) if transpose_a else (i[0], k) if rows else (k,)
        right = (i[-1], k) if transpose_b else (k, i[-1]) if columns else (k,)
        return batched(a, lead, left), batched(b, lead, right)

    return contraction(op, (*batch, *own), factors, [k], dtype)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, out_dtype: Any = None) -> Tensor:
    """y[..., o] = sum over c of x[..., c] * weight[o, c], + bias[o].

    x: T[..., c]; weight: T[o, c]; bias: T[o]. Raises TensorExpressionError where extents differ.
    """
    op = "linear"
    check_tensors(op, x=x, weight=weight)
    check_rank(op, "x", x, 1, 100)
    check_rank(op, "weight", weight, 2)
    check_extent(op, f"the last extent of x of shape {shape_text(x.shape)}", x.shape[-1], weight.shape[1],
                 f"weight has the shape {shape_text(weight.shape)}")
    dtype = _result_type(op, out_dtype, x, weight)
    k = reduction_axis(x.shape[-1], "k")
    y = contraction(op, (*x.shape[:-1], weight.shape[0]), lambda *i: (x(*i[:-1], k), weight(i[-1], k)), [k],
                    before_bias(bias, dtype))
    return with_bias(op, y, bias, -1, dtype)


def before_bias(bias: Tensor | None, dtype: str) -> str:
    """The type of a sum of dtype to which a bias is added before it is rounded, if there is one."""
    return dtype if bias is None else accumulator(dtype)


def with_bias(op: str, y: Tensor, bias: Tensor | None, axis: int, dtype: str) -> Tensor:
    """y + bias along an axis, rounded to dtype."""
    if bias is None:
        return rounded(y, dtype, f"{op}_rounded")
    check_tensors(op, bias=bias)
    check(bias.ndim == 1, op, f"bias has the shape {shape_text(bias.shape)}, one dimension is needed")
    check_extent(op, "the extent of bias", bias.shape[0], y.shape[axis], f"the result has the shape "
                 f"{shape_text(y.shape)}")
    _check_added(op, "bias", bias, y)
    return compute(y.shape, lambda *i: cast(dtype, binary("add", y(*i), cast(y.dtype, bias(i[axis])))),
                   name=f"{op}_bias")


def _check_added(op: str, name: str, x: Tensor, y: Tensor) -> None:
    """x, which is added to y in the type of y, is not cut where y is of integers."""
    check(dt.is_float(y.dtype) or promoted(op, x.dtype, y.dtype) == y.dtype, op,
          f"{name} is {x.dtype}, and the product {y.dtype}", f'convert it: {name}.astype("{y.dtype}")')


def indexed_matmul(x: Tensor, weight: Tensor, indices: Tensor, *, out_dtype: Any = None) -> Tensor:
    """y[i, o] = sum over k of x[i, k] * weight[indices[i], k, o]: each row by a matrix of its own.

    x: T[n, k]; weight: T[m, k, o]; indices: integers [n], below 0 they count from the end: the experts of the rows of a
    mixture. An index out of range is an error of the kernel. Raises TensorExpressionError where extents differ.
    """
    op = "indexed_matmul"
    check_tensors(op, x=x, weight=weight, indices=indices)
    for name, t, rank in (("x", x, 2), ("weight", weight, 3), ("indices", indices, 1)):
        check_rank(op, name, t, rank)
    check(dt.is_integer(indices.dtype), op, f"indices are {indices.dtype}, integers are needed",
          'convert them: indices.astype("int64")')
    check_extent(op, "the extent of indices", indices.shape[0], x.shape[0], f"x has the shape {shape_text(x.shape)}")
    check_extent(op, "extent 1 of weight", weight.shape[1], x.shape[1], f"x has the shape {shape_text(x.shape)}")
    dtype, shape, k = _result_type(op, out_dtype, x, weight), (x.shape[0], weight.shape[2]), reduction_axis(
        x.shape[1], "k")
    if constant(weight.shape[0]) == 0:
        check(constant(x.shape[0]) == 0, op, "weight has no matrix")
        return compute(shape, lambda i, o: const(0, dtype), name=op)

    def factors(i: Any, o: Any) -> tuple[Expr, Expr]:
        return x(i, k), weight(from_end(indices(i), weight.shape[0]), k, o)
    return contraction(op, shape, factors, [k], dtype)


def grouped_matmul(x: Tensor, weight: Tensor, ends: Tensor, *, out_dtype: Any = None) -> Tensor:
    """y[i, o] = sum over k of x[i, k] * weight[g, k, o], g: how many of the ends are not above i.

    x: T[n, k], rows in the order of their groups; weight: T[m, k, o]; ends: integers [m], ascending: where each group
    ends. Rows behind the last end are 0. As torch's grouped_mm. Raises TensorExpressionError where extents differ.
    """
    op = "grouped_matmul"
    check_tensors(op, x=x, weight=weight, ends=ends)
    for name, t, rank in (("x", x, 2), ("weight", weight, 3), ("ends", ends, 1)):
        check_rank(op, name, t, rank)
    check(dt.is_integer(ends.dtype), op, f"ends are {ends.dtype}, integers are needed")
    groups = weight.shape[0]
    check_extent(op, "the extent of ends", ends.shape[0], groups, f"weight has the shape {shape_text(weight.shape)}")
    if constant(groups) == 0:
        kind = _result_type(op, out_dtype, x, weight)
        return compute((x.shape[0], weight.shape[2]), lambda i, o: const(0, kind), name=op)
    g = reduction_axis(groups, "g")
    group = compute((x.shape[0],), lambda i: te_sum(cast("int64", binary("le", cast("int64", ends(g)), cast(
        "int64", i))), axis=g), name=f"{op}_group")
    last = cast("int64", groups) - 1
    inside = compute(group.shape, lambda i: binary("max", binary("min", group(i), last), const(0, "int64")),
                     name=f"{op}_inside")
    y = indexed_matmul(x, weight, inside, out_dtype=out_dtype)
    return compute(y.shape, lambda i, o: select(binary("le", group(i), last), y(i, o), const(0, y.dtype)), name=op)


def bilinear(a: Tensor, b: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[..., o] = sum over i and j of a[..., i] * weight[o, i, j] * b[..., j], + bias[o].

    a: T[..., n]; b: T[..., m]; weight: T[o, n, m]; bias: T[o]. Computed as two products: first weight and b.
    Raises TensorExpressionError where extents differ.
    """
    op = "bilinear"
    check_tensors(op, a=a, b=b, weight=weight)
    check_rank(op, "a", a, 1, 100)
    check_rank(op, "b", b, a.ndim)
    check_rank(op, "weight", weight, 3)
    for n, (wanted, found) in enumerate(zip(a.shape[:-1], b.shape[:-1])):
        check_extent(op, f"extent {n} of b", found, wanted, "the leading extents of a and b are the same")
    check_extent(op, "the last extent of a", a.shape[-1], weight.shape[1])
    check_extent(op, "the last extent of b", b.shape[-1], weight.shape[2])
    dtype = _result_type(op, None, a, b, weight)
    j, k = reduction_axis(weight.shape[2], "j"), reduction_axis(weight.shape[1], "k")
    half = contraction("bilinear_half", (*a.shape[:-1], *weight.shape[:2]),
                       lambda *i: (weight(i[-2], i[-1], j), b(*i[:-2], j)), [j], accumulator(dtype))
    y = contraction(op, (*a.shape[:-1], weight.shape[0]), lambda *i: (half(*i, k), a(*i[:-1], k)), [k],
                    before_bias(bias, dtype))
    return with_bias(op, y, bias, -1, dtype)


def outer(a: Tensor, b: Tensor) -> Tensor:
    """y[i, j] = a[i] * b[j] of vectors."""
    check_tensors("outer", a=a, b=b)
    check_rank("outer", "a", a, 1)
    check_rank("outer", "b", b, 1)
    dtype = _result_type("outer", None, a, b)
    return contraction("outer", (a.shape[0], b.shape[0]), lambda i, j: (a(i), b(j)), [], dtype)


def kron(a: Tensor, b: Tensor) -> Tensor:
    """y[i * p + k, j * q + l] = a[i, j] * b[k, l]: the Kronecker product, for tensors of one rank.

    a: T[m, n, ...]; b: T[p, q, ...]; y: T[m * p, n * q, ...].
    """
    op = "kron"
    check_tensors(op, a=a, b=b)
    check_rank(op, "b", b, a.ndim)
    dtype = _result_type(op, None, a, b)
    shape = [product((m, p)) for m, p in zip(a.shape, b.shape)]
    return contraction(op, shape, lambda *i: (
        a(*(binary("floordiv", v, p) for v, p in zip(i, b.shape))),
        b(*(binary("floormod", v, p) for v, p in zip(i, b.shape)))), [], dtype)


def vecdot(a: Tensor, b: Tensor, *, axis: int = -1) -> Tensor:
    """y[...] = sum over k of a[..., k, ...] * b[..., k, ...], along an axis of both, counted from the end.

    The other dimensions broadcast. Raises TensorExpressionError where the extents along the axis differ.
    """
    op = "vecdot"
    check_tensors(op, a=a, b=b)
    for name, x in (("a", a), ("b", b)):
        check_rank(op, name, x, 1, 100)
    rank = min(a.ndim, b.ndim)
    check(-rank <= axis < 0, op, f"axis is {axis}", f"the axis counts from the end, from {-rank} to -1")
    check_extent(op, f"extent {axis} of b", b.shape[axis], a.shape[axis])
    dtype = _result_type(op, None, a, b)
    full = broadcast_shapes(op, a.shape, b.shape)
    k, at = reduction_axis(a.shape[axis], "k"), len(full) + axis

    def factors(*i: Any) -> tuple[Expr, ...]:
        point = (*i[:at], k, *i[at:])
        return tuple(x(*(v if v is k else 0 if is_one(n) else v for v, n in zip(point[len(point) - x.ndim:], x.shape)))
                     for x in (a, b))
    return contraction(op, full[:at] + full[at + 1:], factors, [k], dtype)


def tensordot(a: Tensor, b: Tensor, *, axes: Any = 2) -> Tensor:
    """The sum of products over axes of a and axes of b, pair by pair; what is left of a, then of b (as in NumPy).

    axes: a number n (the last n of a, the first n of b), or two sequences of axes.
    Raises TensorExpressionError where the extents of a pair differ.
    """
    op = "tensordot"
    check_tensors(op, a=a, b=b)
    if isinstance(axes, (int, np.integer)) and not isinstance(axes, bool):
        several = int(axes)
        check(0 <= several <= min(a.ndim, b.ndim), op, f"axes is {axes}, and the shapes are {shape_text(a.shape)} and "
              f"{shape_text(b.shape)}")
        axes = tuple(range(a.ndim - several, a.ndim)), tuple(range(several))
    check(isinstance(axes, (tuple, list)) and len(axes) == 2 and None not in axes, op, f"axes is {described(axes)}, a "
          "number or two sequences are needed")
    left, right = (axis_indices(op, one, x.ndim, "axes") for one, x in zip(axes, (a, b)))
    check(len(left) == len(right), op, f"axes names {len(left)} axes of a and {len(right)} of b")
    for m, n in zip(left, right):
        check_extent(op, f"extent {n} of b of shape {shape_text(b.shape)}", b.shape[n], a.shape[m],
                     f"a has the shape {shape_text(a.shape)}")
    ks = [reduction_axis(a.shape[m], f"k{n}") for n, m in enumerate(left)]
    free_a = [n for n in range(a.ndim) if n not in left]
    free_b = [n for n in range(b.ndim) if n not in right]

    def factors(*i: Any) -> tuple[Expr, Expr]:
        at_a = dict(zip(free_a, i)) | dict(zip(left, ks))
        at_b = dict(zip(free_b, i[len(free_a):])) | dict(zip(right, ks))
        return a(*(at_a[n] for n in range(a.ndim))), b(*(at_b[n] for n in range(b.ndim)))
    shape = [a.shape[n] for n in free_a] + [b.shape[n] for n in free_b]
    return contraction(op, shape, factors, ks, _result_type(op, None, a, b))


def einsum(equation: str, *operands: Tensor, out_dtype: Any = None) -> Tensor:
    """The sum of products that the equation says: "bik,bkj->bij"; as in NumPy, with "..." and without "->" too.

    The operands are multiplied from left to right, two at a time, and rounded at the end; a letter is summed as soon as
    no later operand and not the result has it. A letter that an operand has twice is its diagonal. Extents of 1 repeat.
    Raises TensorExpressionError for an equation that does not fit the operands.
    """
    op = "einsum"
    check_tensors(op, **{f"operand {n}": x for n, x in enumerate(operands)})
    check(bool(operands), op, "there is no operand")
    terms, result = _letters(op, equation, operands)
    extents: dict[str, Any] = {}
    for x, term in zip(operands, terms):
        for letter, extent in zip(term, x.shape):
            before = extents.get(letter, extent)
            extents[letter] = broadcast_shapes(f"{op} {equation}, index {letter}", (before,), (extent,))[0]
    for letter in result:
        check(letter in extents, op, f"the result of {equation!r} has the index {letter}, which no operand has")
    dtype = _result_type(op, out_dtype, *operands)
    y, have = operands[0], terms[0]
    for n in range(1, max(2, len(operands))):
        later = {c for term in terms[n + 1:] for c in term} | set(result)
        given = [(y, have)] + ([(operands[n], terms[n])] if n < len(operands) else [])
        there = dict.fromkeys(c for _, term in given for c in term)
        last = n + 1 >= len(operands)
        kept = list(result) if last else [c for c in there if c in later]
        y, have = _contracted(given, kept, [c for c in there if c not in kept], extents,
                              dtype if last else accumulator(dtype)), kept
    return y


def _contracted(given: Sequence[tuple[Tensor, Sequence[str]]], kept: Sequence[str], gone: Sequence[str],
                extents: dict[str, Any], dtype: str) -> Tensor:
    """The product of tensors with named axes, summed over those of `gone`."""
    ks = [reduction_axis(extents[c], f"k_{c}" if c.isalpha() else f"k{n}") for n, c in enumerate(gone)]

    def factors(*i: Any) -> list[Expr]:
        at = dict(zip(kept, i)) | dict(zip(gone, ks))
        return [x(*(0 if is_one(n) else at[c] for c, n in zip(term, x.shape))) for x, term in given]
    return contraction("einsum", [extents[c] for c in kept], factors, ks, dtype)


def _letters(op: str, equation: str, operands: Sequence[Tensor]) -> tuple[list[list[str]], list[str]]:
    """The index names of each operand and of the result; those of "..." are numbers, counted from the end."""
    check(isinstance(equation, str), op, "the equation is no string", 'einsum("ik,kj->ij", a, b)')
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    check(len(texts) == len(operands), op, f"{equation!r} has {len(texts)} operand(s), {len(operands)} given")
    terms = []
    for text, x in zip(texts, operands):
        named = len(text.replace("...", ""))
        check(named == x.ndim or "..." in text and named < x.ndim + 1, op,
              f"{text!r} of {equation!r} does not fit the shape {shape_text(x.shape)}")
        terms.append(_term(op, text, x.ndim - named))
    most = max((x.ndim - len(t.replace("...", "")) for x, t in zip(operands, texts) if "..." in t), default=0)
    if arrow:
        result = _term(op, right, most)
        check(len(set(result)) == len(result), op, f"the result of {equation!r} has an index twice")
        return terms, result
    names = [c for term in terms for c in term]
    return terms, [f"{n}" for n in range(most, 0, -1)] + sorted(c for c in set(names) if names.count(c) == 1
                                                                 and c.isalpha())


def _term(op: str, text: str, more: int) -> list[str]:
    """The names in a text such as "ij..." whose dots stand for `more` axes."""
    head, dots, tail = text.partition("...")
    check(all(c.isalpha() for c in head + tail), op, f"{text!r} is not made of letters and '...'")
    return [*head, *(f"{n}" for n in range(more, 0, -1) if dots), *tail]


def multi_dot(*matrices: Tensor) -> Tensor:
    """The product of several matrices, in the order that needs the fewest multiplications for constant extents.

    Symbolic extents count as 1000. What lies between is not rounded to the type of the result.
    Algorithm: the matrix-chain order of Cormen, Leiserson, Rivest and Stein.
    Raises TensorExpressionError unless they are matrices whose extents fit.
    """
    op = "multi_dot"
    check_tensors(op, **{f"matrix {n}": x for n, x in enumerate(matrices)})
    check(bool(matrices), op, "there is no matrix")
    for n, x in enumerate(matrices):
        check_rank(op, f"matrix {n}", x, 2)
    dtype = _result_type(op, None, *matrices)
    if len(matrices) == 1:
        return compute(matrices[0].shape, lambda i, j: matrices[0](i, j), name=op)
    extents = [constant(n) for n in (*(x.shape[0] for x in matrices), matrices[-1].shape[1])]
    sizes = [1000 if n is None else n for n in extents]
    best: dict[tuple[int, int], tuple[int, int]] = {(i, i + 1): (0, i) for i in range(len(matrices))}
    for length in range(2, len(matrices) + 1):
        for i in range(len(matrices) - length + 1):
            j = i + length
            best[i, j] = min((best[i, m][0] + best[m, j][0] + sizes[i] * sizes[m] * sizes[j], m)
                             for m in range(i + 1, j))

    def chain(i: int, j: int) -> Tensor:
        return matrices[i] if j == i + 1 else matmul(chain(i, best[i, j][1]), chain(best[i, j][1], j),
                                                     out_dtype=accumulator(dtype))
    return rounded(chain(0, len(matrices)), dtype, f"{op}_rounded")


def trace(x: Tensor) -> Tensor:
    """y[...] = sum over k of x[..., k, k]. Raises TensorExpressionError unless the last two extents are equal."""
    check_tensors("trace", x=x)
    check_rank("trace", "x", x, 2, 100)
    check_extent("trace", "the last extent of x", x.shape[-1], x.shape[-2])
    k = reduction_axis(x.shape[-1], "k")
    return contraction("trace", x.shape[:-2], lambda *i: (x(*i, k, k),), [k], _result_type("trace", None, x))


def addmm(c: Tensor, a: Tensor, b: Tensor, *, alpha: float = 1.0, beta: float = 1.0, transpose_a: bool = False,
          transpose_b: bool = False) -> Tensor:
    """y[i, j] = beta * c[i, j] + alpha * sum over k of a[i, k] * b[k, j]; c broadcasts (ONNX's Gemm).

    With a beta of 0 c counts for nothing, not even where it is NaN.
    Raises TensorExpressionError where extents differ or c does not fit the product, and for a c of floats or factors
    with a fraction beside products of integers.
    """
    check_tensors("addmm", c=c, a=a, b=b)
    dtype = _result_type("addmm", None, a, b)
    y = matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b, out_dtype=accumulator(dtype))
    for name, factor in (("alpha", alpha), ("beta", beta)):
        check(dt.is_float(y.dtype) or float(factor).is_integer(), "addmm", f"{name} is {factor}, and the product "
              f"{y.dtype}")
    _check_added("addmm", "c", c, y)
    check(len(broadcast_shapes("addmm", c.shape, y.shape)) == y.ndim, "addmm", "c has more dimensions than the product")

    def scaled(factor: float, e: Expr) -> Expr:
        return e if factor == 1 else binary("mul", e, factor if dt.is_float(e.dtype) else int(factor))

    def at(*i: Any) -> Expr:
        own = scaled(alpha, y(*i))
        return cast(dtype, own if beta == 0 else binary("add", scaled(beta, cast(y.dtype, element(c, i))), own))
    return compute(y.shape, at, name="addmm")


__all__ = ["addmm", "bilinear", "einsum", "grouped_matmul", "indexed_matmul", "kron", "linear", "matmul", "multi_dot",
           "outer", "tensordot", "trace", "vecdot"]
