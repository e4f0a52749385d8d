"""Kernels compiled in processes beside this one."""
import sys
import threading

import numpy as np
import pytest

from tilewright import te, topi
from tilewright.driver import target
from tilewright.driver.kernels import KernelCode
from tilewright.driver.progress import FEW, progress_bar
from tilewright.driver.workers import _Worker, compile_graph_kernels
from tilewright.graph.compile import build_function
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.runtime.machine import available_cpus


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
        assert worker.ready()
        beside = [worker.compile(job) for job in jobs(6, 1)]
    finally:
        worker.end()
    assert [c.to_bytes() for c in beside] == [c.to_bytes() for c in alone]
    assert KernelCode.from_bytes(alone[0].to_bytes()) == alone[0]


def test_work_of_a_worker_that_ends_is_done_here(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    monkeypatch.setenv("TILEWRIGHT_COMPILE_WORKERS", "64")
    monkeypatch.setattr("tilewright.driver.workers.SECONDS_A_WORKER", 1e-6)
    asked = []
    monkeypatch.setattr(_Worker, "ready", lambda self: True)
    monkeypatch.setattr(_Worker, "compile", lambda self, job: asked.append(job) or self.process.kill())
    codes = compile_graph_kernels(jobs(6), target("llvm"))
    assert [c.name for c in codes] == [f"product_{k}" for k in range(6)]
    assert asked or available_cpus() == 1


@pytest.mark.parametrize("executable", ["", None, "/no/such/interpreter"])
def test_work_of_workers_that_cannot_be_started_is_done_here(executable, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    monkeypatch.setenv("TILEWRIGHT_COMPILE_WORKERS", "64")
    monkeypatch.setattr("tilewright.driver.workers.SECONDS_A_WORKER", 1e-6)
    monkeypatch.setattr(sys, "executable", executable)
    assert [c.name for c in compile_graph_kernels(jobs(6), target("llvm"))] == [f"product_{k}" for k in range(6)]


def test_work_is_done_here_where_there_are_no_more_threads(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")

    def start(self):
        raise RuntimeError("can't start new thread")
    monkeypatch.setenv("TILEWRIGHT_COMPILE_WORKERS", "64")
    monkeypatch.setattr("tilewright.driver.workers.SECONDS_A_WORKER", 1e-6)
    monkeypatch.setattr(threading.Thread, "start", start)
    assert [c.name for c in compile_graph_kernels(jobs(6), target("llvm"))] == [f"product_{k}" for k in range(6)]


def test_what_an_interpreter_prints_at_its_start_is_no_answer(monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('hello', flush=True)")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    worker = _Worker(target("llvm"))
    try:
        assert worker.ready() and worker.compile(jobs(1)[0]).name == "product_0"
    finally:
        worker.end()


def test_nothing_waits_for_a_worker_that_is_still_loading(monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(600)")
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    monkeypatch.setenv("TILEWRIGHT_COMPILE_WORKERS", "1")
    monkeypatch.setattr("tilewright.driver.workers.SECONDS_A_WORKER", 1e-6)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert [c.name for c in compile_graph_kernels(jobs(6), target("llvm"))] == [f"product_{k}" for k in range(6)]


@pytest.mark.parametrize("workers", ["0", "64"])
def test_progress_ends_with_all_that_is_done(workers, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    monkeypatch.setenv("TILEWRIGHT_COMPILE_WORKERS", workers)
    monkeypatch.setattr("tilewright.driver.workers.SECONDS_A_WORKER", 1e-6)
    told = []
    compile_graph_kernels(jobs(6), target("llvm"), told.append)
    assert len(told) == 6 and max(told) == 6


@pytest.mark.parametrize("terminal, total, setting, shown", [
    (True, FEW, "1", True), (False, FEW, "1", False), (True, FEW - 1, "1", False), (True, FEW, "0", False)])
def test_progress_is_shown_on_a_terminal(terminal, total, setting, shown, monkeypatch, capsys):
    monkeypatch.setenv("TILEWRIGHT_PROGRESS", setting)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with progress_bar("compiling kernels", total) as progress:
        assert (progress is not None) == shown
        if progress:
            progress(3)
    written = capsys.readouterr()
    assert not written.out and ("compiling kernels" in written.err) == shown


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
