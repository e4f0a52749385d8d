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
NUMBERS: dict[str, tuple[float | None, float | None]] = {              # alpha and beta of activations that have them
    "sigmoid": (None, None), "tanh": (None, None), "relu": (None, None), "softsign": (None, None),
    "softplus": (None, None), "affine": (1.0, 0.0), "scaledtanh": (1.0, 1.0), "hardsigmoid": (0.2, 0.5),
    "leakyrelu": (0.01, None), "thresholdedrelu": (1.0, None), "elu": (1.0, None)}


def ordered(x: Any, direction: int, gates: tuple[int, ...]) -> Any:
    """The part of a weight that one direction has, its gates in another order."""
    own = topi.squeeze(topi.strided_slice(x, begin=[direction], end=[direction + 1], axes=[0]), axis=0)
    parts = topi.split(own, len(gates), axis=0) if len(gates) > 1 else (own,)
    return topi.concatenate([parts[g] for g in gates], axis=0) if len(gates) > 1 else own


def one(x: Any, direction: int) -> Any:
    """What one direction starts with."""
    return topi.squeeze(topi.strided_slice(x, begin=[direction], end=[direction + 1], axes=[0]), axis=0)


def _activations(n: Node, directions: int) -> list[tuple[Any, ...]]:
    """The activations of each direction, with their numbers, which are listed for those alone that have some."""
    given = [a.lower() for a in n.attr("activations") or ACTIVATIONS[n.op] * directions]
    count = len(ACTIVATIONS[n.op])
    if len(given) != count * directions or any(a not in NUMBERS for a in given):
        raise Unsupported(f"the activations {given}")
    alphas, betas = list(n.attr("activation_alpha") or []), list(n.attr("activation_beta") or [])
    found: list[tuple[Any, ...]] = []
    for name in given:
        alpha, beta = NUMBERS[name]
        alpha = alphas.pop(0) if alpha is not None and alphas else alpha
        beta = betas.pop(0) if beta is not None and betas else beta
        found.append((name, *(v for v in (alpha, beta) if v is not None)))
    return [tuple(found[k:k + count]) for k in range(0, len(found), count)]


@operator("RNN", "GRU", "LSTM")
def recurrent(n: Node) -> tuple[Value, ...]:
    """`topi.rnn`, `topi.gru` or `topi.lstm` for each direction."""
    direction, batch_first = n.attr("direction", "forward"), bool(n.attr("layout", 0))
    directions = 2 if direction == "bidirectional" else 1
    activations = _activations(n, directions)
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
        options: dict[str, Any] = {"reverse": direction == "reverse" or d == 1, "clip": n.attr("clip")}
        if n.op == "RNN":
            options["nonlinearity"] = activations[d][0]
        else:
            options["activations"] = activations[d]
        if n.op == "GRU":
            options["reset_after"] = bool(n.attr("linear_before_reset", 0))
        if n.op == "LSTM":
            options["coupled"] = bool(n.attr("input_forget", 0))
            if n.has(7):
                options["peepholes"] = n.emit(peepholes, n.value(7), d)
        rule: Any = {"RNN": topi.rnn, "GRU": topi.gru, "LSTM": topi.lstm}[n.op]
        begin = [None if s is None else n.emit(one, s, d) for s in starts]
        made.append(n.emit(rule, x, weight, again, *biases, *begin, lengths, **options))
    y = n.emit(topi.stack, [m[0] for m in made], axis=1)
    last = [n.emit(topi.stack, [m[k] for m in made], axis=0) for k in range(1, len(made[0]))]
    if batch_first:
        y = n.emit(topi.transpose, y, (2, 0, 1, 3))
        last = [n.emit(topi.swapaxes, v, axis1=0, axis2=1) for v in last]
    return (y, *last)


def peepholes(x: Any, direction: int) -> Any:
    """The weights of the cell in one direction, those of i, o and f in topi's order."""
    i, o, f = topi.split(one(x, direction), 3, axis=0)
    return topi.concatenate([i, f, o], axis=0)


def ordered_bias(both: Any, side: int, gates: tuple[int, ...]) -> Any:
    """One half of the biases, the gates in another order."""
    parts = topi.split(both, 2 * len(gates), axis=0)
    chosen = [parts[side * len(gates) + g] for g in gates]
    return topi.concatenate(chosen, axis=0) if len(chosen) > 1 else chosen[0]


def _start(n: Node, k: int, batch_first: bool) -> Value | None:
    start = n.optional(k)
    return n.emit(topi.swapaxes, start, axis1=0, axis2=1) if start is not None and batch_first else start
