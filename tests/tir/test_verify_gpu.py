"""The limits of a GPU that a kernel must keep."""
from __future__ import annotations

import pytest

from tilewright import te
from tilewright.lowering.pipeline import lower
from tilewright.schedule import Schedule
from tilewright.support.errors import IRError, StructuralError
from tilewright.te.prim_func import create_prim_func
from tilewright.tir.verify.gpu import GPULimits, limits_from, verify_gpu


def scaled(n, threads: int = 128, scope: str = "shared", vector: int = 0) -> Schedule:
    a = te.placeholder((n,), "float32", name="A")
    b = te.compute((n,), lambda i: a[i] * 2, name="B")
    sch = Schedule(create_prim_func([a, b]))
    cached = sch.cache_read("B", 0, scope)
    outer, inner = sch.split(sch.get_loops("B")[0], [None, threads * max(1, vector)])
    sch.bind(outer, "blockIdx.x")
    sch.compute_at(cached, outer)
    if vector:
        inner, lanes = sch.split(inner, [None, vector])
        sch.vectorize(lanes)
    sch.bind(inner, "threadIdx.x")
    return sch


def test_a_kernel_that_fits():
    sch = scaled(4096)
    verify_gpu(sch.func)
    verify_gpu(lower(sch.func))


@pytest.mark.parametrize("form", [lambda f: f, lower])
def test_too_many_threads(form):
    with pytest.raises(StructuralError, match="extent of threadIdx.x is 2048, the limit is 1024 .max_thread_x"):
        verify_gpu(form(scaled(4096, 2048).func))
    with pytest.raises(StructuralError, match="threads of a block is 128, the limit is 64"):
        verify_gpu(form(scaled(4096).func), GPULimits(max_threads_per_block=64))


def test_too_much_memory():
    func = lower(scaled(4096).func)
    with pytest.raises(StructuralError, match="shared memory, with A_shared, is 512 bytes, the limit is 256"):
        verify_gpu(func, limits_from({"max_shared_memory_per_block": 256}))
    with pytest.raises(StructuralError, match="local memory, with A_local, is 512 bytes"):
        verify_gpu(lower(scaled(4096, scope="local").func), GPULimits(max_local_memory_per_block=256))


def test_too_wide_vectors():
    verify_gpu(lower(scaled(4096, vector=4).func))
    with pytest.raises(StructuralError, match="of 8 lanes is 32 bytes, the limit is 16"):
        verify_gpu(lower(scaled(4096, vector=8).func))


def test_symbolic_sizes_and_unknown_limits():
    a = te.placeholder((te.var("n"),), "float32", name="A")
    b = te.compute(a.shape, lambda i: a[i] * 2, name="B")
    sch = Schedule(create_prim_func([a, b]))
    sch.bind(sch.get_loops("B")[0], "threadIdx.x")
    with pytest.raises(StructuralError, match="threadIdx.x has extent n, not a constant"):
        verify_gpu(sch.func)
    with pytest.raises(StructuralError, match="'max_cores' is not a limit"):
        limits_from({"max_cores": 3})
    with pytest.raises(IRError, match=r"the limits are \{'max_thread_x': 3\}, not GPULimits"):
        verify_gpu(sch.func, {"max_thread_x": 3})
