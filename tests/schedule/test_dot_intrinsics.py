"""The intrinsics that come with the package, used by name in a schedule of one's own."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.schedule.intrinsics import DOTS, interleave_name
from tilewright.support.errors import ScheduleError
from tilewright.tir import run

HOST = tw.Target("llvm -num-cores=1")


def product(m, n, k, row):
    a, b = te.placeholder((m, k), row.a_type, name="A"), te.placeholder((n, k), row.b_type, name="B")
    r = te.reduce_axis((0, k), name="k")
    wide = row.c_type
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r].astype(wide) * b[j, r].astype(wide), axis=r), name="C")
    return te.create_prim_func([a, b, c])


def scheduled(row, packed=True):
    """C tiled by the lanes and groups of the intrinsic, B copied into tiles of [lanes, group]."""
    sch = tw.Schedule(product(3, 2 * row.lanes, 4 * row.group, row))
    block = sch.get_block("C")
    if packed:
        copy = sch.cache_read(block, 1, "global")
        lanes, group = row.lanes, row.group
        sch.transform_layout(copy, ("write", 0), lambda j, p: (j // lanes, p // group, j % lanes, p % group))
    i, j, k = sch.get_loops(block)
    _, ji = sch.split(j, [None, row.lanes])
    ko, ki = sch.split(k, [None, row.group])
    sch.reorder(ko, ji, ki)
    sch.decompose_reduction(block, ko)
    sch.tensorize(ji, row.name)
    return sch


@pytest.mark.parametrize("row", DOTS, ids=[r.name for r in DOTS])
def test_each_intrinsic_in_a_schedule(row):
    sch = scheduled(row)
    random = np.random.default_rng(0)

    def values(dtype, shape):
        if tw.tir.dtype.is_float(dtype):
            return random.integers(-9, 9, shape).astype(tw.tir.dtype.numpy_dtype(dtype))
        info = np.iinfo(dtype)
        return random.choice(np.array([info.min, info.max, 1], dtype), shape)

    a, b = values(row.a_type, (3, 4 * row.group)), values(row.b_type, (2 * row.lanes, 4 * row.group))
    want = (a.astype("float64") @ b.astype("float64").T).astype(row.c_type)
    out = np.zeros(want.shape, row.c_type)
    run(sch.func, a, b, out)
    np.testing.assert_array_equal(out, want)
    if row.runs_on(HOST):
        out[:] = 0
        tw.build(sch, target=HOST)(a, b, out)
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("row", [r for r in DOTS if r.lanes == 16], ids=lambda r: r.name)
def test_rows_that_are_not_packed_are_refused(row):
    with pytest.raises(ScheduleError, match="stride"):
        scheduled(row, packed=False)


@pytest.mark.parametrize("dtype, rows, columns", [
    ("int8", 4, 16), ("uint8", 2, 8), ("bfloat16", 2, 32), ("int8", 4, 32)])
def test_interleaving(dtype, rows, columns):
    a = te.placeholder((3 * rows, 2 * columns), dtype, name="A")
    b = te.compute((3, 2 * columns, rows), lambda p, j, q: a[p * rows + q, j], name="B")
    sch = tw.Schedule(te.create_prim_func([a, b]))
    p, j, q = sch.get_loops("B")
    _, inner = sch.split(j, [None, columns])
    sch.reorder(q, inner)
    sch.tensorize(q, interleave_name(dtype, rows, columns))
    x = np.arange(a.shape[0].value * a.shape[1].value).reshape(3 * rows, -1).astype(tw.tir.dtype.numpy_dtype(dtype))
    want = x.reshape(3, rows, -1).transpose(0, 2, 1)
    for call in (lambda out: run(sch.func, x, out), lambda out: tw.build(sch)(x, out)):
        out = np.zeros(want.shape, x.dtype)
        call(out)
        np.testing.assert_array_equal(out, want)
