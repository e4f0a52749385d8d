"""Choices and loops that the importer can decide: the branch that is taken, turns written out one after the other."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.limits import MOST_TURNS
from tilewright.frontend.onnx.node import Node, Unknown, Unsupported, checked_axis
from tilewright.frontend.onnx.registry import operator
from tilewright.frontend.onnx.values import Held


@operator("If")
def if_(n: Node) -> tuple[Any, ...]:
    """The branch that a known condition takes."""
    chosen = "then_branch" if bool(n.number(0, "the condition")) else "else_branch"
    return tuple(n.importer.graph(n.attributes[chosen].g, n.scope.inner(f"{n.label}/"), []))


def _turns(count: Any) -> int:
    if not isinstance(count, int):
        raise Unsupported(f"the number of turns is {count}, which depends on sizes")
    if count > MOST_TURNS:
        raise Unsupported(f"{count} turns, at most {MOST_TURNS} are written out")
    return count


@operator("Loop")
def loop(n: Node) -> tuple[Any, ...]:
    """The turns of a loop whose number is known."""
    body = n.attributes["body"].g
    most = n.number(0, "the number of turns") if n.has(0) else None
    states, carried = list(n.inputs[2:]), len(n.inputs) - 2
    keep: Any = n.inputs[1] if n.has(1) else Held.known(True)
    stacked: list[list[Any]] = [[] for _ in range(len(body.output) - 1 - carried)]
    turn = 0
    while most is None or turn < _turns(min(most, MOST_TURNS + 1)):
        if not _decided(keep):
            break
        if turn >= MOST_TURNS:
            raise Unsupported(f"more than {MOST_TURNS} turns")
        inputs = [Held.known(turn, "int64"), keep, *states]
        made = n.importer.graph(body, n.scope.inner(f"{n.label}/{turn}/"), inputs)
        keep, states = made[0], made[1:1 + carried]
        for rows, row in zip(stacked, made[1 + carried:]):
            rows.append(row)
        turn += 1
    return (*states, *(stacked_rows(n, rows, 0) for rows in stacked))


def _decided(condition: Any) -> bool:
    if not isinstance(condition, Held):
        raise Unsupported("the condition is no tensor")
    if condition.elements is None or condition.is_symbolic:
        raise Unknown(condition, "the condition")
    return bool(condition.elements.reshape(-1)[0])


def stacked_rows(n: Node, rows: list[Any], axis: int) -> Any:
    if not rows:
        raise Unsupported("a loop of no turns, whose results have no known shape")
    if any(not isinstance(r, Held) for r in rows):
        raise Unsupported("a loop that stacks what is no tensor")
    return n.emit(topi.stack, [n.importer.value(r) for r in rows], axis=axis) if len(rows) <= 64 else \
        n.emit(long_stack, [n.importer.value(r) for r in rows], axis)


def long_stack(rows: Any, axis: int) -> Any:
    """`topi.stack`, halves first where there are many."""
    if len(rows) <= 64:
        return topi.stack(rows, axis=axis)
    half = len(rows) // 2
    return topi.concatenate([long_stack(rows[:half], axis), long_stack(rows[half:], axis)], axis=axis)


@operator("Scan", since=9)
def scan(n: Node) -> tuple[Any, ...]:
    """The steps of a scan over an extent that is known."""
    body, count = n.attributes["body"].g, n.required("num_scan_inputs")
    carried = len(n.inputs) - count
    if count < 1 or carried < 0:
        raise Unsupported(f"{count} inputs to scan of {len(n.inputs)}")
    states, given = list(n.inputs[:carried]), [n.value(k) for k in range(carried, len(n.inputs))]
    axes = [checked_axis(a, v.ndim) for a, v in zip(n.attr("scan_input_axes") or [0] * count, given, strict=True)]
    back = n.attr("scan_input_directions") or [0] * count
    turns = {v.shape[a] for v, a in zip(given, axes)}
    if len(turns) != 1:
        raise Unsupported(f"inputs of {len(turns)} different lengths")
    length = _turns(next(iter(turns)))
    outs = len(body.output) - carried
    stacked: list[list[Any]] = [[] for _ in range(outs)]
    for t in range(length):
        rows = [n.emit(row, v, a, length - 1 - t if b else t) for v, a, b in zip(given, axes, back, strict=True)]
        made = n.importer.graph(body, n.scope.inner(f"{n.label}/{t}/"), [*states, *map(Held.of, rows)])
        states = made[:carried]
        for kept, result in zip(stacked, made[carried:]):
            kept.append(result)
    over = n.attr("scan_output_axes") or [0] * outs
    reverse = n.attr("scan_output_directions") or [0] * outs
    return (*states, *(stacked_rows(n, rows[::-1] if r else rows, a)
                       for rows, a, r in zip(stacked, over, reverse, strict=True)))


def row(x: Any, axis: int, index: int) -> Any:
    """x at an index along an axis."""
    return topi.squeeze(topi.strided_slice(x, begin=[index], end=[index + 1], axes=[axis]), axis=axis)


@operator("Scan", until=8)
def scan_of_batches(n: Node) -> Any:
    """Refused: scans of version 8."""
    raise Unsupported("a scan by the rules of version 8")
