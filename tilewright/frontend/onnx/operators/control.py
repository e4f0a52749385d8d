"""Choices and loops: decided and written out by the importer where it can, else run with the model."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.frontend.onnx.limits import FEW_TURNS, MOST_TURNS
from tilewright.frontend.onnx.node import Node, Unknown, Unsupported, checked_axis
from tilewright.frontend.onnx.regions import Region, emit_choice, emit_loop, region, values_of
from tilewright.frontend.onnx.registry import operator
from tilewright.frontend.onnx.scope import Poisoned
from tilewright.frontend.onnx.values import Held
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.values import Value
from tilewright.support.errors import GraphError
from tilewright.tir import Expr
from tilewright.tir.arithmetic import logical_not


def attempt(n: Node, ways: Sequence[Callable[[], Any]]) -> Any:
    """What the first way gives that works. Raises what the last one raises."""
    for way in ways[:-1]:
        before = n.importer.mark()
        try:
            return way()
        except (Unknown, Unsupported, GraphError, Poisoned):
            n.importer.restore(before)
    return ways[-1]()


@operator("If")
def if_(n: Node) -> Any:
    """The branch that a known condition takes; else both as functions, of which one is run.

    Of a condition on sizes, for which not both can be imported or their results differ, the one that can: it is taken
    for granted then.
    """
    condition = n.held(0)
    graphs = [n.attributes[name].g for name in ("then_branch", "else_branch")]
    if not condition.is_known:
        return _either(n, condition, graphs)
    holds = n.number(0, "the condition")

    def taken(k: int) -> Any:
        return tuple(n.importer.graph(graphs[k], n.scope.inner(f"{n.label}/"), []))

    def only(k: int) -> Any:
        n.importer.take_for_granted(logical_not(holds) if k else holds, n.label)
        return taken(k)
    if not isinstance(holds, Expr):
        return taken(0 if holds else 1)
    return attempt(n, [lambda: _either(n, condition, graphs), lambda: only(1), lambda: only(0)])


def _either(n: Node, condition: Held, graphs: Sequence[Any]) -> Any:
    """Both branches as functions, of which one is run."""
    kinds: list[list[str]] = []

    def branch(graph: Any, name: str) -> Region:
        def make() -> list[Value]:
            entries = n.importer.graph(graph, n.scope.inner(f"{n.label}/"), [])
            made = values_of(n.importer, entries)
            kinds.append([e.kind for e in entries])
            return made
        return region(n.importer, f"{n.label}_{name}", (), make)
    unequal = n.importer.unequal[:]
    try:
        made = emit_choice(n.importer, n.label, n.value(0), [branch(g, k) for g, k in zip(graphs, ("then", "else"))])
    except (Unsupported, GraphError) as error:
        raise Unsupported(f"{str(error).strip()}; its condition is not known", [condition]) from None
    finally:
        n.importer.unequal = unequal                    # a branch may be for some sizes alone
    return tuple(Held.of(v, kind) for v, kind in zip(made, kinds[0]))


# loops


@operator("Loop")
def loop(n: Node) -> Any:
    """A few turns of a known number are written out; else the body is a function that is run in turn."""
    known = n.has(0) and n.held(0).is_known
    most = n.number(0) if known else None
    running = [lambda: run_loop(n, most)]
    written = [lambda: written_loop(n, most)]
    count = most if isinstance(most, int) else None
    if not n.has(0) or count is not None and count <= FEW_TURNS:
        return attempt(n, [*written, *running])
    return attempt(n, [*running, *written]) if count is not None and count <= MOST_TURNS else running[0]()


def written_loop(n: Node, most: Any) -> tuple[Any, ...]:
    """The turns one after the other, while conditions and number are known."""
    body = n.attributes["body"].g
    states, carried = list(n.inputs[2:]), len(n.inputs) - 2
    keep: Any = n.inputs[1] if n.has(1) else Held.known(True)
    stacked: list[list[Any]] = [[] for _ in range(len(body.output) - 1 - carried)]
    turn = 0
    while (most is None or turn < most) and _decided(keep):
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
    found = condition.elements
    if found is None or condition.is_symbolic:
        raise Unknown(condition, "the condition")
    return bool(found.reshape(-1)[0])


def run_loop(n: Node, most: Any) -> tuple[Any, ...]:
    """The loop as a call of the graph. most: the number of turns where it is a number or a size, else None."""
    body, carried = n.attributes["body"].g, len(n.inputs) - 2
    needs = [n.held(k) for k in (0, 1) if n.has(k)]
    if most is None and len(body.output) - 1 > carried:
        raise Unsupported("it stacks values of turns whose number is not known", needs)
    if any(not isinstance(e, Held) for e in n.inputs[2:]):
        raise Unsupported("it carries sequences or optional values, and its number of turns is not known", needs)
    states = values_of(n.importer, n.inputs[2:])
    count = n.emit(topi.astype, n.value(0), "int64") if n.has(0) else n.constant(np.int64(2**62))
    proceed = n.value(1) if n.has(1) else n.constant(np.array(True))
    step = BlockBuilder.param("step", (), "int64")
    params = [BlockBuilder.param(f"state{k}", v.shape, v.dtype) for k, v in enumerate(states)]
    kinds: list[str] = []

    def make() -> list[Value]:
        held = [Held.of(p, e.kind) for p, e in zip(params, n.inputs[2:])]
        entries = n.importer.graph(body, n.scope.inner(f"{n.label}/"), [Held.of(step), Held.known(True), *held])
        kinds[:] = [e.kind for e in entries[1:] if isinstance(e, Held)]
        return values_of(n.importer, entries)
    try:
        made = emit_loop(n.importer, n.label, count, proceed, states,
                         region(n.importer, f"{n.label}_body", [step, *params], make),
                         most if most is not None and len(body.output) - 1 > carried else 0)
    except (Unsupported, GraphError) as error:
        raise Unsupported(f"{str(error).strip()}; its number of turns or its condition is not known", needs) from None
    return tuple(Held.of(v, kind) for v, kind in zip(made, kinds))


def stacked_rows(n: Node, rows: list[Any], axis: int) -> Any:
    """The results of the turns of a loop as one tensor."""
    if not rows:
        raise Unsupported("a loop of no turns, whose results have no known shape")
    if any(not isinstance(r, Held) for r in rows):
        raise Unsupported("a loop that stacks what is no tensor")
    values = [n.importer.value(r) for r in rows]
    if not -values[0].ndim - 1 <= axis <= values[0].ndim:
        raise Unsupported(f"axis {axis} of stacked tensors of {values[0].ndim} dimension(s)")
    return Held.of(n.emit(long_stack, values, axis % (values[0].ndim + 1)), rows[0].kind)


def long_stack(rows: Any, axis: int) -> Any:
    """`topi.stack`, halves first where there are many."""
    if len(rows) <= 64:
        return topi.stack(rows, axis=axis)
    half = len(rows) // 2
    return topi.concatenate([long_stack(rows[:half], axis), long_stack(rows[half:], axis)], axis=axis)


# scans


@operator("Scan", since=9)
def scan(n: Node) -> Any:
    """A few steps of a known number are written out; else the body is a function that is run step by step."""
    count = n.required("num_scan_inputs")
    carried = len(n.inputs) - count
    if count < 1 or carried < 0:
        raise Unsupported(f"{count} inputs to scan of {len(n.inputs)}")
    given = [n.value(k) for k in range(carried, len(n.inputs))]
    axes = [checked_axis(a, v.ndim) for a, v in zip(n.attr("scan_input_axes") or [0] * count, given, strict=True)]
    lengths = {str(v.shape[a]): v.shape[a] for v, a in zip(given, axes)}
    if len(lengths) != 1:
        raise Unsupported(f"inputs of the lengths {', '.join(lengths)}")
    length = next(iter(lengths.values()))
    if isinstance(length, int) and length <= FEW_TURNS:
        return written_scan(n, given, axes, length)
    ways = [lambda: run_scan(n, given, axes, length)]
    if isinstance(length, int) and length <= MOST_TURNS:
        ways.append(lambda: written_scan(n, given, axes, length))
    return attempt(n, ways)


def _directions(n: Node, name: str, count: int) -> list[int]:
    found = n.attr(name) or [0] * count
    if len(found) != count:
        raise Unsupported(f"the attribute {name} has {len(found)} numbers, {count} are needed")
    return list(found)


def written_scan(n: Node, given: Sequence[Value], axes: Sequence[int], length: int) -> tuple[Any, ...]:
    """The steps one after the other."""
    body, carried = n.attributes["body"].g, len(n.inputs) - len(given)
    back = _directions(n, "scan_input_directions", len(given))
    states, outs = list(n.inputs[:carried]), len(body.output) - carried
    stacked: list[list[Any]] = [[] for _ in range(outs)]
    for t in range(length):
        rows = [n.emit(row, v, a, length - 1 - t if b else t) for v, a, b in zip(given, axes, back)]
        made = n.importer.graph(body, n.scope.inner(f"{n.label}/{t}/"), [*states, *map(Held.of, rows)])
        states = made[:carried]
        for kept, result in zip(stacked, made[carried:]):
            kept.append(result)
    over, reverse = (_directions(n, f"scan_output_{k}", outs) for k in ("axes", "directions"))
    return (*states, *(stacked_rows(n, rows[::-1] if r else rows, a) for rows, a, r in zip(stacked, over, reverse)))


def run_scan(n: Node, given: Sequence[Value], axes: Sequence[int], length: Any) -> tuple[Any, ...]:
    """The scan as a loop of the graph."""
    body, carried = n.attributes["body"].g, len(n.inputs) - len(given)
    back = _directions(n, "scan_input_directions", len(given))
    states = values_of(n.importer, n.inputs[:carried])
    step = BlockBuilder.param("step", (), "int64")
    params = [BlockBuilder.param(f"state{k}", v.shape, v.dtype) for k, v in enumerate(states)]

    def make() -> list[Value]:
        rows = [n.emit(row_at, v, step, a, length if b else None) for v, a, b in zip(given, axes, back)]
        made = n.importer.graph(body, n.scope.inner(f"{n.label}/"), [Held.of(v) for v in (*params, *rows)])
        return [n.constant(np.array(True)), *values_of(n.importer, made)]
    count = n.importer.value(Held.known(np.array(length, object), "int64"))
    made = emit_loop(n.importer, n.label, count, n.constant(np.array(True)), states,
                     region(n.importer, f"{n.label}_body", [step, *params], make), length)
    outs = made[carried:]
    over, reverse = (_directions(n, f"scan_output_{k}", len(outs)) for k in ("axes", "directions"))
    return (*made[:carried], *(n.emit(placed, v, checked_axis(a, v.ndim), bool(r)) if a or r else v
                               for v, a, r in zip(outs, over, reverse)))


def row(x: Any, axis: int, index: int) -> Any:
    """x at an index along an axis."""
    return topi.squeeze(topi.strided_slice(x, begin=[index], end=[index + 1], axes=[axis]), axis=axis)


def row_at(x: Any, step: Any, axis: int, length: Any) -> Any:
    """x at the index that a tensor says along an axis, from the end where its length is given."""
    at = step if length is None else topi.subtract(topi.full_like(step, _last(length)), step)
    return topi.take(x, at, axis=axis)


def _last(length: Any) -> Any:
    return (length - 1).astype("int64") if isinstance(length, Expr) else length - 1


def placed(x: Any, axis: int, reverse: bool) -> Any:
    """x with its first dimension elsewhere, and in reverse order."""
    y = topi.flip(x, axis=0) if reverse else x
    return topi.moveaxis(y, source=0, destination=axis) if axis else y


@operator("Scan", until=8)
def scan_of_batches(n: Node) -> Any:
    """Refused: scans of version 8."""
    raise Unsupported("a scan by the rules of version 8")
