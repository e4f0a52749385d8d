"""Kernels compiled in processes beside this one."""
import numpy as np

from tilewright import te, topi
from tilewright.driver import target
from tilewright.driver.kernels import KernelCode
from tilewright.driver.workers import _Worker, compile_graph_kernels
from tilewright.graph.compile import build_function
from tilewright.graph.ir.builder import BlockBuilder


def jobs(count, *constant):
    made = []
    for k in range(count):
        x, w = te.placeholder((4 + k, 8), name="x"), te.placeholder((8, 24), name="w")
        made.append((te.create_prim_func([x, w, topi.matmul(x, w)], name=f"product_{k}"), constant))
    return made


def test_workers_give_what_this_process_gives(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    host = target("llvm")
    monkeypatch.setenv("TILEWRIGHT_COMPILE_WORKERS", "0")
    alone = compile_graph_kernels(jobs(6, 1), host)
    worker = _Worker(host)
    try:
        beside = [worker.compile(job) for job in jobs(6, 1)]
    finally:
        worker.end()
    assert [c.to_bytes() for c in beside] == [c.to_bytes() for c in alone]
    assert KernelCode.from_bytes(alone[0].to_bytes()) == alone[0]


def test_work_of_a_worker_that_ends_is_done_here(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    monkeypatch.setattr(_Worker, "compile", lambda self, job: self.process.kill())
    codes = compile_graph_kernels(jobs(6), target("llvm"))
    assert [c.name for c in codes] == [f"product_{k}" for k in range(6)]


def test_constant_operands_are_packed_once():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((40, 96)).astype("float32"), rng.standard_normal((256, 96)).astype("float32")
    bb = BlockBuilder()
    p = bb.param("x", x.shape)
    with bb.function("main", [p]):
        bb.emit_func_output(bb.emit_te(topi.linear, p, bb.const(w)))
    run = build_function(bb.get()["main"])
    constants = [a.shape for a in run.plan.constants]
    assert constants and w.shape not in constants
    np.testing.assert_allclose(np.asarray(run(x)), x.astype("float64") @ w.T, rtol=1e-4, atol=1e-4)
