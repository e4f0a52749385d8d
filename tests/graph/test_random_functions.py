"""A few random functions; `python -m tests.graph.random_functions` runs as many as one likes."""
import pytest

from tests.graph.random_functions import check


@pytest.mark.parametrize("seed", range(16))
def test_random_function(seed):
    check(seed)
