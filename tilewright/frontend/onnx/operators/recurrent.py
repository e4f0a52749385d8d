"""Recurrent layers, of one or both directions."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.registry import operator
from tilewright.graph.ir.values import Value

GATES = {"RNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 2, 3, 1)}     # where the gates of topi's order are in the file's
ACTIVATIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def ordered(x: Any, direction: int, gates: tuple[int, ...]) -> Any:
    """The part of a weight that one direction has, its gates in another order."""
    own = topi.squeeze(topi.strided_slice(x, begin=[direction], end=[direction + 1], axes=[0]), axis=0)
    parts = topi.split(own, len(gates), axis=0) if len(gates) > 1 else (own,)
    return topi.concatenate([parts[g] for g in gates], axis=0) if len(gates) > 1 else own


def one(x: Any, direction: int) -> Any:
    """What one direction starts with."""
    return topi.squeeze(topi.strided_slice(x, begin=[direction], end=[direction + 1], axes=[0]), axis=0)


def _check(n: Node, directions: int) -> list[str]:
    """The activations of the directions. Raises Unsupported for attributes that topi's layers have not."""
    for name in ("clip", "input_forget"):
        if n.attr(name):
            raise Unsupported(f"the attribute {name} is {n.attr(name)}")
    given = [a.capitalize() for a in n.attr("activations") or ACTIVATIONS[n.op] * directions]
    plain = n.op == "RNN" and len(given) == directions and set(given) <= {"Tanh", "Relu"}
    if not plain and given != ACTIVATIONS[n.op] * directions:
        raise Unsupported(f"the activations {given}")
    return given


@operator("RNN", "GRU", "LSTM")
def recurrent(n: Node) -> tuple[Value, ...]:
    """`topi.rnn`, `topi.gru` or `topi.lstm` for each direction."""
    direction, batch_first = n.attr("direction", "forward"), bool(n.attr("layout", 0))
    directions = 2 if direction == "bidirectional" else 1
    activations = _check(n, directions)
    if n.op == "LSTM" and n.has(7):
        raise Unsupported("with peepholes")
    x = n.emit(topi.swapaxes, n.value(0), axis1=0, axis2=1) if batch_first else n.value(0)
    starts = [_start(n, k, batch_first) for k in ((5, 6) if n.op == "LSTM" else (5,))]
    gates, lengths = GATES[n.op], n.optional(4)
    made: list[Sequence[Value]] = []
    for d in range(directions):
        weight, again = (n.emit(ordered, n.value(k), d, gates) for k in (1, 2))
        biases: list[Value | None] = [None, None]
        if n.has(3):
            both = n.emit(one, n.value(3), d)
            biases = [n.emit(ordered_bias, both, side, gates) for side in (0, 1)]
        options: dict[str, Any] = {"reverse": direction == "reverse" or d == 1}
        if n.op == "RNN":
            options["nonlinearity"] = activations[d].lower()
        if n.op == "GRU":
            options["reset_after"] = bool(n.attr("linear_before_reset", 0))
        rule: Any = {"RNN": topi.rnn, "GRU": topi.gru, "LSTM": topi.lstm}[n.op]
        begin = [None if s is None else n.emit(one, s, d) for s in starts]
        made.append(n.emit(rule, x, weight, again, *biases, *begin, lengths, **options))
    y = n.emit(topi.stack, [m[0] for m in made], axis=1)
    last = [n.emit(topi.stack, [m[k] for m in made], axis=0) for k in range(1, len(made[0]))]
    if batch_first:
        y = n.emit(topi.transpose, y, (2, 0, 1, 3))
        last = [n.emit(topi.swapaxes, v, axis1=0, axis2=1) for v in last]
    return (y, *last)


def ordered_bias(both: Any, side: int, gates: tuple[int, ...]) -> Any:
    """One half of the biases, the gates in another order."""
    parts = topi.split(both, 2 * len(gates), axis=0)
    chosen = [parts[side * len(gates) + g] for g in gates]
    return topi.concatenate(chosen, axis=0) if len(chosen) > 1 else chosen[0]


def _start(n: Node, k: int, batch_first: bool) -> Value | None:
    start = n.optional(k)
    return n.emit(topi.swapaxes, start, axis1=0, axis2=1) if start is not None and batch_first else start
