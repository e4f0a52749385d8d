"""What objects show of themselves: short in a terminal, HTML in a notebook, whatever state they are in."""
import html
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import tilewright as tw
from tilewright import graph, te
from tilewright.support.views import MOST_LINES, MOST_ROWS, View, Viewed, readable_bytes


class Balanced(HTMLParser):
    """Every element that opens closes, in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.most = [], 0
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def plain(page):
    """The text of some HTML."""
    return html.unescape(re.sub(r"<[^>]*>", "", page))


def check(thing, *words):
    """Both forms are there, hold the words, and are short."""
    text, page = repr(thing), thing._repr_html_()
    shown = plain(page)
    assert isinstance(thing, Viewed) and " at 0x" not in text
    assert len(text.splitlines()) <= MOST_ROWS + 3 and max(map(len, text.splitlines())) <= 320
    Balanced(page)
    for word in words:
        assert word in text and word in shown
    assert len(page) < 400 * 1024
    return text


def product(n=64):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    return A, B, te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")


def test_a_schedule_of_stages():
    A, B, C = product()
    s = te.create_schedule(C.op)
    check(s, "StageSchedule of C", "by the caller", "i, j, k")
    CC = s.cache_write(C, "local")
    AA = s.cache_read(A, "global", [CC])
    io, ii = s[C].split(C.op.axis[0], factor=8)
    s[C].parallel(io)
    s[C].vectorize(C.op.axis[1])
    s[CC].compute_at(s[C], ii)
    s[AA].compute_inline()
    assert check(s).splitlines() == [
        "tilewright.StageSchedule of C",
        "  stage     computed                   loops",
        "  A         by the caller",
        "  A.global  inline, in global          ax0, ax1",
        "  B         by the caller",
        "  C.local   at i.inner of C, in local  i.c, j.c, k",
        "  C         at the root                i.outer (parallel), i.inner, j (vectorized)"]


def test_a_schedule_of_stages_with_threads_and_scans():
    m, n = te.var("m"), te.var("n")
    X, state = te.placeholder((m, n), name="X"), te.placeholder((m, n))
    start = te.compute((1, n), lambda _, i: X[0, i])
    step = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
    Y = te.scan(start, step, state, inputs=[X])
    s = te.create_schedule(Y.op)
    s[step].bind(step.op.axis[1], te.thread_axis("threadIdx.x"))
    check(s, "bound to a thread axis")


def test_a_schedule():
    sch = tw.Schedule(te.create_prim_func(list(product())))
    assert check(sch) == "tilewright.Schedule after 0 primitives\n  function  blocks\n  main      C"
    i, *_ = sch.get_loops("C")
    sch.parallel(sch.split(i, [None, 8])[0])
    check(sch, "after 2 primitives")
    assert "in T.parallel(8):" in plain(sch._repr_html_()) and "get_loops" in plain(sch._repr_html_())
    del sch.trace.entries[0]
    check(sch, "after 2 primitives")
    sch.trace.entries.clear()                                  # what a trace lacks is no reason to raise
    check(sch, "after 0 primitives")
    check(tw.Schedule(tw.IRModule({"f": sch.func, "g": sch.func})), "f", "g")


def test_a_large_schedule_is_shown_in_part():
    funcs = {f"f{n}": te.create_prim_func(list(product())) for n in range(40)}
    text = check(tw.Schedule(tw.IRModule(funcs)), "... and 16 more")
    assert "f23" in text and "f24" not in text
    A = te.placeholder((4,), name="A")
    last = A
    for n in range(400):
        last = te.compute((4,), lambda i, t=last: t[i] + 1.0, name=f"B{n}")
    page = tw.Schedule(te.create_prim_func([A, last]))
    check(page)
    assert f"... and {len(str(page).splitlines()) - MOST_LINES} more lines" in page._repr_html_()
    check(te.create_schedule(last.op), "... and 377 more")


def test_a_module(tmp_path):
    m = tw.compile(list(product()), name="product")
    check(m, "tilewright.Module for", "product(A: float32[64, 64], B: float32[64, 64], C: float32[64, 64])", "KiB")
    functions = {f"f{n}": te.create_prim_func(list(product(4)), name=f"f{n}") for n in range(3)}
    check(tw.build(tw.IRModule(functions)), "f2(")
    m.save(tmp_path / "m.o")
    check(tw.load_module(tmp_path / "m.o"), "product(A")


def test_an_executor():
    x, y = graph.placeholder("x"), graph.placeholder("y")
    w = graph.parameter("w", np.ones((4, 3), "float32"))
    loss = graph.softmax_cross_entropy(x @ w, y)
    train = graph.Executor([loss], graph.SGD(0.1).minimize(loss, [w]))
    assert check(train) == "tilewright.Executor of softmaxcrossentropy with 1 update: 0 steps planned"
    train.run({x: np.ones((2, 4), "float32"), y: np.eye(3, dtype="float32")[:2]})
    check(train, "1 step planned", "x: float32[2, 4], y: float32[2, 3]", "planned", "matmul_", "kernels")
    w_only = graph.Executor([], [graph.Update(w, w * 0.5)])
    w_only.run()
    check(w_only, "no outputs", "no feeds")


@pytest.mark.parametrize("cells", [["<script>"], ["a\nb"], ["x" * 5000], [""]])
def test_cells_are_escaped_and_cut(cells):
    view = View("a < b" * 100, [cells] * 3, ["<i>"], [("<&>", lambda: "if a < b: pass")])
    Balanced(view.html())
    assert "<script>" not in view.html() and "<i>" not in view.html() and "<&>" not in view.html()
    assert all(len(line) <= 100 for line in str(view).splitlines())


def test_sizes_are_readable():
    assert [readable_bytes(b) for b in (0, 512, 1536, 20 << 20, 3 << 30)] == [
        "0 B", "512 B", "1.5 KiB", "20 MiB", "3 GiB"]


def test_tensors_in_a_notebook():
    n = te.var("n")
    A = te.placeholder((n, 4), "int8", name="A")
    k = te.reduce_axis((0, 4), name="k")
    rows = te.compute((n,), lambda i: te.sum(A[i, k], k), name="rows")
    first, second = te.compute((4,), lambda i: (-A[0, i].astype("float32"), A[1, i]), name="both")
    copy = te.extern((4,), [first], lambda ins, outs: te.call_packed("copy", ins[0], outs[0]), name="copy")
    for tensor, words in ((A, ["A: int8[n, 4]"]), (rows, ["rows: int8[n]", "rows[i]", "A[i, k]"]),
                          (first, ["both.v0[i]", '-T.Cast("float32", A[']), (second, ["both.v1[i]", "A["]),
                          (copy, ["copy: float32[4]"]), (tw.nd.array([[1.5, 2.0]]), ["float64[1, 2]", "1.5"])):
        page = tensor._repr_html_()
        Balanced(page)
        assert all(word in plain(page) for word in words), plain(page)
