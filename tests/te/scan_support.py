"""Scans and checks for their tests."""
from __future__ import annotations

import numpy as np

import tilewright as tw
from tilewright import te
from tilewright.tir import interp
from tilewright.tir.verify import verify


def cumsum(k=1, dtype="float32"):
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), dtype, name="X")
    state = te.placeholder((m, n), dtype, name="S")
    init = te.compute((k, n), lambda t, i: x[t, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - k, i] + x[t, i], name="update")
    return x, init, update, te.scan(init, update, state, inputs=[x])


def cumsum_reference(x, k=1):
    out = x.astype("float64")
    for t in range(k, len(x)):
        out[t] += out[t - k]
    return out


def two_stages():
    m, n = te.var("m"), te.var("n")
    x, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="S")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    s1 = te.compute((m, n), lambda t, i: state[t - 1, i] * 2, name="s1")
    s2 = te.compute((m, n), lambda t, i: s1[t, i] + x[t, i], name="s2")
    return x, s1, s2, te.scan(init, s2, state, inputs=[x])


def two_stages_reference(x):
    out = x.astype("float64")
    for t in range(1, len(x)):
        out[t] += 2 * out[t - 1]
    return out


def run_both(s, args, arrays, wants, rtol=1e-5):
    """Interpreter and native code, on the schedule, against the results."""
    func = s.replay(args).func
    verify(func)
    lib = tw.build(s, args)
    for call in (lambda *a: interp.run(func, *a), lib):
        outs = [np.full(w.shape, 7, arrays[0].dtype) for w in wants]
        call(*arrays, *outs)
        for out, want in zip(outs, wants):
            np.testing.assert_allclose(out, want, rtol=rtol, atol=1e-6)


def random(*shape):
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype("float32")
