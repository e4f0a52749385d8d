"""Stage schedules lower to the same text under every order of calls that keeps each stage's own order."""
from __future__ import annotations

import random

import pytest

from .stages import _extensions, check_stages, recorded


def test_orders_of_calls_of_different_stages_do_not_matter():
    tried, drawn, wrong = check_stages(count=25, seed=0, limit=8)
    assert not wrong, "\n\n".join(wrong)
    assert tried >= 100


def test_extensions_are_all_of_them():
    assert sorted(_extensions([set(), set(), {0}], 10)) == [[0, 1, 2], [0, 2, 1], [1, 0, 2]]


@pytest.mark.parametrize("seed", range(12))
def test_orders_keep_what_must_come_first(seed):
    r = recorded(seed)
    for order in r.orders(5, random.Random(seed)) if r else ():
        place = {n: k for k, n in enumerate(order)}
        assert all(place[m] < place[n] for n, first in enumerate(r.before()) for m in first)
