"""Stage methods on memory: double_buffer, storage_align, prefetch, env_threads, normalize, set_store_predicate."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.support.errors import ScheduleError


def product(n=16):
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_schedule(c.op), a, b, c


def run(s, a, b, c, n=16):
    x, y = np.random.default_rng(0).standard_normal((2, n, n)).astype("float32")
    out = np.full((n, n), np.nan, "float32")
    tw.build(s, [a, b, c])(x, y, out)
    np.testing.assert_allclose(out, x.astype("float64") @ y, rtol=1e-4, atol=1e-4)


def test_double_buffer_and_alignment():
    s, a, b, c = product()
    copied = s.cache_read(b, "shared", c)
    k, = s[c].op.reduce_axis
    ko, ki = s[c].split(k, factor=4)
    i, j = s[c].op.axis
    s[c].reorder(ko, i, j, ki)
    s[copied].compute_at(s[c], ko)
    s[copied].storage_align(s[copied].op.axis[0], 32, 5)
    before = s.fingerprint([a, b, c])
    s[copied].double_buffer()
    assert s.fingerprint([a, b, c]) != before
    text = str(s.replay([a, b, c]))
    assert "double_buffer_scope" in text and "buffer_dim_align" in text
    run(s.normalize(), a, b, c)


def test_prefetch():
    s, a, b, c = product()
    s[c].prefetch(b, s[c].op.reduce_axis[0], 2)
    assert '"prefetch": [["B", 2]]' in str(s.replay([a, b, c]))
    assert "T.prefetch(B" in str(tw.lower(s, [a, b, c]))
    run(s, a, b, c)


def test_env_threads():
    s, a, b, c = product()
    block = te.thread_axis("blockIdx.x")
    s[c].env_threads([block])
    alone = s.fingerprint([a, b, c])
    for use in (lambda: s.replay([a, b, c]), lambda: tw.lower(s, [a, b, c]), lambda: tw.build(s, [a, b, c])):
        with pytest.raises(ScheduleError, match=r"test_memory.py:\d+: s\[C\].env_threads\(blockIdx.x\): no loop "
                           "is bound to blockIdx.x"):
            use()
    s[c].bind(s[c].op.axis[0], block)                # TE's own kernels name the threads first
    assert 'thread="blockIdx.x"' in str(s.replay([a, b, c])) and s.fingerprint([a, b, c]) != alone
    s[c].env_threads(block)
    with pytest.raises(ScheduleError, match="is not a thread axis"):
        s[c].env_threads(s[c].op.axis[1])


@pytest.mark.parametrize("use, message", [
    (lambda s, a, b, c: s[a].double_buffer(), "A is a placeholder"),
    (lambda s, a, b, c: s[a].rolling_buffer(), "A is a placeholder"),
    (lambda s, a, b, c: s[c].storage_align(c.op.reduce_axis[0], 8, 0), "k is not an axis of the operation C"),
    (lambda s, a, b, c: s[c].storage_align(3, 8, 0), "3 is not an axis of the operation C"),
    (lambda s, a, b, c: s[c].storage_align(c.op.axis[0], 8, 8), "factor is 8 and offset 8"),
    (lambda s, a, b, c: s[c].prefetch(c, c.op.axis[0], 1), "C does not read C"),
    (lambda s, a, b, c: s[c].prefetch(a, c.op.axis[0], 0), "offset 0 is not a positive number"),
    (lambda s, a, b, c: s[c].prefetch(a, 3, 1), "3 is not an axis"),
    (lambda s, a, b, c: s[c].set_store_predicate(te.var("t") == 0), "elements of C would keep"),
])
def test_refusals(use, message):
    with pytest.raises(ScheduleError, match=message):
        use(*product())
