"""Recurrent cells written with te.scan, against float64 NumPy: plain and scheduled, in the interpreter and natively."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.tir import interp
from tilewright.tir.verify import verify


def product(state, weights, name):
    """(t, b, j) -> sum_k state[t - 1, b, k] * weights[j, k]"""
    m, batch, hidden = state.shape
    k = te.reduce_axis((0, hidden), name="k")
    return te.compute((m, batch, weights.shape[0]), lambda t, b, j: te.sum(state[t - 1, b, k] * weights[j, k], axis=k),
                      name=name)


def projection(x, weights, bias, name):
    """(t, b, j) -> sum_k x[t, b, k] * weights[j, k] + bias[j], for all steps at once"""
    m, batch, width = x.shape
    k = te.reduce_axis((0, width), name="k")
    p = te.compute((m, batch, weights.shape[0]), lambda t, b, j: te.sum(x[t, b, k] * weights[j, k], axis=k),
                   name=name)
    return te.compute(p.shape, lambda t, b, j: p[t, b, j] + bias[j], name=f"{name}_bias")


def arguments(steps, batch, width, hidden, gates):
    x = te.placeholder((steps, batch, width), name="X")
    w, u = te.placeholder((gates * hidden, width), name="W"), te.placeholder((gates * hidden, hidden), name="U")
    return x, w, u, te.placeholder((gates * hidden,), name="bias")


def rnn(steps, batch, width, hidden):
    """h[t] = tanh(W x[t] + U h[t - 1] + bias); h[0] is given and x[0] unused."""
    x, w, u, bias = arguments(steps, batch, width, hidden, 1)
    first, s = te.placeholder((1, batch, hidden), name="h0"), te.placeholder((steps, batch, hidden), name="S")
    xp, hp = projection(x, w, bias, "xp"), product(s, u, "hp")
    update = te.compute(s.shape, lambda t, b, j: te.tanh(xp[t, b, j] + hp[t, b, j]), name="h")
    y = te.scan(first, update, s, inputs=[x], name="rnn")
    return [x, w, u, bias, first, y], hp, update


def lstm(steps, batch, width, hidden):
    """PyTorch's LSTM: gates i, f, g, o; outputs h and c."""
    x, w, u, bias = arguments(steps, batch, width, hidden, 4)
    h0, c0 = te.placeholder((1, batch, hidden), name="h0"), te.placeholder((1, batch, hidden), name="c0")
    sh, sc = te.placeholder((steps, batch, hidden), name="SH"), te.placeholder((steps, batch, hidden), name="SC")
    xp, hp = projection(x, w, bias, "xp"), product(sh, u, "hp")
    gate = te.compute(hp.shape, lambda t, b, j: xp[t, b, j] + hp[t, b, j], name="gate")

    def at(n, t, b, j):
        return gate[t, b, n * hidden + j]
    c = te.compute(sc.shape, lambda t, b, j: te.sigmoid(at(1, t, b, j)) * sc[t - 1, b, j]
                   + te.sigmoid(at(0, t, b, j)) * te.tanh(at(2, t, b, j)), name="c")
    h = te.compute(sh.shape, lambda t, b, j: te.sigmoid(at(3, t, b, j)) * te.tanh(c[t, b, j]), name="h")
    ys = te.scan([h0, c0], [h, c], [sh, sc], inputs=[x], name="lstm")
    return [x, w, u, bias, h0, c0, *ys], hp, gate, c, h


def gru(steps, batch, width, hidden):
    """PyTorch's GRU with one bias on the input side: gates r, z, n."""
    x, w, u, bias = arguments(steps, batch, width, hidden, 3)
    first, s = te.placeholder((1, batch, hidden), name="h0"), te.placeholder((steps, batch, hidden), name="S")
    xp, hp = projection(x, w, bias, "xp"), product(s, u, "hp")
    r, z = (te.compute(s.shape, lambda t, b, j, n=n: te.sigmoid(xp[t, b, n * hidden + j] + hp[t, b, n * hidden + j]),
                       name="rz"[n]) for n in range(2))
    n = te.compute(s.shape, lambda t, b, j: te.tanh(xp[t, b, 2 * hidden + j] + r[t, b, j] * hp[t, b, 2 * hidden + j]),
                   name="n")
    update = te.compute(s.shape, lambda t, b, j: (1.0 - z[t, b, j]) * n[t, b, j] + z[t, b, j] * s[t - 1, b, j],
                        name="h")
    y = te.scan(first, update, s, inputs=[x], name="gru")
    return [x, w, u, bias, first, y], (r, z, n), update


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rnn_reference(x, w, u, bias, h):
    out = [h[0]]
    for step in x[1:]:
        out.append(np.tanh(step @ w.T + out[-1] @ u.T + bias))
    return [np.array(out)]


def lstm_reference(x, w, u, bias, h, c):
    hs, cs = [h[0]], [c[0]]
    for step in x[1:]:
        i, f, g, o = np.split(step @ w.T + hs[-1] @ u.T + bias, 4, axis=1)
        cs.append(sigmoid(f) * cs[-1] + sigmoid(i) * np.tanh(g))
        hs.append(sigmoid(o) * np.tanh(cs[-1]))
    return [np.array(hs), np.array(cs)]


def gru_reference(x, w, u, bias, h):
    out = [h[0]]
    for step in x[1:]:
        p, q = np.split(step @ w.T + bias, 3, axis=1), np.split(out[-1] @ u.T, 3, axis=1)
        r, z = sigmoid(p[0] + q[0]), sigmoid(p[1] + q[1])
        out.append((1 - z) * np.tanh(p[2] + r * q[2]) + z * out[-1])
    return [np.array(out)]


def check(s, args, reference, sizes, interpret=True):
    rng, inputs = np.random.default_rng(3), []
    outputs = [a for a in args if isinstance(a.op, te.ScanOp)]
    for a in args:
        if a not in outputs:
            shape = [int(d) if isinstance(d, int) else getattr(d, "value", None) or sizes[d.name] for d in a.shape]
            inputs.append(rng.uniform(-1, 1, shape).astype("float32"))
    wants = reference(*[i.astype("float64") for i in inputs])
    func, lib = s.replay(args).func, tw.build(s, args)
    verify(func)
    for call in [lib, *([lambda *a: interp.run(func, *a)] if interpret else [])]:
        outs = [np.full(w.shape, 9, "float32") for w in wants]
        call(*inputs, *outs)
        for out, want in zip(outs, wants):
            np.testing.assert_allclose(out, want, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_an_rnn_of_any_length(steps):
    args, _, _ = rnn(te.var("m"), 2, 3, 4)
    check(te.create_schedule(args[-1].op), args, rnn_reference, {"m": steps})


def test_an_rnn_scheduled():
    args, hp, h = rnn(te.var("m"), te.var("batch"), 3, 8)
    s = te.create_schedule(args[-1].op)
    _, b, j = h.op.axis
    s[h].parallel(b)
    s[h].vectorize(j)
    s[hp].compute_at(s[h], b)
    s[hp].vectorize(hp.op.axis[2])
    s[hp].reorder(hp.op.reduce_axis[0], hp.op.axis[2])
    check(s, args, rnn_reference, {"m": 6, "batch": 3})


@pytest.mark.parametrize("steps", [1, 4])
def test_an_lstm_of_any_length(steps):
    args, *_ = lstm(te.var("m"), 2, 3, 4)
    check(te.create_schedule(args[-1].op), args, lstm_reference, {"m": steps})


def test_an_lstm_scheduled():
    args, hp, gate, c, h = lstm(te.var("m"), te.var("batch"), 5, 16)
    s = te.create_schedule(args[-1].op)
    s[gate].compute_inline()
    _, b, j = hp.op.axis
    jo, ji = s[hp].split(j, factor=16)
    s[hp].reorder(jo, hp.op.reduce_axis[0], ji)
    s[hp].vectorize(ji)
    s[hp].parallel(b)
    for update in (c, h):
        s[update].parallel(update.op.axis[1])
        s[update].vectorize(update.op.axis[2])
    check(s, args, lstm_reference, {"m": 5, "batch": 3})


def test_an_lstm_with_its_steps_split():
    args, hp, gate, c, h = lstm(7, 2, 3, 8)
    s = te.create_schedule(args[-1].op)
    s[args[-1]].split(args[-1].op.scan_axis, factor=4)
    s[gate].compute_inline()
    s[hp].vectorize(hp.op.axis[2])
    s[hp].reorder(hp.op.reduce_axis[0], hp.op.axis[2])
    check(s, args, lstm_reference, {})


@pytest.mark.parametrize("inline", [False, True])
def test_a_gru(inline):
    args, gates, h = gru(te.var("m"), te.var("batch"), 3, 4)
    s = te.create_schedule(args[-1].op)
    if inline:
        for gate in gates:
            s[gate].compute_inline()
        s[h].parallel(h.op.axis[1])
    check(s, args, gru_reference, {"m": 5, "batch": 2})
