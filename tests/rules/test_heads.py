"""The rule for attention, head by head, against NumPy in float64."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.rules import apply_rules
from tilewright.rules.apply import Scheduling
from tilewright.tir import PARALLEL, For, walk

ALONE, BOTH = "llvm -num-cores=1 -opt-level=1", "llvm -num-cores=2 -opt-level=1"


def attention(batch, heads, queries, keys, depth, width=None, kv_heads=None, **how):
    kv_heads = kv_heads or heads
    shapes = [(batch, heads, queries, depth), (batch, kv_heads, keys, depth), (batch, kv_heads, keys, width or depth)]
    arguments = [te.placeholder(s, name=n) for s, n in zip(shapes, "qkv")]
    return te.create_prim_func([*arguments, topi.scaled_dot_product_attention(*arguments, **how)]), shapes


def reference(q, k, v, is_causal=False):
    q, k, v = (a.astype("float64") for a in (q, k, v))
    k, v = (np.repeat(a, q.shape[1] // k.shape[1], 1) for a in (k, v))
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if is_causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def rules(func, target=ALONE):
    return [d.rule for d in Scheduling(func, tw.target(target)).finish().decisions]


def check(func, shapes, target=ALONE, **how):
    q, k, v = (np.random.default_rng(n).standard_normal(s).astype("float32") for n, s in enumerate(shapes))
    got = np.full((*q.shape[:3], v.shape[-1]), np.nan, "float32")
    tw.compile(func, target=target)(q, k, v, got)
    np.testing.assert_allclose(got, reference(q, k, v, **how), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", [ALONE, BOTH, "llvm -mcpu=haswell -num-cores=3", "c"])
@pytest.mark.parametrize("shape", [(1, 12, 40, 40, 16), (2, 12, 33, 77, 24, 8), (3, 4, 77, 50, 20)], ids=str)
def test_shapes(shape, target):
    func, shapes = attention(*shape)
    assert "heads" in rules(func, target)
    check(func, shapes, target)


def test_masks_and_shared_keys():
    func, shapes = attention(1, 4, 64, 64, 16, is_causal=True)
    assert "heads" in rules(func)
    check(func, shapes, is_causal=True)
    func, shapes = attention(1, 8, 40, 40, 16, kv_heads=2)
    assert "heads" in rules(func)
    check(func, shapes)


def test_scores_of_one_head_are_kept():
    """The buffer of scores has the size of one head, and threads take heads."""
    func, _ = attention(1, 12, 64, 48, 16)
    text = str(tw.lower(apply_rules(func, tw.target(ALONE)).func, simple_mode=True))
    assert f"attention_scores = T.decl_buffer(({64 * 48},)" in text
    sch = apply_rules(attention(1, 12, 128, 128, 64)[0], tw.target(BOTH))
    outer = next(n for n in walk(sch.func.body) if isinstance(n, For))
    assert outer.kind == PARALLEL and outer.extent.value == 12


def test_what_is_left_to_other_rules():
    """Fewer heads than threads, a number that the call tells, a single query, products without a chain."""
    assert "heads" not in rules(attention(1, 3, 64, 64, 16)[0], "llvm -num-cores=2")
    assert "heads" not in rules(attention(1, te.var("heads"), 64, 64, 16)[0])
    assert "heads" not in rules(attention(1, 12, 1, 64, 16)[0])
    a, b, c = (te.placeholder((4, 32, 32), name=n) for n in "abc")
    assert "heads" not in rules(te.create_prim_func([a, b, c, topi.matmul(topi.matmul(a, b), c)]))


def test_the_trace_replays():
    work = Scheduling(attention(1, 4, 40, 33, 16)[0], tw.target(BOTH)).finish()
    again = tw.Schedule(work.func)
    work.schedule.trace.apply_to_schedule(again)
    assert str(again) == str(work.schedule)
