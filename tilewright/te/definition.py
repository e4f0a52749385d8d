"""How a user writes tensors down: placeholder, compute, extern and the variables in them."""
from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.support.errors import TensorExpressionError, described
from tilewright.support.registry import hook
from tilewright.te.constant import ConstantOp, with_tables
from tilewright.te.extents import rounding, whole
from tilewright.te.intrin.call import IntrinCall, TensorComputeOp
from tilewright.te.limits import check_size
from tilewright.te.operation import ComputeOp, ExternOp, PlaceholderOp
from tilewright.te.read_checks import checked_reads
from tilewright.te.reduction import NOT_TOP_LEVEL, Reduce, is_reduction_var
from tilewright.te.tag import tagged
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import HOW_TO_SIZE, NO_SIZE, SIZES, Buffer, decl_buffer, size
from tilewright.tir.conversion import convert
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import THREAD_INDEX, IterVar, Range
from tilewright.tir.node import walk
from tilewright.tir.stmt import THREAD_TAGS, Evaluate, Stmt

__all__ = ["compute", "create_schedule", "extern", "placeholder", "size_var", "thread_axis", "var"]
MAX_ELEMENTS = 1 << 59          # of a tensor: 16 bytes each, as many as a signed 64-bit offset reaches


def var(name: str = "tindex", dtype: str = "int32") -> Var:
    """A new scalar: a symbolic extent, or a scalar argument."""
    if not isinstance(name, str) or not name:
        raise TensorExpressionError(f"the name {described(name)} of a variable is not a string with characters")
    return Var(name, dt.canonical(dtype))


def size_var(name: str = "size", dtype: str = "int32") -> Var:
    """A new symbolic extent."""
    return var(name, dtype)


def thread_axis(dom: Any = None, tag: str = "", name: str = "") -> IterVar:
    """A thread axis for `bind`: thread_axis("threadIdx.x") or thread_axis((0, 32), "threadIdx.x").

    Raises TensorExpressionError for a tag that is not one of THREAD_TAGS.
    """
    if isinstance(dom, str):
        dom, tag = None, dom
    if not isinstance(tag, str) or tag not in THREAD_TAGS:
        raise TensorExpressionError(f"thread_axis: {described(tag)} is not a thread axis",
                                    f"one of {', '.join(THREAD_TAGS)}")
    if dom is not None and not isinstance(dom, Range):
        low, high = (whole(x) for x in (dom if isinstance(dom, (tuple, list)) and len(dom) == 2 else (0, dom)))
        for bound in (low, high):
            if not dt.is_integer(convert(bound).dtype):
                raise TensorExpressionError(f"thread_axis: the bound {described(bound)} is not an integer",
                                            rounding(bound) or 'te.thread_axis((0, 32), "threadIdx.x")')
        dom = Range(convert(low), convert(high) - convert(low))
    return IterVar(dom, Var(name or tag, "int32"), THREAD_INDEX, tag)


def to_shape(shape: Any, what: str) -> tuple[Expr, ...]:
    """The shape as expressions. A whole float is an extent too: N / bn of Python integers that divide.

    Raises TensorExpressionError for an extent that is negative or not an integer.
    """
    dims = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    out = []
    for position, d in enumerate(dims):
        plain = whole(d)
        if not isinstance(plain, (int, Expr, IterVar)) and not hasattr(plain, "__tilewright_expr__"):
            raise TensorExpressionError(f"{what}: extent {position} of shape {shape!r} is {plain!r}, not an integer",
                                        rounding(plain))
        e = size(plain)
        if dt.is_integer(e.dtype) and e.dtype not in SIZES:
            raise TensorExpressionError(f"{what}: extent {position} of shape {shape_text(tuple(map(convert, dims)))} "
                                        f"is {e}, {NO_SIZE.format(e.dtype)}", HOW_TO_SIZE)
        if not dt.is_integer(e.dtype) or (isinstance(e, IntImm) and e.value < 0):
            text = shape_text(tuple(map(convert, dims)))
            raise TensorExpressionError(
                f"{what}: extent {position} of shape {text} is {e}, not a natural number")
        out.append(e)
    count = math.prod(e.value for e in out if isinstance(e, IntImm))
    if count > MAX_ELEMENTS:
        raise TensorExpressionError(f"{what}: the shape {shape_text(tuple(out))} has {count} elements, more than "
                                    f"{MAX_ELEMENTS}, which 64-bit addresses reach")
    return tuple(out)


def placeholder(shape: Any, dtype: Any = None, name: str = "placeholder") -> Tensor:
    """An input tensor of the given shape; dtype defaults to float32."""
    kind = "float32" if dtype is None else dt.canonical(dtype)
    return PlaceholderOp(name, to_shape(shape, f"placeholder {name}"), kind).output(0)


def compute(shape: Any, fcompute: Callable[..., Any], name: str = "compute", tag: str = "",
            attrs: Mapping[str, Any] | None = None, varargs_names: Sequence[str] | None = None) -> Any:
    """The tensor whose element at (i, j, ...) is fcompute(i, j, ...).

    A tuple from fcompute gives a tuple of tensors. The call of a tensor intrinsic gives its results; fcompute then
    takes the axes before those. varargs_names: of the axes that a parameter *rest of fcompute takes (default: i0,
    i1, ...). A reduction must be the whole body of a tensor.
    Raises TensorExpressionError when fcompute takes another number of axes than the shape has, when a
    reduction is not top-level, when a reduction axis is used outside its reduction, or when a read
    certainly leaves its tensor.
    """
    what = f"compute {name}"
    extents = to_shape(shape, what)
    fcompute = with_tables(fcompute)
    names = _axis_names(fcompute, extents, what, varargs_names)
    axis = tuple(IterVar.over(e, n) for n, e in zip(names, extents))
    result = fcompute(*[iv.var for iv in axis])
    outer = len(axis)
    intrin = result.intrin if isinstance(result, IntrinCall) else None
    if isinstance(result, IntrinCall):
        inner, result = result.definition(extents, outer, what)
        axis += inner
    elif len(names) < len(extents):
        raise _arity(what, extents, len(names))
    several = isinstance(result, (tuple, list))
    if several and not result:
        raise TensorExpressionError(f"{what}: the function gives an empty tuple")
    body = tuple(_body(e, what) for e in (result if several else (result,)))
    check_size(body, what)
    _check_body(body, what)
    reduced = body[0].axis if isinstance(body[0], Reduce) else ()
    body, before_start = checked_reads(body, (*axis, *reduced), what)
    if intrin is None:
        op = ComputeOp(name, axis, body, tagged(tag, what), attrs)
    else:
        op = TensorComputeOp(name, axis, body, tagged(tag, what), attrs, intrin=intrin, outer=outer)
    op.before_start = before_start
    outputs = op.outputs
    return outputs if len(outputs) > 1 else outputs[0]


def _axis_names(fcompute: Callable[..., Any], extents: tuple[Expr, ...], what: str,
                more: Sequence[str] | None) -> list[str]:
    """One name for each axis: the parameters of fcompute, and `more`, or i0, i1, ..., for those that *rest takes."""
    if not callable(fcompute):
        raise TensorExpressionError(f"{what}: {fcompute!r} is not a function", "pass a lambda of the axes")
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(fcompute).parameters.values()
    except (TypeError, ValueError):
        raise TensorExpressionError(f"{what}: the parameters of {described(fcompute)} are not known",
                                    "pass a lambda of the axes") from None
    named = next((p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY
                  and p.default is inspect.Parameter.empty), None)
    if named is not None:
        raise TensorExpressionError(f"{what}: the function needs {named}=, which only a call by name gives",
                                    f"give it a default: {named}=...")
    names = [p.name for p in parameters if p.kind in positional]
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        rest = len(extents) - len(names)
        fine = isinstance(more, (list, tuple)) and all(isinstance(n, str) and n for n in more)
        if more is not None and not fine:
            raise TensorExpressionError(f"{what}: varargs_names is {described(more)}, not a list of names")
        if more is not None and len(more) != rest:
            raise TensorExpressionError(f"{what}: {described(more)} has {len(more)} name(s), {max(rest, 0)} are needed")
        names += more or [f"i{n}" for n in range(rest)]
    required = [p.name for p in parameters if p.kind in positional and p.default is inspect.Parameter.empty]
    if len(required) > len(extents):
        raise _arity(what, extents, len(required))
    return names[:len(extents)]


def _arity(what: str, extents: tuple[Expr, ...], taken: int) -> TensorExpressionError:
    return TensorExpressionError(f"{what}: the shape {shape_text(extents)} has {len(extents)} dimension(s), the "
                                 f"function takes {taken} argument(s)",
                                 "give it one argument for each dimension of the result")


def _body(value: Any, what: str) -> Expr:
    if value is None:
        raise TensorExpressionError(f"{what}: the function returns None", "return the expression of one element")
    e = convert(value)
    if e.dtype == "handle" or dt.lanes_of(e.dtype) > 1:
        raise TensorExpressionError(f"{what}: the function gives a value of type {e.dtype}, not a scalar")
    return e


def _check_body(body: tuple[Expr, ...], what: str) -> None:
    """Reductions are whole bodies, all of one reduction; reduction variables stay inside."""
    first = body[0]
    own: list[Var] = [k.var for k in first.axis] if isinstance(first, Reduce) else []
    for e in body:
        if isinstance(e, Reduce) != isinstance(first, Reduce) or (
                isinstance(e, Reduce) and isinstance(first, Reduce) and e.source is not first.source):
            raise TensorExpressionError(f"{what}: the outputs are not the components of one reduction",
                                        "compute them as separate tensors")
        for node in walk(e):
            if isinstance(node, Reduce) and node is not e:
                raise TensorExpressionError(f"{what}: {NOT_TOP_LEVEL}")
        for node in walk(e):
            if isinstance(node, Var) and is_reduction_var(node) and not any(node is v for v in own):
                raise TensorExpressionError(f"{what}: the reduction axis {node.name} is used outside a reduction over "
                                            "it", f"reduce over it: te.sum(..., axis={node.name})")
        if isinstance(e, Reduce):
            _check_start(e, own, what)


def _check_start(e: Reduce, own: list[Var], what: str) -> None:
    for start in e.init:
        for node in walk(start):
            if isinstance(node, Var) and any(node is v for v in own):
                raise TensorExpressionError(
                    f"{what}: the start value depends on the reduction axis {node.name}")


def extern(shape: Any, inputs: Sequence[Tensor], fcompute: Callable[..., Any], name: str = "extern",
           dtype: Any = None, in_buffers: Any = None, out_buffers: Any = None, tag: str = "",
           attrs: Mapping[str, Any] | None = None) -> Any:
    """Tensors written by the statement fcompute(input buffers, output buffers) gives.

    shape is one shape or a list of shapes, dtype one for all outputs or a list; default: the inputs' dtype.
    fcompute returns a statement, or a call (`te.call_packed("name", ins[0], outs[0])`).
    """
    what = f"extern {name}"
    tensors = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    for t in tensors:
        if not isinstance(t, Tensor):
            raise TensorExpressionError(f"{what}: the input {described(t)} is not a tensor")
        if isinstance(t.op, ConstantOp):
            raise TensorExpressionError(f"{what}: the input {t.name} is a constant, which is in no memory",
                                        "pass a te.compute that copies it")
    ins = _buffers(in_buffers, [(t.shape, t.dtype, t.name) for t in tensors], what)
    several = isinstance(shape, (tuple, list)) and bool(shape) and isinstance(shape[0], (tuple, list))
    shapes = [to_shape(s, what) for s in (shape if several else [shape])]
    given = list(dtype) if isinstance(dtype, (tuple, list)) else [dtype] * len(shapes)
    if len(given) != len(shapes):
        raise TensorExpressionError(f"{what}: {len(shapes)} shape(s) and {len(given)} dtype(s) are given",
                                    "pass one dtype for each output, or one for all")
    if dtype is None:
        kinds = {t.dtype for t in tensors}
        if len(kinds) != 1 and out_buffers is None:
            raise TensorExpressionError(f"{what}: the inputs have {len(kinds)} dtypes", "pass dtype=")
        given = [next(iter(kinds)) if out_buffers is None else ""] * len(shapes)
    names = [name] if len(shapes) == 1 else [f"{name}.v{n}" for n in range(len(shapes))]
    dtypes = [dt.canonical(d) if d else "" for d in given]
    outs = _buffers(out_buffers, list(zip(shapes, dtypes, names, strict=True)), what)
    if not callable(fcompute):
        raise TensorExpressionError(f"{what}: {described(fcompute)} is not a function")
    body = fcompute(list(ins), list(outs))
    if isinstance(body, Expr):
        body = Evaluate(body)
    if not isinstance(body, Stmt):
        raise TensorExpressionError(f"{what}: the function gives {described(body)}, not a statement or a call")
    outputs = ExternOp(name, tensors, ins, outs, body, tagged(tag, what), attrs).outputs
    return outputs if len(outputs) > 1 else outputs[0]


def _buffers(given: Any, wanted: Sequence[tuple[tuple[Expr, ...], str, str]], what: str) -> tuple[Buffer, ...]:
    """The buffers of tensors: those given, of the wanted shapes and dtypes ("" is any), or new ones."""
    if given is None:
        return tuple(decl_buffer(shape, dtype, name) for shape, dtype, name in wanted)
    buffers = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if len(buffers) != len(wanted):
        raise TensorExpressionError(f"{what}: {len(wanted)} buffer(s) are needed, {len(buffers)} given")
    for b, (shape, dtype, name) in zip(buffers, wanted, strict=True):
        if not isinstance(b, Buffer):
            raise TensorExpressionError(f"{what}: {described(b)} is given for {name}, which is no buffer",
                                        "tir.decl_buffer(shape, dtype)")
        alike = len(b.shape) == len(shape) and all(
            x.value == y.value for x, y in zip(b.shape, shape, strict=True)
            if isinstance(x, IntImm) and isinstance(y, IntImm))
        if not alike or dtype not in ("", b.dtype):
            raise TensorExpressionError(f"{what}: the buffer {b.name} of {name} is {b.dtype}{shape_text(b.shape)}, not "
                                        f"{dtype or b.dtype}{shape_text(shape)}")
    return buffers


def create_schedule(ops: Any) -> Any:
    """The stage schedule of the operations (or tensors) and of everything that they need."""
    return hook("te.create_schedule")(ops)
