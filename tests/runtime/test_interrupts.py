"""KeyboardInterrupt, SystemExit and their like in a packed Python function: they leave the kernel as they were."""
import numpy as np
import pytest

import tilewright as tw
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
def test_what_is_no_exception_leaves_the_kernel_as_it_was_raised(parallel):
    stops = [KeyboardInterrupt(), SystemExit(3), Stop("enough")]

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
    f(out, 3)                                     # nothing of it is left
    assert out.tolist() == list(range(8))


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
