"""Does a schedule leave what a function computes as it is?"""
import numpy as np

from tilewright.compat import tvm
from tilewright.tir import interp


def check_same(func, sch):
    """The interpreter computes the same before and after, and so does native code where no loop is a GPU's."""
    rng = np.random.default_rng(0)
    given = [rng.random([int(d) for d in b.shape]).astype(b.dtype) for b in func.buffers]
    before, after = ([a.copy() for a in given] for _ in range(2))
    interp.run(func, *before)
    interp.run(sch.mod["main"], *after)
    results = [after]
    if "thread_binding" not in str(sch.mod):
        results.append([a.copy() for a in given])
        tvm.build(sch.mod)(*results[-1])
    for result in results:
        for expected, found in zip(before, result, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5)
