"""Accesses whose indices leave their buffers for some sizes: a call with such sizes raises before anything runs."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.script import from_source
from tilewright.support.errors import CallError, InterpreterError, LowerError
from tilewright.tir import interp
from tilewright.tir.expr import Call
from tilewright.tir.node import walk

HEAD = """@T.prim_func
def f(a: T.handle, b: T.handle, k: T.int32):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (m,), "float32")
"""


def function(body: str):
    return from_source(HEAD + "\n".join(f"    {line}" for line in body.splitlines()))


def asserts(module):
    func, = module.functions.values()
    return [n for n in walk(func.body) if isinstance(n, Call) and n.op == "Assert"]


def outcome(run, sizes, k):
    """What run writes from B on, and whether it raises."""
    n, m = sizes
    memory = np.full(m + 64, -1, "float32")
    b = memory[16:16 + m]
    try:
        run(np.arange(1, n + 1, dtype="float32"), b, k)
    except (CallError, InterpreterError) as why:
        assert "out of bounds" in str(why) or "outside of its extent" in str(why)
        return "raises", b"", memory
    return "runs", b.tobytes(), memory


SIZES = [(n, m) for n in (0, 1, 3, 4, 8, 9) for m in (0, 1, 4, 8, 9, 10)]


@pytest.mark.parametrize("body", [
    "for i in range(n):\n    B[i] = A[i]",
    "for i in range(n):\n    B[i + k] = A[i]",
    "for i in range(n):\n    B[n - 1 - i - k] = A[i]",
    "for i in range(k, 8):\n    B[i] = A[i - k]",
    "for i in range(n // 4):\n    B[i * 4:i * 4 + 4] = A[i * 4:i * 4 + 4]",
    "for i in range(n):\n    for j in range(k):\n        B[i + j] = A[i]",
    "for i in range(n):\n    for j in range(8):\n        B[j] = A[i]",
    "for i in range(n):\n    if i < m:\n        B[i] = A[i]",
    "for i in range(n):\n    B[T.Select(i < 0, i + m, i)] = A[i]",
    "B[k] = A[0]",
    "for i in range(8):\n    B[i - n] = T.float32(2)",
])
def test_native_code_raises_where_the_interpreter_does_and_writes_nothing(body):
    func = function(body)
    native, checked = tw.build(func, checked=False), tw.build(func, checked=True)
    seen = set()
    for sizes in SIZES:
        for k in (-1, 0, 2):
            want, values, _ = outcome(lambda *a: interp.run(func, *a), sizes, k)
            found, result, memory = outcome(native, sizes, k)
            assert (found, result) == (want, values), (sizes, k)
            assert found == "runs" or (memory == -1).all(), (sizes, k)
            assert (np.delete(memory, slice(16, 16 + sizes[1])) == -1).all(), (sizes, k)
            assert outcome(checked, sizes, k)[:2] == (want, values), (sizes, k)
            seen.add(found)
    assert "runs" in seen


def test_the_message_names_function_buffer_and_index():
    func = function("for i in range(n):\n    B[i] = A[i]")
    with pytest.raises(CallError, match=r"^f: B\[i\] is out of bounds: index 0 runs from 0 to n - 1, the extent is m "
                                        r"\(n <= m does not hold\)$"):
        tw.build(func)(np.zeros(20, "float32"), np.zeros(16, "float32"), 0)


@pytest.mark.parametrize("body, message", [
    ("for i in range(n):\n    A[i + 1] = 0.0", r"f: A\[i \+ 1\] is out of bounds: index 0 runs from 1 to n, the exte"),
    ("for i in range(n):\n    A[i - 1] = 0.0", r"A\[i - 1\] is out of bounds: index 0 runs from -1 to n - 2"),
    ("for i in range(n):\n    A[i:i + 4] = A[i:i + 4]", r"index 0 runs from 3 to n \+ 2, the extent is n"),
])
def test_what_is_outside_for_every_size_is_refused(body, message):
    with pytest.raises(LowerError, match=message):
        tw.lower(function(body))


@pytest.mark.parametrize("body", [
    "for i in range(n):\n    A[i] = A[n - 1 - i]",
    "for i in range(n // 4):\n    A[i * 4:i * 4 + 4] = A[0:4]",
    "for i in range(n - 1):\n    A[i] = A[i + 1]",
    "for i in range(n):\n    if i < m:\n        B[i] = A[i]",
    "for i in range(T.min(n, m)):\n    B[i] = A[i]",
    "for i in range(n):\n    for j in range(i):\n        A[j + 1] = A[i]",
])
def test_what_is_proven_or_may_not_run_asks_for_nothing(body):
    assert not asserts(tw.lower(function(body)))


def test_an_assertion_of_the_sizes_is_asked_before_the_accesses_that_it_keeps_inside():
    func = function('assert n <= m, "B is small"\nfor i in range(n):\n    B[i] = A[i]')
    native, memory = tw.build(func), np.full(64, -1, "float32")
    with pytest.raises(CallError, match=r"^f: B is small \(n <= m does not hold\)$"):
        native(np.zeros(20, "float32"), memory[16:32], 0)
    assert (memory == -1).all()
    native(np.zeros(9, "float32"), memory[16:32], 0)
    assert not memory[16:25].any() and (memory[25:] == -1).all()


def test_products_and_stencils_of_symbolic_sizes_ask_for_nothing():
    n, m, size = te.var("n"), te.var("m"), te.var("l")
    a, b = te.placeholder((n, size), name="A"), te.placeholder((size, m), name="B")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    assert not asserts(tw.lower(s, [a, b, c]))
    io, jo, ii, ji = s[c].tile(*c.op.axis, 8, 16)
    ko, ki = s[c].split(k, 4)
    s[c].reorder(io, jo, ko, ii, ki, ji)
    s[c].vectorize(ji)
    assert not asserts(tw.lower(s, [a, b, c]))
    dx = te.reduce_axis((0, 3), name="dx")
    p = te.compute((n + 2, m), lambda i, j: te.if_then_else(te.all(i >= 1, i < n + 1), c[i - 1, j], 0.0), name="P")
    d = te.compute((n, m), lambda i, j: te.sum(p[i + dx, j], axis=dx), name="D")
    for at in (None, 0, 1):
        s = te.create_schedule(d.op)
        if at is not None:
            s[p].compute_at(s[d], d.op.axis[at])
        assert not asserts(tw.lower(s, [a, b, d]))


def test_the_wide_copy_of_a_size_is_shown_by_its_name():
    m, n, k = te.var("m"), te.var("n"), te.var("k")
    x, w, state = te.placeholder((k, n), name="X"), te.placeholder((n * 4,), name="W"), te.placeholder((m, n))
    step = te.compute((m, n), lambda t, i: state[t - 1, i] * w[i * 4])
    y = te.scan(te.compute((k, n), lambda t, i: x[t, i]), step, state)
    s = te.create_schedule(y.op)
    assert '"int64"' in str(tw.lower(s, [x, w, y], simple_mode=False))
    f = tw.build(s, [x, w, y])
    with pytest.raises(CallError, match=r"\(k >= 1 or m < 1 or n < 1 does not hold\)$"):
        f(np.zeros((0, 5), "float32"), np.zeros(20, "float32"), np.zeros((4, 5), "float32"))


@pytest.mark.parametrize("index", ["i * T.int64(4)", "i + n - T.int64(1)", "T.int64(15) - i * T.int64(8)"])
def test_ends_that_64_bits_do_not_count_are_outside(index):
    f = from_source(f"""@T.prim_func
def f(n: T.int64, A: T.Buffer((16,), "int32")):
    for i in range(n):
        A[{index}] = 1
""")
    native = tw.build(f)["f"]
    for n in (2**63 - 1, 2**62 + 1, 2**61 + 3):
        a = np.zeros(16, "int32")
        with pytest.raises(CallError, match="out of bounds"):
            native(n, a)
        assert not a.any()
    native(-2**63, a)
    assert not a.any()
