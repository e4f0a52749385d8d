"""Recurrent layers, several and of both directions in one operator, as PyTorch's modules call them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import topi
from tilewright.frontend.torch.emit import Emitter
from tilewright.frontend.torch.recurrence import projected_lstm
from tilewright.frontend.torch.rules import selected
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value

_LSTM = 2                            # the kind of layer, as mkldnn_rnn_layer numbers them
Direction = Callable[[Value, Sequence[Value], Sequence[Value], bool], Sequence[Value]]


@operator("lstm.input")
def lstm(e: Emitter, x: Value, states: Sequence[Value], params: Sequence[Value], has_biases: bool, *options: Any
         ) -> tuple[Value, ...]:
    """`topi.lstm` for each layer and direction; with projections a recurrence of the frontend."""
    def one(x: Value, weights: Sequence[Value], begin: Sequence[Value], reverse: bool) -> Sequence[Value]:
        made: Sequence[Value]
        if len(weights) == (5 if has_biases else 3):
            *others, projection = weights
            made = e.te(projected_lstm, x, *others[:2], projection, *_biases(others), *begin, reverse=reverse)
        else:
            made = e.te(topi.lstm, x, *weights[:2], *_biases(weights), *begin, reverse=reverse)
        return made
    return _layers(e, one, x, states, params, *options)


@operator("gru.input")
def gru(e: Emitter, x: Value, state: Value, params: Sequence[Value], has_biases: bool, *options: Any
        ) -> tuple[Value, ...]:
    """`topi.gru` for each layer and direction."""
    def one(x: Value, weights: Sequence[Value], begin: Sequence[Value], reverse: bool) -> Any:
        return e.te(topi.gru, x, *weights[:2], *_biases(weights), *begin, reverse=reverse)
    return _layers(e, one, x, [state], params, *options)


@operator("rnn_tanh.input", "rnn_relu.input")
def rnn(e: Emitter, x: Value, state: Value, params: Sequence[Value], has_biases: bool, *options: Any
        ) -> tuple[Value, ...]:
    """`topi.rnn` for each layer and direction."""
    nonlinearity = "relu" if e.target == "aten.rnn_relu.input" else "tanh"

    def one(x: Value, weights: Sequence[Value], begin: Sequence[Value], reverse: bool) -> Any:
        return e.te(topi.rnn, x, *weights[:2], *_biases(weights), *begin, nonlinearity=nonlinearity, reverse=reverse)
    return _layers(e, one, x, [state], params, *options)


def _biases(weights: Sequence[Value]) -> Sequence[Value | None]:
    return weights[2:] or (None, None)


def _layers(e: Emitter, one: Direction, x: Value, states: Sequence[Value], params: Sequence[Value], num_layers: int,
            dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> tuple[Value, ...]:
    """The outputs of the last layer, and each state behind the last step of all layers and directions.

    one(x, weights, states, reverse) is a layer in one direction, steps first.
    """
    if train and dropout and num_layers > 1:
        raise e.refuse(f"dropout {dropout} between layers needs random numbers", "call model.eval()")
    directions = 2 if bidirectional else 1
    per = len(params) // (num_layers * directions)
    y = e.te(topi.swapaxes, x, axis1=0, axis2=1) if batch_first else x
    last: list[Sequence[Value]] = []
    for layer in range(num_layers):
        made = []
        for d in range(directions):
            k = layer * directions + d
            begin = [e.te(selected, s, axis=0, index=k) for s in states]
            made.append(one(y, params[k * per:(k + 1) * per], begin, d == 1))
        y = e.te(topi.concatenate, [m[0] for m in made], axis=-1) if bidirectional else made[0][0]
        last += [m[1:] for m in made]
    if batch_first:
        y = e.te(topi.swapaxes, y, axis1=0, axis2=1)
    return (y, *(e.te(topi.stack, list(s), axis=0) for s in zip(*last)))


@operator("mkldnn_rnn_layer")
def mkldnn_layer(e: Emitter, x: Value, weight: Value, recurrent: Value, bias: Value, recurrent_bias: Value,
                 state: Value, cell: Value, reverse: bool, batch_sizes: Sequence[int], mode: int, hidden_size: int,
                 num_layers: int, has_biases: bool, bidirectional: bool, batch_first: bool, train: bool
                 ) -> tuple[Value | None, ...]:
    """`topi.lstm`; what its gradient would read is missing."""
    if mode != _LSTM or num_layers != 1 or bidirectional or batch_first or list(batch_sizes):
        raise e.refuse("of these layers, one LSTM of one direction with the steps first is supported")
    biases = (bias, recurrent_bias) if has_biases else (None, None)
    begin = [e.reshape(s, s.shape[-2:]) for s in (state, cell)]
    y, *last = e.te(topi.lstm, x, weight, recurrent, *biases, *begin, reverse=reverse)
    return (y, *(e.reshape(v, s.shape) for v, s in zip(last, (state, cell))), None)


@operator("lstm.data", "gru.data", "rnn_tanh.data", "rnn_relu.data")
def packed(e: Emitter, *arguments: Any) -> tuple[Value, ...]:
    """Refused: how many sequences of a packed batch a step reads follows from elements."""
    raise e.refuse("recurrent layers of packed sequences are not supported: how many sequences a step reads follows "
                   "from elements of a tensor", "give the layer a padded tensor")
