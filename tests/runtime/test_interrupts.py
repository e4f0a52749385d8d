"""KeyboardInterrupt, SystemExit and their like in a packed Python function: they leave the kernel as they were."""
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import tilewright as tw
from tilewright.runtime import interrupts
from tilewright.script import tir as T


class Stop(BaseException):
    """What is no Exception, of a class that the runtime does not know."""


@T.prim_func
def calls(A: T.Buffer((8,), "int32"), which: T.int32):
    for i in range(8):
        with T.block("b"):
            vi = T.axis.spatial(8, i)
            A[vi] = T.call_packed("tests.interrupts.stop", which, vi, dtype="int32")


def scheduled(parallel):
    sch = tw.Schedule(calls)
    if parallel:
        sch.parallel(sch.get_loops("b")[0])
    return tw.build(sch)


@pytest.mark.parametrize("parallel", [False, True], ids=["serial", "parallel"])
def test_what_a_function_raises_leaves_the_kernel_as_it_was(parallel):
    stops = [KeyboardInterrupt(), SystemExit(3), Stop("enough"), ZeroDivisionError("boom"), KeyError("key"),
             ValueError("two\nlines")]

    @tw.register_func("tests.interrupts.stop", override=True)
    def stop(which, i):
        if which < len(stops):
            raise stops[which]
        return i

    f = scheduled(parallel)
    for which, raised in enumerate(stops):
        with pytest.raises(BaseException) as caught:
            f(np.zeros(8, "int32"), which)
        assert caught.value is raised
        with pytest.raises(type(raised)) as caught:
            tw.get_global_func("tests.interrupts.stop")(which, 0)
        assert caught.value is raised
    out = np.zeros(8, "int32")
    f(out, len(stops))                               # nothing of it is left
    assert out.tolist() == list(range(8))


def test_errors_of_several_threads_are_kept_apart():
    first, second, third = ZeroDivisionError("one"), KeyError("two"), KeyboardInterrupt()
    interrupts.keep("f", first)
    for name, stop in (("f", second), ("g", third)):
        other = threading.Thread(target=interrupts.keep, args=(name, stop))
        other.start()
        other.join()
    in_a_loop = RuntimeError("k: the packed function 'g' failed in a parallel loop")
    assert interrupts.taken(RuntimeError("one")) is first and interrupts.taken(RuntimeError("one")) is None
    assert interrupts.taken(in_a_loop) is third and interrupts.taken(in_a_loop) is None
    interrupts._kept.clear()


def test_an_interrupt_that_was_caught_inside_is_over():
    @tw.register_func("tests.interrupts.inner", override=True)
    def inner():
        raise KeyboardInterrupt("inside")

    @tw.register_func("tests.interrupts.stop", override=True)
    def stop(which, i):
        try:
            tw.get_global_func("tests.interrupts.inner")()
        except KeyboardInterrupt:
            raise ValueError("something else") from None

    with pytest.raises(ValueError, match="something else"):
        scheduled(False)(np.zeros(8, "int32"), 0)


SPIN = """
    import os, signal, sys, threading, time
    import numpy as np
    import tilewright as tw
    from tilewright.script import from_source

    f = tw.build(from_source('''
    @T.prim_func
    def spin(A: T.Buffer((64,), 'int32'), n: T.int32):
        for r in T.KIND(64):
            with T.block('b'):
                vr = T.axis.spatial(64, r)
                A[vr] = 1
                for i in range(n):
                    A[vr] = A[vr] * 1664525 + 1013904223
    '''))
    a, n, took = np.zeros(64, "int32"), 100_000, 0
    while took < 0.4:
        n, start = 2 * n, time.monotonic()
        f(a, n)
        took = time.monotonic() - start
    want = a.copy()
    a[:] = 0
    # who starts the tests in the background leaves SIGINT ignored
    signal.signal(signal.SIGINT, signal.SIG_DFL if sys.argv[1] == "default" else signal.default_int_handler)


    def interrupt():
        while not a.any():                       # until the kernel has begun
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    try:
        f(a, n)
    except KeyboardInterrupt:
        print("interrupted", (a == want).all(), flush=True)
"""


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_ctrl_c_is_raised_behind_the_kernel_whose_result_is_whole(kind):
    """As docs/safety.md says, with what it says to do about it."""
    code = textwrap.dedent(SPIN).replace("KIND", kind)
    done = subprocess.run([sys.executable, "-c", code, "python"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "interrupted True\n"), done.stderr
    done = subprocess.run([sys.executable, "-c", code, "default"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (-signal.SIGINT, ""), done.stderr
