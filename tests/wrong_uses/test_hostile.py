"""Beyond the table: garbage arguments, expressions and sizes without bound, shared memory, threads, broken caches."""
from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tilewright as tw
from tilewright import graph, te
from tilewright.records.objects import ObjectCache
from tilewright.script import from_source
from tilewright.support.errors import CallError, TensorExpressionError
from tilewright.tir import interp

from . import garbage
from .programs import matmul_kernel, shift_kernel, zeros


@pytest.mark.parametrize("area", garbage.AREAS, ids=lambda area: area.__name__)
def test_garbage_is_refused_in_our_own_words(area, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert garbage.foreign_errors(area, seed=7, rounds=8) == []


def test_one_argument_out_of_place_is_refused_in_our_own_words():
    assert garbage.foreign_errors_beside_usual_arguments() == []


def nested(depth, step):
    a = te.placeholder((4,), name="A")

    def body(i):
        value = a[i]
        for _ in range(depth):
            value = step(value)
        return value
    return a, te.compute((4,), body, name="C")


def test_an_expression_of_900_operations_runs():
    a, c = nested(900, lambda e: e + 1.0)
    out = zeros(4)
    tw.build(te.create_schedule(c.op), [a, c], "llvm")(zeros(4), out)
    assert (out == 900).all()


@pytest.mark.parametrize("depth, step", [(2000, lambda e: e + 1.0), (60, lambda e: e * e)], ids=["deep", "shared"])
def test_an_expression_without_bound_is_refused(depth, step):
    with pytest.raises(TensorExpressionError, match="the expression has [0-9]+ operations"):
        nested(depth, step)


def built(c, *args):
    s = te.create_schedule(c.op)
    return tw.build(s, [*args, c], "llvm"), s.replay([*args, c]).func


def test_reads_that_may_leave_their_tensor_are_checked_where_they_run():
    c = zeros(5)
    shift_kernel()(np.arange(5, dtype="float32"), c)
    assert (c == np.arange(5)).all()
    with pytest.raises(CallError, match=r"the index i = \d+ of A is outside of its extent m = \d+"):
        shift_kernel()(zeros(4), c)


def test_a_column_index_from_data_does_not_reach_the_next_row():
    t, index = te.placeholder((3, 4), name="T"), te.placeholder((3,), "int8", name="I")
    f, func = built(te.compute((3,), lambda i: t[i, index[i]], name="C"), t, index)
    table, out, wanted = np.arange(12, dtype="float32").reshape(3, 4), zeros(3), np.array([0, 7, 10], "float32")
    f(table, np.array([0, 3, 2], "int8"), out)
    assert (out == wanted).all()
    interp.run(func, table, np.array([0, 3, 2], "int8"), out)
    assert (out == wanted).all()
    for bad in ([0, 4, 2], [0, -1, 2]):
        with pytest.raises(CallError, match="of T is outside of its extent 4"):
            f(table, np.array(bad, "int8"), out)


LOOPS = {
    "one dimension": ("for j in range(n[0], n[1]):", "C[j] = C[j] + 1"),
    "rows": ("for j in range(n[0], n[1]):", "D[j // 4, j % 4] = D[j // 4, j % 4] + 1"),
    "parallel": ("for j in T.parallel(n[0], n[1]):", "C[j] = C[j] + 1"),
    "a let": ("for j in range(n[0], n[1]):", "x = j + 0\n        C[x] = C[x] + 1"),
    "a let of a let": ("for j in range(n[0], n[1]):", "x = j + 0\n        y = x + 0\n        C[y] = C[y] + 1"),
    "a loop up to the variable": ("for j in range(n[0], n[1]):",
                                  "for k in range(j, j + 1):\n            C[k] = C[k] + 1"),
    "a block": ("for j in range(n[0], n[1]):",
                "with T.block('b'):\n            v = T.axis.opaque(64, j)\n            C[v] = C[v] + 1"),
}


@pytest.mark.parametrize("loop, body", LOOPS.values(), ids=LOOPS)
def test_a_loop_whose_ends_are_data_stays_inside(loop, body):
    f = tw.build(from_source(f"""@T.prim_func
def steps(n: T.Buffer((2,), "int32"), C: T.Buffer((8,), "int32"), D: T.Buffer((2, 4), "int32")):
    {loop}
        {body}
"""))
    far = (2**31 - 9, 2**31 - 1), (-2**31, 3 - 2**31)
    for first, end in ((0, 8), (3, 5), (5, 5), (7, 2), (0, 9), (-1, 3), (8, 20), *far):
        room = np.zeros(24, "int32")
        c, d = room[8:16], np.zeros((2, 4), "int32")
        run = functools.partial(f, np.array([first, end], "int32"), c, d)
        if first >= end or 0 <= first and end <= 8:
            run()
            assert (c + d.reshape(8) == [first <= i < end for i in range(8)]).all()
        else:
            with pytest.raises(CallError, match="outside of its"):
                run()
        assert not room[:8].any() and not room[16:].any()


def test_ends_from_data_that_are_cut_need_no_check():
    f = from_source("""@T.prim_func
def steps(n: T.Buffer((1,), "int32"), C: T.Buffer((8,), "int32")):
    for j in range(T.min(T.max(n[0], 0), 8)):
        C[j] = C[j] + 1
""")
    assert "checked_index" not in str(tw.lower(f))
    for n in (-3, 0, 5, 8, 2**31 - 1):
        c = np.zeros(8, "int32")
        tw.build(f)(np.array([n], "int32"), c)
        assert c.sum() == min(max(n, 0), 8)


def test_a_select_that_guards_a_read_evaluates_only_what_it_chooses():
    a = te.placeholder((4,), name="A")
    c = te.compute((6,), lambda i: te.select(te.all(i >= 1, i < 5), a[i - 1], -1.0), name="C")
    assert "if_then_else" in str(c.op.body[0])
    f, func = built(c, a)
    for run in (f, lambda *args: interp.run(func, *args)):
        out = zeros(6)
        run(np.arange(4, dtype="float32"), out)
        assert list(out) == [-1, 0, 1, 2, 3, -1]


def test_a_result_may_lie_in_its_input_where_that_is_harmless():
    a, b = te.placeholder((16,), name="A"), te.placeholder((16,), name="B")
    f, _ = built(te.compute((16,), lambda i: a[i] + 2.0 * b[i], name="C"), a, b)
    x = np.arange(17, dtype="float32")
    f(x[:16], x[:16], x[:16])
    assert (x[:16] == 3 * np.arange(16)).all()
    before = x.copy()
    for wrong in ((x[:16], zeros(16), x[1:]), (zeros(16), x[1:], x[:16])):
        with pytest.raises(CallError, match="argument C overlaps argument [AB] in memory"):
            f(*wrong)
    assert (x == before).all()
    m = np.ones((16, 16), "float32")
    matmul_kernel()(m, m, zeros(16, 16))                   # two inputs may be one


def test_a_workspace_without_memory_is_an_error():
    n, a = te.var("n"), te.placeholder((4,), name="A")
    wide = te.compute((n, 2**30, 4), lambda i, j, k: a[k] + 1.0, name="B")
    c = te.compute((4,), lambda k: wide[n - 1, 7, k], name="C")
    f = tw.build(te.create_schedule(c.op), [a, c, n], "llvm")
    for extent in (2**20, 2**31 - 1):                      # more than there is, more than 64 bits count
        with pytest.raises(CallError, match="there is no memory for B, n x 1073741824 x 4|there is no memory for B"):
            f(zeros(4), zeros(4), extent)


def test_an_executor_serves_several_threads():
    x, w = graph.placeholder("x"), graph.parameter("w", np.random.default_rng(0).random((8, 8), "float32"))
    executor = graph.Executor([graph.relu(graph.matmul(graph.matmul(x, w), w))])
    weights = w.data.numpy()

    def right(k):
        feed = np.full((k + 1, 8), k, "float32")
        wanted = np.maximum(feed @ weights @ weights, 0)
        return all(np.allclose(executor.run({x: feed})[0].numpy(), wanted, rtol=1e-4) for _ in range(40))
    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(right, range(6)))


def test_an_entry_under_another_key_is_no_entry(tmp_path):
    cache = ObjectCache(tmp_path / "objects", 1 << 20)
    first, second = "a" * 64, "b" * 64
    cache.put(first, b"one")
    (cache.folder / second[-2:]).mkdir()
    os.rename(cache.folder / first[-2:] / first, cache.folder / second[-2:] / second)
    assert cache.get(second) is None and cache.get(first) is None


PROGRAM = textwrap.dedent("""
    import numpy as np, tilewright as tw
    from tilewright import te
    a = te.placeholder((4,), name="A")
    c = te.compute((4,), lambda i: a[i] + 1.0, name="C")
    out = np.zeros(4, "float32")
    tw.build(te.create_schedule(c.op), [a, c], "llvm")(np.zeros(4, "float32"), out)
    print(out.sum())
""")


def program(folder, **variables):
    own = {k: v for k, v in os.environ.items() if not k.startswith("TILEWRIGHT_")}     # VERIFY would switch it off
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60,
                          env={**own, "TILEWRIGHT_CACHE_DIR": str(folder), **variables}, cwd="/")
    return done.stdout, done.stderr


def test_a_broken_cache_is_an_empty_cache(tmp_path):
    assert program(tmp_path / "cache")[0] == "4.0\n"
    entries = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert len(entries) >= 2
    contents = [p.read_bytes() for p in entries]
    for p, content in zip(entries, contents[1:] + contents[:1]):
        p.write_bytes(content)                             # whole entries in each other's places
    assert program(tmp_path / "cache") == ("4.0\n", "")
    for p in entries:
        p.write_bytes(p.read_bytes()[:-9])
    assert program(tmp_path / "cache") == ("4.0\n", "")


def test_a_cache_folder_that_is_a_file_is_no_cache(tmp_path):
    (tmp_path / "file").write_text("mine")
    assert program(tmp_path / "file") == ("4.0\n", "")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_misspelt_setting_is_told(tmp_path):
    out, err = program(tmp_path, TILEWRIGHT_NUM_THREAD="2")
    assert out == "" and re.search("did you mean TILEWRIGHT_NUM_THREADS", err)
