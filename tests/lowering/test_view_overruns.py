"""Views and other names of memory end where their regions and the memory do."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.support.errors import CallError, InterpreterError, LowerError, ScriptError
from tilewright.tir import interp

HEAD = "@T.prim_func\ndef f(A: T.Buffer((16,), 'int32'), B: T.Buffer((16,), 'int32')):\n"


def flat(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.strip("\n").splitlines())


VIEW = """@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range({blocks}):
        with T.block("P"):
            vi = T.axis.spatial({blocks}, i)
            T.reads(A[0:16])
            T.writes(B[{low}:{high}])
            X = T.match_buffer(B[{low}:{high}], ({size},), "int32", offset_factor=1)
            for j in range({steps}):
                X[j] = A[j]
"""


@pytest.mark.parametrize("case, said, found", [
    ({"blocks": 2, "low": "vi * 8 - 4", "high": "vi * 8 + 4", "size": 8, "steps": 8},
     r"B\[i \* 8 - 4 \+ j\] is out of bounds: index 0 runs from -4", r"X is a view of B, and B\[-4\] is out of bounds"),
    ({"blocks": 4, "low": "vi * 8", "high": "vi * 8 + 8", "size": 8, "steps": 8},
     r"index 0 runs from 0 to 31, the extent is 16", r"X is a view of B, and B\[16\] is out of bounds"),
    ({"blocks": 1, "low": "0", "high": "4", "size": 4, "steps": 8},
     r"X\[j\] is out of bounds: index 0 runs from 0 to 7, the extent is 4",
     r"X\[4\] is out of bounds: the shape is \(4,\)"),
])
def test_views_end_where_their_regions_and_memory_do(case, said, found):
    func = from_source(VIEW.format(**case))
    x, y = np.arange(16, dtype="int32"), np.zeros(16, "int32")
    with pytest.raises(InterpreterError, match=f"f: {found}(.|\n)*block\\(\"P\"\\)"):
        interp.run(func, x, y)
    with pytest.raises(LowerError, match=said):
        tw.build(func)
    with pytest.raises(CallError, match="of B is outside of its extent"):
        tw.build(func, checked=True)(x, y)


@pytest.mark.parametrize("steps", [8, 9])
def test_a_view_that_ends_at_run_time(steps):
    func = from_source(VIEW.format(blocks=1, low="4", high="12", size=8, steps="A[15]"))
    x, y, want = np.arange(16, dtype="int32"), np.zeros(16, "int32"), np.zeros(16, "int32")
    x[15] = steps
    if steps == 9:
        with pytest.raises(InterpreterError, match=r"X\[8\] is out of bounds"):
            interp.run(func, x, y)
        with pytest.raises(CallError, match="8 of B is outside of its extent 8"):
            tw.build(func, checked=True)(x, y)
        return
    want[4:12] = x[:8]
    for run in (lambda *a: interp.run(func, *a), tw.build(func), tw.build(func, checked=True)):
        y[:] = 0
        run(x, y)
        np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("given, message", [
    ("(24,), 'int32'", r"V \(24, int32\) is not inside of the memory of B \(16, int32\)"),
    ("(16,), 'int32', elem_offset=8", r"V \(16, int32\) from element 8 on is not inside of the memory of B"),
    ("(16,), 'int32', elem_offset=-1", r"V \(16, int32\) from element -1 on is not inside"),
    ("(9, 2), 'int32'", r"V \(9 x 2, int32\) is not inside"),
])
def test_another_name_for_more_than_the_memory_is_refused(given, message):
    with pytest.raises(ScriptError, match=message):
        from_source(HEAD + flat(f"V = T.Buffer({given}, data=B.data)\nfor i in range(4):\n    V[{{}}] = A[i]")
                    .format("i, 0" if "9, 2" in given else "i"))


def test_another_name_of_unknown_size_is_checked_by_the_interpreter():
    func = from_source("@T.prim_func\ndef f(a: T.handle, B: T.Buffer((16,), 'int32')):\n    n = T.int32()\n"
                       "    A = T.match_buffer(a, (n,), 'int32')\n    V = T.Buffer((n,), 'int32', data=B.data)\n"
                       "    for i in range(n):\n        V[i] = A[i]")
    y = np.zeros(16, "int32")
    interp.run(func, np.arange(16, dtype="int32"), y)
    np.testing.assert_array_equal(y, np.arange(16))
    with pytest.raises(InterpreterError, match="V has the memory of B, which has 16 elements, and element 16 is"):
        interp.run(func, np.arange(17, dtype="int32"), y)
