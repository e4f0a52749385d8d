"""Errors as objects: their text, their copies in another process."""
import pickle

import pytest

from tilewright import te
from tilewright.schedule import Schedule
from tilewright.support.errors import ScheduleError


def test_a_refusal_shows_the_program_that_was_refused_whenever_it_is_asked():
    a, k = te.placeholder((4, 6), name="A"), te.reduce_axis((0, 6), name="k")
    sch = Schedule(te.create_prim_func([a, te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")]))
    errors = []
    for _ in range(2):
        with pytest.raises(ScheduleError) as found:
            sch.parallel(sch.get_loops("B")[1])
        errors.append(found.value)
    asked = str(errors[0])
    before = str(sch)
    sch.split(sch.get_loops("B")[0], [2, 2])
    sch.parallel(sch.get_loops("B")[0])
    assert str(errors[1]) == asked == str(errors[1]) and str(sch) != before
    assert asked.startswith("parallel(loop=k): ") and asked.count("# <-- here") == 1
    assert "\n\nhint: " in asked
    copy = pickle.loads(pickle.dumps(errors[1]))
    assert type(copy) is ScheduleError and str(copy) == asked and repr(copy) == f"ScheduleError({asked!r})"
