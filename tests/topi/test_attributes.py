"""Attributes of every operator: what is not of the type that the signature says is refused in our own words."""
from __future__ import annotations

import inspect

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.support.errors import TensorExpressionError
from tilewright.topi.attributes import checked


class Silent:
    """An object that answers no question."""
    def _refuse(self, *_):
        raise KeyError("silent")

    __eq__ = __hash__ = __bool__ = __iter__ = __len__ = _refuse


NEVER = (1j, b"x", [], (4, 4), {"a": 1}, np.zeros(3), np.array("C"), Silent(), object(), print)
WRONG = {"float": (*NEVER, None, True, "x", 10**400, -10**400), "int": (*NEVER, None, True, 2.5, "x"),
         "float | bool": (*NEVER, None, "x", 10**400), "bool": (*NEVER, None, 2, -1, 1.0, "x"),
         "str": (*NEVER, None, 1, 2.5)}
WRONG |= {f"{kind} | None": tuple(v for v in values if v is not None) for kind, values in WRONG.items()}


def attributes():
    return [(name, p.name, p.annotation) for name in topi.__all__
            for p in inspect.signature(getattr(topi, name)).parameters.values()
            if p.kind is p.KEYWORD_ONLY and p.annotation in WRONG]


def test_attributes_of_another_type_are_refused():
    assert len(attributes()) > 300
    for name, attribute, kind in attributes():
        for value in WRONG[kind]:
            with pytest.raises(TensorExpressionError, match=f"^{name}: {attribute} is "):
                getattr(topi, name)(**{attribute: value})


def given(*, number: float = 0.0, whole: int = 0, flag: bool = False, word: str | None = None):
    return number, whole, flag, word


@pytest.mark.parametrize("attrs, wanted", [
    ({"number": np.float32(0.5), "whole": np.int64(3)}, (0.5, 3, False, None)),
    ({"number": 2**60 + 1, "flag": 1, "word": "x"}, (2**60 + 1, 0, True, "x")),
    ({"number": float("inf"), "flag": np.bool_(True), "word": None}, (float("inf"), 0, True, None)),
])
def test_numbers_of_numpy_become_those_of_python(attrs, wanted):
    given.__annotations__.update(number="float", whole="int", flag="bool", word="str | None")
    found = checked(given)(**attrs)
    assert found == wanted
    assert list(map(type, found)) == list(map(type, wanted))


@pytest.mark.parametrize("value", [True, np.bool_(True), 1])
def test_a_border_of_bools_is_one(value):
    x = te.placeholder((2, 3), "bool", name="x")
    found = np.zeros((4, 5), "bool")
    tw.compile([x, topi.pad(x, 1, value=value)])(np.zeros((2, 3), "bool"), found)
    np.testing.assert_array_equal(found, np.pad(np.zeros((2, 3), "bool"), 1, constant_values=True))
