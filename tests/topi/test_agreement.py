"""Every operator gives what NumPy gives: three samples of each. The long run is `python -m tests.topi.agreement`."""
from __future__ import annotations

import pytest

from tests.topi import cases  # noqa: F401 - registers the samples
from tests.topi.agreement import CASES, failures
from tilewright import topi


@pytest.mark.parametrize("name", sorted(CASES))
def test_samples(name):
    wrong = failures(name, range(3))
    assert not wrong, "\n".join(wrong)


def test_every_operator_has_samples():
    assert sorted(set(topi.__all__)) == sorted(topi.__all__)
    assert sorted(CASES) == sorted(topi.__all__)
