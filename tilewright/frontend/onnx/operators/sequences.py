"""Sequences and optional values, which the importer keeps as lists of tensors."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.operators.control import stacked_rows
from tilewright.frontend.onnx.registry import operator
from tilewright.frontend.onnx.values import Held


@operator("SequenceEmpty")
def sequence_empty(n: Node) -> list[Any]:
    """A sequence of nothing."""
    return []


@operator("SequenceConstruct")
def sequence_construct(n: Node) -> list[Any]:
    """The inputs as a sequence."""
    return list(n.inputs)


def _place(n: Node, k: int, count: int) -> int:
    at = int(n.number(k, "the position"))
    if not -count <= at < count:
        raise Unsupported(f"position {at} of a sequence of {count}")
    return at % count


@operator("SequenceAt")
def sequence_at(n: Node) -> Any:
    """An element of a sequence, at a known position."""
    items = n.sequence(0)
    return items[_place(n, 1, len(items))]


@operator("SequenceErase")
def sequence_erase(n: Node) -> list[Any]:
    """A sequence without one element, the last one by default."""
    items = n.sequence(0)
    del items[_place(n, 1, len(items)) if n.has(1) else -1]
    return items


@operator("SequenceInsert")
def sequence_insert(n: Node) -> list[Any]:
    """A sequence with one element more, at the end by default."""
    items = n.sequence(0)
    at = int(n.number(2, "the position")) if n.has(2) else len(items)
    if not -len(items) <= at <= len(items):
        raise Unsupported(f"position {at} of a sequence of {len(items)}")
    items.insert(at if at >= 0 else at + len(items), n.inputs[1])
    return items


@operator("SequenceLength")
def sequence_length(n: Node) -> Held:
    """The number of elements of a sequence."""
    return Held.known(len(n.sequence(0)), "int64")


@operator("SplitToSequence")
def split_to_sequence(n: Node) -> list[Any]:
    """`topi.split`, of parts whose number is known."""
    x, axis = n.value(0), n.axis(0)
    whole = x.shape[axis]
    if not isinstance(whole, int):
        raise Unsupported(f"the number of parts depends on the extent {whole}")
    given = n.constants(1, "the sizes") if n.has(1) else None
    if given is None:
        sizes = [1] * whole
    elif n.rank(1) == 0:
        if given[0] < 1:
            raise Unsupported(f"parts of the size {given[0]}")
        sizes = [min(given[0], whole - k) for k in range(0, whole, given[0])]
    else:
        sizes = given
    if not 0 < len(sizes) <= 4096:
        raise Unsupported(f"{len(sizes)} parts")
    made = n.emit(topi.split, x, sizes, axis=axis) if len(sizes) > 1 else (x,)
    if given is None and not n.attr("keepdims", 1):
        made = tuple(n.emit(topi.squeeze, p, axis=axis) for p in made)
    return [Held.of(p) for p in made]


@operator("ConcatFromSequence")
def concat_from_sequence(n: Node) -> Any:
    """`topi.concatenate` or `topi.stack`."""
    items, axis = n.sequence(0), n.required("axis")
    if n.attr("new_axis", 0):
        return stacked_rows(n, items, axis)
    return n.emit(topi.concatenate, [n.importer.value(t) for t in items], axis=axis)


@operator("SequenceMap")
def sequence_map(n: Node) -> tuple[Any, ...]:
    """A graph applied to each element."""
    body, items = n.attributes["body"].g, n.sequence(0)
    results: list[list[Any]] = [[] for _ in body.output]
    for k in range(len(items)):
        given = [e[k] if isinstance(e, list) else e for e in n.inputs]
        for kept, made in zip(results, n.importer.graph(body, n.scope.inner(f"{n.label}/{k}/"), given)):
            kept.append(made)
    return tuple(results)


@operator("Optional")
def optional(n: Node) -> Any:
    """The input, or nothing."""
    return n.inputs[0] if n.has(0) else None


@operator("OptionalHasElement")
def optional_has_element(n: Node) -> Held:
    """Whether there is something."""
    return Held.known(n.has(0))


@operator("OptionalGetElement")
def optional_get_element(n: Node) -> Any:
    """What is there."""
    if not n.has(0):
        raise Unsupported("an element of an optional value without one")
    return n.inputs[0]
