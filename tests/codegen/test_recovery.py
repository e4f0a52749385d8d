"""LLVM fails in the middle of its work: the process goes on, and is told."""
from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.llvm import compile, compile_text, recovery
from tilewright.runtime.loader import support_address
from tilewright.support.errors import CodegenError, CodegenWarning
from tilewright.support.target import Target

# an instruction of AVX-512 for a CPU without it
LACKING = """define <16 x float> @f(<16 x float> %x) {
  %r = call <16 x float> @llvm.x86.avx512.rsqrt14.ps.512(<16 x float> %x, <16 x float> %x, i16 -1)
  ret <16 x float> %r
}
declare <16 x float> @llvm.x86.avx512.rsqrt14.ps.512(<16 x float>, <16 x float>, i16)
"""
OLD = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v2"


def doubled(n=64):
    x = te.placeholder((n,), name="x")
    return tw.build(te.create_prim_func([x, te.compute((n,), lambda i: x[i] * 2, name="y")]))


def fails():
    with pytest.raises(CodegenError, match=r"(?s)the text cannot be compiled for .*x86-64-v2: LLVM ends with SIGABRT "
                                           r"\(a bug in LLVM .*hint: another schedule or target"):
        compile_text(LACKING, Target(OLD))


def recovered(function, *args):
    """(signal, result) of a C function of the process."""
    address = ctypes.cast(getattr(ctypes.CDLL(None), function), ctypes.c_void_p).value
    result = ctypes.c_void_p()
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 6)(support_address("tw_recover"))
    return call(address, *args, *[0] * (4 - len(args)), ctypes.addressof(result)), result.value


def test_a_fault_is_an_error_and_what_comes_after_is_right():
    for n in (1, 64, 300):
        fails()
        x, out = np.arange(n, dtype="float32"), np.empty(n, "float32")
        doubled(n)(x, out)
        np.testing.assert_array_equal(out, 2 * x)


def test_faults_and_builds_in_threads():
    wrong = []

    def build():
        try:
            for n in range(3, 12):
                x, out = np.arange(n, dtype="float32"), np.empty(n, "float32")
                doubled(n)(x, out)
                assert (out == 2 * x).all()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=build) for _ in range(3)]
    for t in threads:
        t.start()
    for _ in range(20):
        fails()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV, signal.SIGILL, signal.SIGFPE])
def test_signals_of_the_call_come_back(number):
    assert recovered("raise", number.value) == (number, None)
    assert recovered("labs", ctypes.c_void_p(-5)) == (0, 5)
    assert recovered("abort") == (signal.SIGABRT, None)


def test_handlers_are_those_of_before():
    before = signal.signal(signal.SIGABRT, lambda *_: None)
    try:
        mine = signal.getsignal(signal.SIGABRT)
        fails()
        assert signal.getsignal(signal.SIGABRT) is mine
        seen = []
        signal.signal(signal.SIGABRT, lambda *_: seen.append(1))
        recovered("abort")
        signal.raise_signal(signal.SIGABRT)
        assert seen == [1]
    finally:
        signal.signal(signal.SIGABRT, before)


@pytest.mark.parametrize("other", ["os.abort()", "signal.raise_signal(signal.SIGSEGV)"])
def test_faults_of_others_end_the_process_as_before(other):
    """Also in another thread, in the time of a call."""
    code = f"""
import ctypes, os, resource, signal, threading, time
from tilewright.runtime.loader import support_address
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 6)(support_address("tw_recover"))
sleep = ctypes.cast(ctypes.CDLL(None).sleep, ctypes.c_void_p).value
result = ctypes.c_void_p()
t = threading.Thread(target=call, args=(sleep, 20, 0, 0, 0, ctypes.addressof(result)), daemon=True)
t.start()
time.sleep(0.3)
{other}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=15)
    assert done.returncode == -(signal.SIGABRT if "abort" in other else signal.SIGSEGV)


@pytest.mark.parametrize("failures, how", [(1, "without LLVM's vectorizers"), (2, "without LLVM's optimizations")])
def test_less_is_asked_of_llvm_and_said(failures, how, monkeypatch):
    left = [failures]

    def emit(module, machine, assembly=False):
        if left[0]:
            left[0] -= 1
            raise recovery.Fault("LLVM ends with SIGABRT (a bug in LLVM)")
        return recovery.emit(module, machine, assembly)

    monkeypatch.setattr(compile, "emit", emit)
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    x, out = np.arange(64, dtype="float32"), np.empty(64, "float32")
    with pytest.warns(CodegenWarning, match=rf"(?s)is compiled {how}, since LLVM ends with SIGABRT .*hint: "
                                            "TILEWRIGHT_DUMP=folder"):
        built = doubled()
    built(x, out)
    np.testing.assert_array_equal(out, 2 * x)


def test_code_that_is_not_well_formed_is_made_again(monkeypatch):
    said = iter(["Instruction does not dominate all uses!"])
    monkeypatch.setattr(compile, "_malformed", lambda module: next(said, ""))
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "0")
    x, out = np.arange(64, dtype="float32"), np.empty(64, "float32")
    with pytest.warns(CodegenWarning, match="vectorizers, since LLVM makes code that is not well formed"):
        built = doubled()
    built(x, out)
    np.testing.assert_array_equal(out, 2 * x)
