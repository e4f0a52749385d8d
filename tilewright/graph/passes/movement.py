"""Movement of data that cancels, or that can be left to the end: reshapes and transposes."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright import topi
from tilewright.graph.ir.callees import Operator, operator
from tilewright.graph.ir.rebuild import Rebuild, rebuilt
from tilewright.graph.ir.types import Dim
from tilewright.graph.ir.values import Call, Function, Value, readers
from tilewright.graph.passes.access import CONTRACTION, INJECTIVE, ROWS
from tilewright.graph.passes.affine import arguments
from tilewright.graph.passes.fuse import access_of
from tilewright.graph.passes.views import is_view_call
from tilewright.support.errors import GraphError

_FAMILIES = ("tilewright.topi.elementwise", "tilewright.topi.activations", "tilewright.topi.special")


def cancel_movement(function: Function) -> Function:
    """function in which a view of a view is one view, a transpose of a transpose one transpose, and what changes
    nothing is not there; a transpose that moves axes of one element alone is a reshape."""
    def step(new: Rebuild, c: Call, inputs: tuple[Value, ...]) -> Sequence[Value] | None:
        result = c.results[0] if len(c.results) == 1 else None
        if result is None:
            return None
        if is_view_call(c):
            root = inputs[0]
            while root.call is not None and is_view_call(root.call):
                root = root.call.inputs[0]
            if root.type == result.type:
                return [root]
            return None if root is inputs[0] else [_reshape(new, root, result.shape)]
        axes = permutation(c)
        if axes is None:
            return None
        x = inputs[0]
        before = None if x.call is None else permutation(x.call)
        if before is not None and x.call is not None:
            x, axes = x.call.inputs[0], tuple(before[a] for a in axes)
        if axes == tuple(range(len(axes))):
            return [x]
        moved = [a for a in axes if x.shape[a] != 1]
        if moved == sorted(moved):
            return [_reshape(new, x, result.shape)]
        if before is None:
            return None
        op, given = operator(topi.transpose, (x, axes), {}, Value)
        return [new.emit(op, *given, name="transpose")]
    return rebuilt(function, step)


def permutation(c: Call) -> tuple[int, ...] | None:
    """The axes of a transpose, counted from the first; None for other calls."""
    if not isinstance(c.callee, Operator) or c.callee.rule is not topi.transpose:
        return None
    given = arguments(c.callee, c.inputs)
    rank = c.inputs[0].ndim
    axes = None if given is None else given["axes"]
    return tuple(reversed(range(rank))) if axes is None else tuple(int(a) % rank for a in axes)


def sink_views(function: Function) -> Function:
    """function in which elementwise operators work on what a reshape reads instead of on its result, where that comes
    from a product or a normalisation and nobody else reads it: so they can be part of its kernel."""
    read_by, ends = readers(function), set(function.ends)
    once = {v for v, calls in read_by.items() if len(calls) == 1 and v not in ends}
    made_of: dict[Value, Value] = {}                     # a new value -> the old one in the place of which it stands

    def step(new: Rebuild, c: Call, inputs: tuple[Value, ...]) -> Sequence[Value] | None:
        if not isinstance(c.callee, Operator) or c.callee.rule.__module__ not in _FAMILIES or len(c.results) != 1:
            return None
        for k, v in enumerate(inputs):
            source = _heavy_source(v, made_of.get(v, c.inputs[k]), once, made_of)
            if source is None or v.type != c.results[0].type or not _broadcasts(c, k):
                continue
            given = [_viewed(new, x, v.shape, source.shape) for x in inputs]
            if any(x is None for x in given):
                continue
            try:
                inner = new.emit_all(c.callee, [x for x in given if x is not None], [c.results[0].name])[0]
            except GraphError:
                continue
            if inner.shape != source.shape or not _broadcasts(new.calls[-1], k):
                new.calls.pop()
                continue
            view = _reshape(new, inner, c.results[0].shape)
            for x in (inner, view):
                made_of[x] = c.results[0]
                if c.results[0] in once:
                    once.add(x)
            return [view]
        return None
    return rebuilt(function, step)


def _broadcasts(c: Call, k: int) -> bool:
    """Input k is read at the index that is written, and the others where NumPy's rules broadcast them: at no axis that
    the operator names."""
    found = access_of(c)
    return k in found.aligned and all(j in found.trailing for j in range(len(c.inputs)))


def _heavy_source(v: Value, old: Value, once: set[Value], made_of: dict[Value, Value]) -> Value | None:
    """What a view shows, where that is the result of a product or a normalisation and read by it alone."""
    if v.call is None or not is_view_call(v.call) or not (v in once or old in once):
        return None
    x = v.call.inputs[0]
    if x.call is None or not isinstance(x.call.callee, Operator) or len(x.call.results) != 1:
        return None
    if x not in once and made_of.get(x) not in once:
        return None
    found = access_of(x.call)
    heavy = found.kind in (CONTRACTION, ROWS) or found.kind == INJECTIVE and x in made_of
    return x if heavy and found.elementwise_end else None


def _viewed(new: Rebuild, x: Value, seen: tuple[Dim, ...], wanted: tuple[Dim, ...]) -> Value | None:
    """An operand of an operator on values of the shape `seen`, for values of the shape `wanted`; None: it has none."""
    if x.shape == seen:
        if x.call is not None and is_view_call(x.call) and x.call.inputs[0].shape == wanted:
            return x.call.inputs[0]
        return _reshape(new, x, wanted)
    if all(d == 1 for d in x.shape):
        return x if x.ndim <= len(wanted) else _reshape(new, x, ())
    lead = x.shape[:-1]
    if all(d == 1 for d in lead) and wanted and seen and x.shape[-1] == seen[-1] == wanted[-1]:
        return x if x.ndim == 1 else _reshape(new, x, (x.shape[-1],))
    return None


def _reshape(new: Rebuild, x: Value, shape: Sequence[Dim]) -> Value:
    op, given = operator(topi.reshape, (x, tuple(shape)), {}, Value)
    return new.emit(op, *given, name="reshape")
