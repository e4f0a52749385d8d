"""The proof of the laws on integers of 3 and 4 bits, as far as it takes seconds, and that it would see a wrong one."""
import sys
from collections import Counter
from pathlib import Path

import pytest

from tilewright.arith import laws
from tilewright.arith.context import Context

sys.path.insert(0, str(Path(__file__).parent))
import proof


@pytest.fixture(autouse=True)
def types():
    with proof.small_types():
        yield


def shapes(most, bits=3):
    return tuple(s for s in proof.SHAPES if proof.size(s) << bits * s.constants <= most)


def test_all_laws_hold_on_three_bits():
    applied = Counter()
    for dtype, within, most in (("int3", None, 20_000), ("uint3", None, 20_000), ("int3", (1, 3), 20_000),
                                ("int3", (-2, 1), 5_000), ("uint3", (1, 7), 5_000), ("int4", (0, 1), 4_000)):
        report = proof.prove(dtype, shapes(most), within=within)
        assert not report.differences
        applied += report.applied
    assert not [name for name in proof.all_laws() if not applied[name]], "laws that were never applied"


@pytest.mark.parametrize("dtype", ("int4", "uint4"))
def test_shapes_of_one_constant_on_four_bits(dtype):
    assert not proof.prove(dtype, shapes(2_000, 4)).differences


def test_sums_divided_on_three_bits():
    sums = next(s for s in proof.SHAPES if s.name == "(x*c + y*d + e) op f")
    some = sums._replace(operators=(("floordiv", "truncmod", "min", "lt"),))
    for dtype in ("int3", "uint3"):
        assert not proof.prove(dtype, (some,), places=("value",)).differences


def test_choices_in_an_index_on_three_bits():
    """No type bounds what a branch computes there, nor the choice."""
    choices = next(s for s in proof.SHAPES if s.name == "(x < c ? x op d : y) op e")
    some = choices._replace(operators=(("min", "gt", "floordiv", "sub"), ("sub", "mul")))
    assert not proof.prove("int3", (some,), places=("index",)).differences


def replaced(request, table, name, wrong):
    """The law `name` of a table gives wrong(what it gave), until the test ends."""
    k = next(i for i, law in enumerate(table) if law.name == name)
    right = table[k]

    def apply(*args):
        out = right.apply(*args)
        return None if out is None else wrong(out)

    table[k] = right._replace(apply=apply)
    request.addfinalizer(lambda: table.__setitem__(k, right))


@pytest.mark.parametrize("table, name, wrong", [
    (laws.DIVISION, "take_multiples", lambda q: q.shifted(1)),
    (laws.DIVISION, "within_one_step", lambda q: q.shifted(1)),
    (laws.DIVISION, "common_factor", lambda q: q.shifted(-1)),
    (laws.MINIMUM, "by_bounds", lambda form: form.shifted(1)),
])
def test_a_wrong_law_is_found(request, table, name, wrong):
    replaced(request, table, name, wrong)
    assert proof.prove("int3", shapes(20_000), most=1).differences


def test_a_forgotten_type_is_found(monkeypatch):
    """That an operand fits its type, and that a type holds what a law makes, are conditions of their own."""
    with monkeypatch.context() as patch:
        patch.setattr(Context, "holds", lambda self, form, dtype: True)
        assert proof.prove("int3", shapes(20_000), most=1).differences
    with monkeypatch.context() as patch:
        patch.setattr(Context, "fits", lambda self, form, dtype: True)
        assert proof.prove("int3", shapes(20_000), most=1).differences
