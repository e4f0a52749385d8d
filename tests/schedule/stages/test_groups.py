"""Groups of stages: members, places, nesting."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.support.errors import ScheduleError


def chain(length=5, n=8):
    """s, and tensors each of which adds 1 to the one before; the first is a placeholder."""
    tensors = [te.placeholder((n, n), name="t0")]
    for k in range(1, length + 1):
        tensors.append(te.compute((n, n), lambda i, j, before=tensors[-1]: before[i, j] + 1, name=f"t{k}"))
    return te.create_schedule(tensors[-1].op), tensors


def names(group):
    return [stage.op.name for stage in group.stages]


def check(s, tensors, n=8):
    x, y = np.random.default_rng(0).standard_normal((n, n)).astype("float32"), np.empty((n, n), "float32")
    tw.build(s, [tensors[0], tensors[-1]])(x, y)
    np.testing.assert_allclose(y, x + len(tensors) - 1, rtol=1e-5)


def nest(s, tensors):
    """The loops and blocks of the schedule, by their depth."""
    lines = str(s.replay([tensors[0], tensors[-1]])).splitlines()
    blocks = [line for line in lines if "T.block(" in line and "root" not in line]
    return [(line.index(line.strip()) // 4, line.split('"')[1]) for line in blocks]


@pytest.mark.parametrize("included", [False, True])
def test_members_are_the_stages_between(included):
    s, t = chain()
    g = s.create_group(outputs=t[3], inputs=[t[1].op], include_inputs=included)
    assert names(g) == ["t1", "t2", "t3"][not included:] and s.groups == [g] and repr(g).startswith("group(")
    assert s[t[2]].group is g and s[t[4]].group is None and g.num_child_stages == 2 + included


def test_stages_beside_the_way_stay_outside():
    a, b = te.placeholder((8,), name="a"), te.placeholder((8,), name="b")
    c = te.compute((8,), lambda i: a[i] + 1, name="c")
    d = te.compute((8,), lambda i: b[i] + 1, name="d")
    e = te.compute((8,), lambda i: c[i] * d[i], name="e")
    f = te.compute((8,), lambda i: e[i] - d[i], name="f")
    s = te.create_schedule(f.op)
    assert names(s.create_group(outputs=e, inputs=a)) == ["c", "e"]


def test_a_group_is_computed_at_a_loop():
    s, t = chain()
    g = s.create_group(outputs=t[3], inputs=t[0])
    before = s.fingerprint([t[0], t[-1]])
    g.compute_at(s[t[4]], t[4].op.axis[0])
    assert g.attach_stage is s[t[4]] and g.attach_ivar is t[4].op.axis[0] and s[t[1]].attach_stage is s[t[4]]
    assert s.fingerprint([t[0], t[-1]]) != before
    assert {name: depth for depth, name in nest(s, t)} == {"t1": 3, "t2": 3, "t3": 3, "t4": 3, "t5": 2}
    check(s, t)
    g.compute_root()
    assert s.fingerprint([t[0], t[-1]]) == before and s[t[1]].attach_stage is None


def test_a_stage_of_a_group_has_a_place_of_its_own():
    s, t = chain()
    g = s.create_group(outputs=t[3], inputs=t[0])
    s[t[1]].compute_at(s[t[2]], t[2].op.axis[1])
    s[t[2]].compute_at(s[t[3]], t[3].op.axis[0])
    g.compute_at(s[t[4]], t[4].op.axis[0])
    assert s[t[1]].attach_stage is s[t[2]] and s[t[3]].attach_stage is s[t[4]]
    check(s, t)
    s[t[1]].compute_inline()
    check(s, t)
    s[t[2]].compute_root()
    assert s[t[2]].attach_stage is s[t[4]]
    check(s, t)


def test_groups_nest():
    s, t = chain()
    outer = s.create_group(outputs=t[4], inputs=t[0])
    inner = s.create_group(outputs=t[2], inputs=t[0])
    assert inner.group is outer and names(inner) == ["t1", "t2"] and names(outer) == ["t1", "t2", "t3", "t4"]
    assert outer.num_child_stages == 3 and inner.num_child_stages == 2
    outer.compute_at(s[t[5]], t[5].op.axis[0])
    assert s[t[1]].attach_stage is s[t[5]]
    inner.compute_at(s[t[3]], t[3].op.axis[0])
    assert s[t[1]].attach_stage is s[t[3]] and s[t[3]].attach_stage is s[t[5]]
    check(s, t)


def test_a_group_around_others():
    s, t = chain()
    inner = s.create_group(outputs=t[2], inputs=t[0])
    outer = s.create_group(outputs=t[3], inputs=t[0])
    assert inner.group is outer and s[t[3]].group is outer
    outer.compute_at(s[t[4]], t[4].op.axis[0])
    check(s, t)
    with pytest.raises(ScheduleError, match="a part of group"):
        s.create_group(outputs=t[4], inputs=t[1])


def test_copies_belong_to_the_group_of_their_stage():
    s, t = chain()
    g = s.create_group(outputs=t[3], inputs=t[0])
    cache = s.cache_write(t[3], "local")
    read = s.cache_read(t[2], "local", [cache])
    assert s[cache].group is g and s[read].group is g
    g.compute_at(s[t[4]], t[4].op.axis[0])
    check(s, t)


def test_a_group_is_no_place_for_what_needs_it():
    s, t = chain()
    g = s.create_group(outputs=t[3], inputs=t[1])
    with pytest.raises(ScheduleError, match="t1 does not need t2"):
        g.compute_at(s[t[1]], t[1].op.axis[0])
    with pytest.raises(ScheduleError, match="t5 is an output"):
        s.create_group(outputs=t[5], inputs=t[3]).compute_at(s[t[3]], t[3].op.axis[0])
    with pytest.raises(ScheduleError, match="is not a stage of this schedule"):
        g.compute_at(t[4], t[4].op.axis[0])
