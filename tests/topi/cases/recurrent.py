"""Samples of recurrent layers."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import Draw, Sample, case, wide
from tilewright import topi


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer(draw: Draw, gates: int, states: int, step, call, **attrs) -> Sample:
    """step(inputs of the gates, products of the gates, states, recurrent) to new states, all of one sequence."""
    dtype = draw.dtype("float32", "float32", "float64", "float16")
    count, b, n, h = draw.extent(4), draw.extent(3), draw.extent(3), draw.integer(1, 3)
    x, weight = draw.array((count, b, n), dtype), draw.array((gates * h, n), dtype)
    recurrent = draw.array((gates * h, h), dtype, -1, 1)
    biases = [draw.array((gates * h,), dtype) if draw.flag(0.7) else None for _ in range(2)]
    starts = [draw.array((b, h), dtype) if draw.flag() else None for _ in range(states)]
    lengths = draw.rng.integers(0, count + 1, b).astype(draw.choice("int64", "int32")) if draw.flag() else None
    reverse = draw.flag(0.4)
    first, second = (0.0 if v is None else wide(v) for v in biases)
    y, last = np.zeros((count, b, h)), [np.zeros((b, h)) if s is None else wide(s).copy() for s in starts]
    for k in range(b):
        end = count if lengths is None else int(lengths[k])
        for t in range(end)[::-1] if reverse else range(end):
            now = step(wide(weight) @ wide(x)[t, k] + first, wide(recurrent), second, [s[k] for s in last])
            for s, new in zip(last, now):
                s[k] = new
            y[t, k] = now[0]
    given = [x, weight, recurrent, *biases, *starts, lengths]
    there = [v is not None for v in given]

    def apply(*tensors):
        rest = iter(tensors)
        return call(*(next(rest) if yes else None for yes in there), reverse=reverse, **attrs)
    symbolic = [(0, 1, 2), (1,), (), *[()] * sum(there[3:5]), *[(0,)] * sum(there[5:])]
    return Sample(apply, [v for v in given if v is not None], [y, *last], [dtype] * (1 + states), symbolic, tolerance=4)


@case
def rnn(draw: Draw) -> Sample:
    f = draw.choice("tanh", "relu")

    def step(inputs, recurrent, bias, states):
        e = inputs + recurrent @ states[0] + bias
        return [np.tanh(e) if f == "tanh" else np.maximum(e, 0)]
    return layer(draw, 1, 1, step, topi.rnn, nonlinearity=f)


@case
def gru(draw: Draw) -> Sample:
    after = draw.flag()

    def step(inputs, recurrent, bias, states):
        h, bias = states[0], np.broadcast_to(bias, len(recurrent))
        (a, b, c), (p, q, s), (u, v, w) = (np.split(e, 3) for e in (inputs, recurrent, bias))
        r, z = sigmoid(a + p @ h + u), sigmoid(b + q @ h + v)
        n = np.tanh(c + r * (s @ h + w) if after else c + s @ (r * h) + w)
        return [(1 - z) * n + z * h]
    return layer(draw, 3, 1, step, topi.gru, reset_after=after)


@case
def lstm(draw: Draw) -> Sample:
    def step(inputs, recurrent, bias, states):
        i, f, g, o = np.split(inputs + recurrent @ states[0] + bias, 4)
        cell = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
        return [sigmoid(o) * np.tanh(cell), cell]
    return layer(draw, 4, 2, step, topi.lstm)


@case
def selective_scan(draw: Draw) -> Sample:
    dtype, b, count, d, n = draw.dtype(), draw.extent(2), draw.extent(4), draw.extent(3), draw.extent(3)
    x, decay = draw.array((b, count, d), dtype), draw.array((d, n), dtype, -2, 0)
    delta = draw.array((b, count, d), dtype, 0, 1)
    p, q = (draw.array((b, count, n), dtype) for _ in "pq")
    more = [draw.array((d,), dtype) if draw.flag() else None, draw.array((b, d, n), dtype) if draw.flag() else None]
    h = np.zeros((b, d, n)) if more[1] is None else wide(more[1])
    y = np.zeros(x.shape)
    for t in range(count):
        step = wide(delta)[:, t, :, None]
        h = np.exp(step * wide(decay)) * h + step * wide(p)[:, t, None] * wide(x)[:, t, :, None]
        y[:, t] = (h * wide(q)[:, t, None]).sum(-1)
    y = y if more[0] is None else y + wide(more[0]) * wide(x)
    there = [v is not None for v in more]

    def call(*tensors):
        rest = iter(tensors[5:])
        return topi.selective_scan(*tensors[:5], *(next(rest) if yes else None for yes in there))
    return Sample(call, [x, delta, decay, p, q, *(v for v in more if v is not None)], [y, h], [dtype] * 2, tolerance=4)
