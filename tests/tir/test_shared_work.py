"""What the threads of a block do together, as it is written by hand: which thread runs what, and where all meet."""
from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tilewright.lowering import PASSES, lower
from tilewright.script import from_source
from tilewright.support.errors import InterpreterError, LowerError
from tilewright.tir import interp
from tilewright.tir.shared_work import filled_together, share_work, shared_work_of

HEAD = """@T.prim_func
def main(A: T.Buffer((12, 12), "int32"), B: T.Buffer((12, 12), "int32")):
    S = T.decl_buffer((12, 12), "int32", scope="shared")
"""


def script(body, head=HEAD):
    return from_source(head + "\n".join(f"    {line}" for line in body.strip("\n").splitlines()))


def transposed(copy, after=""):
    """B = A.T through S, which the loops `copy` fill, below y and x."""
    lines = "\n".join(f"        {line}" for line in copy.strip("\n").splitlines())
    return script(f"""
for y in T.thread_binding(12, thread="threadIdx.y"):
    for x in T.thread_binding(12, thread="threadIdx.x"):
{lines}
        B[y, x] = S[x, y]
""")


def run(func):
    a, b = np.arange(144, dtype="int32").reshape(12, 12), np.full((12, 12), 7, "int32")
    interp.run(func, a, b)
    return a, b


COPIES = {
    "each a part, along both axes": """
for u in T.thread_binding(12, thread="threadIdx.y"):
    for v in T.thread_binding(12, thread="threadIdx.x"):
        S[u, v] = A[u, v]
""",
    "with loops around and inside": """
for o in range(3):
    for u in T.thread_binding(4, thread="threadIdx.x"):
        for v in range(12):
            S[o * 4 + u, v] = A[o * 4 + u, v]
""",
    "rows by one axis, columns of its own by the other": """
for u in T.thread_binding(12, thread="threadIdx.x"):
    S[y, u] = A[y, u]
""",
    "the first thread alone": """
for u, v in T.grid(12, 12):
    S[u, v] = A[u, v]
""",
    "the first of each row": """
for v in range(12):
    if v < 12:
        S[y, v] = A[y, v]
""",
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=list(COPIES))
def test_memory_that_threads_fill_together(copy):
    func = transposed(copy)
    a, b = run(func)
    np.testing.assert_array_equal(b, a.T)
    written = share_work(func)
    assert str(written).count("T.sync") == 2
    assert share_work(written).body is written.body          # nothing is left to do
    for p in PASSES:
        func = p.run(func)
        np.testing.assert_array_equal(run(func)[1], a.T, p.name)


def test_each_threads_own_part_has_no_barrier():
    func = script("""
for y in T.thread_binding(12, thread="threadIdx.y"):
    for x in T.thread_binding(12, thread="threadIdx.x"):
        S[y, x] = A[y, x]
        B[y, x] = S[y, x]
""")
    assert share_work(func).body is func.body
    assert not filled_together(func)
    np.testing.assert_array_equal(*run(func))


def test_without_the_barriers_it_is_a_race():
    func = transposed(COPIES["each a part, along both axes"])
    text = "\n".join(line for line in str(share_work(func)).splitlines() if "T.sync" not in line)
    with pytest.raises(InterpreterError, match="S is read at element .*, which nothing has written"):
        run(from_source(text))
    text = text.replace("B[threadIdx_y, threadIdx_x] = S[threadIdx_x, threadIdx_y]",
                        "B[threadIdx_y, threadIdx_x] = S[threadIdx_y, 0]").replace(
                        "S[threadIdx_y, threadIdx_x] =", "S[threadIdx_y, 0] =")
    with pytest.raises(InterpreterError, match="touch element 0 of S"):
        run(from_source(text))


def test_what_threads_write_back_together():
    func = script("""
for x in T.thread_binding(12, thread="threadIdx.x"):
    for v in range(12):
        S[x, v] = A[x, v]
    for u in T.thread_binding(12, thread="threadIdx.x"):
        for v in range(12):
            B[u, v] = S[v, u]
""")
    a, b = run(func)
    np.testing.assert_array_equal(b, a.T)
    np.testing.assert_array_equal(run(lower(func))[1], a.T)


def test_loops_of_one_axis_without_shared_memory_need_no_barrier():
    func = script("""
for x in T.thread_binding(12, thread="threadIdx.x"):
    for u in T.thread_binding(12, thread="threadIdx.x"):
        for v in range(12):
            B[u, v] = A[u, v]
""")
    assert "T.sync" not in str(share_work(func))
    np.testing.assert_array_equal(*run(func))


@pytest.mark.parametrize("block", ["""
        v, k = T.axis.remap("SR", [i, x])
        with T.init():
            S[v, 0] = 0
        S[v, 0] = S[v, 0] + A[v, 0]
""", """
        v, k = T.axis.remap("SS", [i, x])
        S[v, 0] = A[v, 0] * 4
"""], ids=["a sum", "a copy"])
def test_a_block_whose_axis_over_threads_is_in_its_bindings_alone(block):
    body = textwrap.indent(block.strip("\n"), "    ")
    func = script(f"""
for i in range(12):
    for x in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("fill"):
{body}
for i, j in T.grid(12, 12):
    with T.block("use"):
        v, w = T.axis.remap("SS", [i, j])
        B[v, w] = S[v, 0]
""", HEAD.replace("T.decl_buffer", "T.alloc_buffer"))
    want = np.broadcast_to(4 * 12 * np.arange(12)[:, None], (12, 12))
    np.testing.assert_array_equal(run(func)[1], want)
    np.testing.assert_array_equal(run(lower(func))[1], want)


REFUSED = {
    "more parts than threads": ("""
for x in T.thread_binding(4, thread="threadIdx.x"):
    for u in T.thread_binding(12, thread="threadIdx.x"):
        S[u, 0] = A[u, 0]
""", "loop u is bound to threadIdx.x with extent 12, inside loop x which is bound to it with extent 4"),
    "a place that some threads reach": ("""
for y in T.thread_binding(12, thread="threadIdx.y"):
    for x in T.thread_binding(12, thread="threadIdx.x"):
        if y < 3:
            S[0, 0] = A[0, 0]
            B[y, x] = A[y, x]
""", "would not all meet at the barriers around what they share: a loop or condition around it depends on y"),
    "a loop of one thread whose iterations run at once": ("""
for x in T.thread_binding(12, thread="threadIdx.x"):
    for p in T.parallel(12):
        S[0, p] = A[0, p]
        B[x, p] = A[x, p]
""", "would meet inside of the parallel loop p of one of them"),
    "an axis that is bound inside only": ("""
for y in T.thread_binding(12, thread="threadIdx.y"):
    for u in T.thread_binding(12, thread="threadIdx.y"):
        for x in T.thread_binding(12, thread="threadIdx.x"):
            S[u, x] = A[u, x]
    B[y, 0] = S[11 - y, 0]
""", "loop x is bound to threadIdx.x inside of what the threads of threadIdx.y share"),
    "some of the statements of a nest": ("""
for y in T.thread_binding(12, thread="threadIdx.y"):
    for x in T.thread_binding(12, thread="threadIdx.x"):
        for u in T.thread_binding(12, thread="threadIdx.y"):
            for v in T.thread_binding(12, thread="threadIdx.x"):
                S[u, v] = A[u, v]
            S[u, 0] = A[u, 0]
""", "some of the statements of a nest that the threads of threadIdx.x share, and not all, are in a loop bound to it"),
}


@pytest.mark.parametrize("body, message", REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_be_shared(body, message):
    with pytest.raises(InterpreterError, match=message):
        run(script(body))
    with pytest.raises(LowerError, match=message):
        lower(script(body))


def test_the_start_of_a_reduction_belongs_to_its_steps():
    """One condition on the other axis around both is no condition around barriers."""
    func = from_source(HEAD + """
    for x in T.thread_binding(3, thread="threadIdx.x"):
        for y in T.thread_binding(12, thread="threadIdx.y"):
            for k in range(12):
                if T.likely(y < 11):
                    if k == 0:
                        S[y, 0] = 0
                    S[y, 0] = S[y, 0] + A[y, k]
            for v in range(4):
                B[y, x * 4 + v] = T.if_then_else(y < 11, S[T.min(11 - y, 10), 0], 0)
""")
    work, = shared_work_of(func, pytest.fail)
    assert [loop.thread_tag for loop in work.single] == ["threadIdx.x"]
    a, b = run(func)
    for form in (b, run(lower(func))[1]):
        for y in range(11):
            assert (form[y] == a[min(11 - y, 10)].sum()).all()
