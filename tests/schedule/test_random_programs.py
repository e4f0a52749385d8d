"""Random programs under random schedules keep their meaning, without races, and replay."""
from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from tests.schedule.core_support import check_replay
from tests.schedule.random_programs import meaning, program, random_schedule
from tilewright.tir.verify import verify


@pytest.mark.parametrize("seed", range(60))
def test_random_schedules_keep_the_meaning(seed):
    rng = random.Random(seed)
    func, size = program(rng)
    sch = random_schedule(rng, func, 12, Counter())
    verify(sch.func)
    np.testing.assert_array_equal(meaning(sch.func, size), meaning(func, size))
    check_replay(sch, func)
