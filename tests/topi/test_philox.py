"""Philox gives the words that are published, in the interpreter and as compiled code."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.tir import interp

# kat_vectors of Random123: counter, key, result
VECTORS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@pytest.mark.parametrize("compiled", [False, True])
def test_the_published_vectors(compiled):
    x, key = te.placeholder((4,), "uint32", name="x"), te.placeholder((2,), "uint32", name="key")
    func = te.create_prim_func([x, key, topi.philox(x, key)])
    f = tw.compile(func) if compiled else lambda *arrays: interp.run(func, *arrays)
    for counter, own, wanted in VECTORS:
        y = np.zeros(4, "uint32")
        f(*(np.array([int(w, 16) for w in text.split()], "uint32") for text in (counter, own)), y)
        assert " ".join(f"{w:08x}" for w in y) == wanted


def test_numbers_are_spread_evenly():
    key = te.placeholder((2,), "uint32", name="key")
    u, z = topi.uniform(key, 40000), topi.normal(key, 40000, stream=1)
    f = tw.compile(te.create_prim_func([key, u, z]))
    a, b = np.zeros(40000, "float32"), np.zeros(40000, "float32")
    f(np.array([1, 2], "uint32"), a, b)
    assert 0 <= a.min() and a.max() < 1
    counts = np.histogram(a, 20, (0, 1))[0]
    assert ((counts - 2000) ** 2 / 2000).sum() < 40            # chi-squared with 19 degrees: 0.3 % above 40
    assert abs(b.mean()) < 0.02 and abs(b.std() - 1) < 0.02 and abs(np.mean(b ** 4) - 3) < 0.2
