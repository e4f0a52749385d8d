"""Which dtypes meet in an operation and in a store, of all pairs: docs/script.md, "Values"."""
from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.support.errors import ScriptError

KINDS = {**{f"int{bits}": ("signed", bits) for bits in (8, 16, 32, 64)},
         **{f"uint{bits}": ("unsigned", bits) for bits in (8, 16, 32, 64)},
         "float8_e4m3fn": ("float", 8), "float8_e5m2": ("float", 8), "float16": ("float", 16),
         "bfloat16": ("float", 16), "float32": ("float", 32), "float64": ("float", 64), "bool": ("bool", 1)}
PAIRS = [pair for pair in itertools.product(KINDS, repeat=2) if pair[0] != pair[1]]


def becomes(narrow: str, wide: str) -> bool:
    """Whether a value of one dtype becomes the other where the two meet."""
    (kind, bits), (other, more) = KINDS[narrow], KINDS[wide]
    return kind == other and bits < more or kind in ("signed", "unsigned") and other == "float"


def function(statement: str, a: str, b: str):
    return from_source(f"""
        @T.prim_func
        def f(A: T.Buffer((4,), "{a}"), B: T.Buffer((4,), "{b}")):
            for i in range(4):
                {statement}
        """)


@pytest.mark.parametrize("a, b", PAIRS)
def test_a_store_takes_what_becomes_its_dtype(a, b):
    if not becomes(a, b):
        with pytest.raises(ScriptError, match=f"a value of type {a} is stored to B, which holds {b}"):
            function("B[i] = A[i]", a, b)
        return
    x, y = (np.zeros(4, getattr(ml_dtypes, name, None) or name) for name in (a, b))
    x[:] = 0, 1, 2, 3
    tw.build(function("B[i] = A[i]", a, b))(x, y)
    assert list(y.astype("float64")) == [0, 1, 2, 3]


@pytest.mark.parametrize("a, b", PAIRS)
def test_operands_meet_in_the_one_that_the_other_becomes(a, b):
    met = b if becomes(a, b) else a if becomes(b, a) else None
    if met is None:
        with pytest.raises(ScriptError, match=f"operands are {a} and {b}, which do not promote to a common type"):
            function("T.evaluate(A[i] + B[i])", a, b)
        return
    assert function("T.evaluate(A[i] + B[i])", a, b).body.body.value.dtype == met


@pytest.mark.parametrize("index, cast", [("int8", "int32"), ("int16", "int32"), ("uint8", "int32"), ("uint16", "int32"),
                                         ("uint32", "int64"), ("uint64", "int64"), ("int32", None), ("int64", None)])
def test_an_index_is_cast_to_a_signed_dtype(index, cast):
    func = function("B[A[i]] = T.float32(1)", index, "float32")
    assert (f'B[T.Cast("{cast}", A[i])] =' if cast else "B[A[i]] =") in str(func)
    got = np.zeros(4, "float32")
    tw.build(func)(np.array([3, 1, 1, 3], index), got)
    assert list(got) == [0, 1, 0, 1]
