"""What functions take for granted of the sizes of a call: others are refused, by files too."""
import pickle

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.graph import BlockBuilder, size
from tilewright.graph.ir.regions import If, Loop
from tilewright.graph.ir.types import canonical
from tilewright.support.errors import CallError, GraphError, TilewrightError
from tilewright.te.conditions import Condition
from tilewright.tir import Cast

N, M = size("n"), size("m")


def zeros(*shape): return np.zeros(shape, "float32")


def function(body, *shapes):
    bb = BlockBuilder()
    params = [bb.param(name, shape) for name, shape in zip("xyz", shapes)]
    with bb.function("f", params):
        bb.emit_func_output(body(bb.emit_te, *params))
    return bb.get()["f"]


def at_least_one(x):
    """x, or one element where it has none."""
    return te.compute((te.max(x.shape[0], 1),), lambda i: te.if_then_else(i < x.shape[0], x[i], 7.0))


def first_rows(x, y):
    return te.compute((x.shape[0] - y.shape[0],), lambda i: x[i])


CASES = {
    "to another size": (lambda emit, x, y: emit(topi.add, emit(topi.reshape, x, (M,)), y), [(N,), (M,)],
                        [(3, 3), (0, 0)], [((3, 5), "a reshape of float32.n. to float32.m. changes the number")]),
    "as a result": (lambda emit, x, y: [emit(topi.reshape, x, (M,)), y], [(N,), (M,)],
                    [(3, 3)], [((3, 5), "a reshape of float32.n. to float32.m."), ((5, 3), "a reshape of")]),
    "odd": (lambda emit, x: emit(topi.exp, emit(topi.reshape, x, (-1, 2))), [(N,)],
            [(4,), (0,)], [((5,), "a reshape of float32.n. to float32.n // 2, 2.")]),
    "quotient": (lambda emit, x, y: [emit(topi.reshape, x, (M, -1)), y], [(N,), (M,)],
                 [(6, 2), (0, 3), (0, 0)], [((6, 4), "a reshape"), ((6, 0), "a reshape|expected 6")]),
    "negative": (lambda emit, x, y: emit(topi.exp, emit(first_rows, x, y)), [(N,), (M,)],
                 [(5, 3), (3, 3)], [((3, 5), "the extent n - m is negative|expected -2")]),
    "parts": (lambda emit, x: emit(topi.split, x, 2), [(N,)],
              [(4,), (0,)], [((5,), "split: extent 0 of the shape .n,. is n, no multiple of 2")]),
    "ones": (lambda emit, x: emit(topi.squeeze, x), [(N,)],
             [(4,), (0,)], [((1,), "squeeze: the extent n of the shape .n,. is 1, and stays")]),
    "places": (lambda emit, x: emit(topi.argmax, emit(topi.reshape, x, (1, -1)), axis=1, keepdims=True), [(N,)],
               [(3,), (1,)], [((0,), "argmax: there is no element along an axis, of the extent n")]),
    "none": (lambda emit, x: emit(at_least_one, x), [(N,)], [(3,), (1,)],
             [((0,), "makes T.max.n, 1. along a dimension of its result, and n is expected|expected 0")])}


@pytest.mark.parametrize("name", CASES)
def test_sizes_that_do_not_fit_are_refused(name, tmp_path):
    body, shapes, fitting, refused = CASES[name]
    run = tw.compile(function(body, *shapes))
    run.export(tmp_path / "f.o")
    for call, error in ((run, GraphError), (pickle.loads(pickle.dumps(run)), GraphError),
                        (tw.load(tmp_path / "f.o"), CallError)):
        for sizes in fitting:
            made = call(*map(zeros, sizes))
            first = made[0] if isinstance(made, tuple) else made
            wanted = {"quotient": (sizes[-1], sizes[0] // max(sizes[-1], 1)), "odd": (sizes[0] // 2, 2),
                      "places": (1, 1), "parts": (sizes[0] // 2,),
                      "negative": (sizes[0] - sizes[-1],)}.get(name, (sizes[0],))
            assert first.shape == wanted
        for sizes, message in refused:
            with pytest.raises(error, match=message):
                call(*map(zeros, sizes))


def test_two_small_sizes_of_which_none_alone_is_too_small(tmp_path):
    def body(emit, past, new):
        return emit(topi.strided_slice, emit(topi.concatenate, [past, new], axis=0), begin=[-2], end=[None], axes=[0])
    run = tw.compile(function(body, (N, 3), (M, 3)))
    run.export(tmp_path / "f.o")
    for call, error in ((run, GraphError), (tw.load(tmp_path / "f.o"), CallError)):
        for n, m in ((3, 1), (0, 2), (2, 0), (1, 1), (0, 5)):
            past, new = (np.arange(k * 3, dtype="float32").reshape(k, 3) + k for k in (n, m))
            np.testing.assert_array_equal(call(past, new), np.concatenate([past, new])[-2:])
        for n, m in ((0, 1), (1, 0), (0, 0)):
            with pytest.raises(error, match="along a dimension of its result, and 2 is expected there|expected"):
                call(zeros(n, 3), zeros(m, 3))


def test_sizes_and_extents_beyond_int32_are_refused(tmp_path):
    run = tw.compile(function(lambda emit, x: emit(topi.concatenate, [x] * 4, axis=0), (N, 0)))
    run.export(tmp_path / "f.o")
    for call in (run, tw.load(tmp_path / "f.o")):
        assert call(zeros(5, 0)).shape == (20, 0)
        with pytest.raises(CallError, match="the extent n . 4 is more than int32 holds|expected 4294967300"):
            call(zeros(2**30 + 1, 0))
        with pytest.raises(CallError, match="the size n is 2147483648, and at most 2146435072"):
            call(zeros(2**31, 0))


def test_what_is_known_of_sizes_is_no_condition():
    def body(emit, x):
        halves = emit(topi.reshape, emit(topi.reshape, x, (N * 4,)), (2 * N, 2))
        return emit(topi.strided_slice, halves, begin=(1,), end=(2 * N,), axes=(0,))
    run = tw.compile(function(body, (N, 4)))
    assert [c.text for c in run.plan.conditions if "int32" not in c.text] == ["the extent n * 2 - 1 is negative"]
    assert not tw.compile(function(lambda emit, x: emit(topi.reshape, x, (2, 6)), (3, 4))).plan.conditions


def test_conditions_of_a_branch():
    same = function(lambda emit, x: emit(topi.exp, x), (N,))
    pairs = function(lambda emit, x: emit(topi.reshape, emit(topi.reshape, x, (N // 2, 2)), (N,)), (N,))
    bb = BlockBuilder()
    flag, x = bb.param("flag", (), "bool"), bb.param("x", (N,))
    with bb.function("main", [flag, x]):
        bb.emit_func_output(bb.emit_call(If(pairs, same), [flag, x]))
    run = tw.compile(bb.get()["main"])
    assert run(np.array(True), zeros(4)).shape == (4,) and run(np.array(False), zeros(5)).shape == (5,)
    with pytest.raises(GraphError, match="f: a reshape of float32.n. to float32.n // 2, 2. changes"):
        run(np.array(True), zeros(5))


def test_what_rules_state_of_sizes_is_stated_once_and_not_of_what_is_known():
    def body(emit, x):
        parts = emit(topi.split, emit(topi.concatenate, [x, x]), 2)
        return emit(topi.add, *emit(topi.split, parts[0], 3)[:2]), emit(topi.split, parts[1], 3)[2]
    run = tw.compile(function(body, (N,)))
    assert [c.text for c in run.plan.conditions if "int32" not in c.text] == [
        "split: extent 0 of the shape (n,) is n, no multiple of 3"]


@pytest.mark.parametrize("rule, shape, fitting, refused", [
    (lambda x: topi.space_to_depth(x, block=2), (1, 2, N, 4), 6, 5),
    (lambda x: topi.depth_to_space(x, block=2), (1, N, 2, 2), 8, 6),
    (lambda x: topi.channel_shuffle(x, groups=2, axis=0), (N,), 4, 5),
    (lambda x: topi.group_norm(x, groups=2), (1, N, 3), 4, 5)])
def test_extents_that_do_not_divide(rule, shape, fitting, refused):
    run = tw.compile(function(lambda emit, x: emit(rule, x), shape))
    run(zeros(*(fitting if d is N else d for d in shape)))
    with pytest.raises(GraphError, match=f"is n, no multiple of [24] where n = {refused}"):
        run(zeros(*(refused if d is N else d for d in shape)))


@pytest.mark.parametrize("body, reference", [
    (lambda emit, x, y: emit(topi.multiply, emit(topi.strided_slice, x, begin=[-1], end=[None], axes=[0]), x),
     lambda x, y: x[-1:] * x),
    (lambda emit, x, y: emit(topi.add, emit(topi.strided_slice, x, begin=[0], end=[1], axes=[0]), y),
     lambda x, y: x[:1] + y),
    (lambda emit, x, y: emit(topi.broadcast_to, emit(topi.strided_slice, x, begin=[0], end=[1], axes=[0]), (4, 3)),
     lambda x, y: np.broadcast_to(x[:1], (4, 3)))], ids=["times the last", "plus the first", "repeated"])
def test_a_row_of_which_readers_take_for_granted_that_it_is_one(body, reference):
    run = tw.compile(function(body, (N, 3), (M, 3)))
    for n, m in ((4, 2), (1, 5), (3, 0)):
        x, y = (np.arange(k * 3, dtype="float32").reshape(k, 3) + 1 for k in (n, m))
        np.testing.assert_array_equal(run(x, y), reference(x, y))
    with pytest.raises(GraphError, match="along a dimension of its result, and 1 is expected there where n = 0"):
        run(zeros(0, 3), zeros(2, 3))


def test_conditions_of_a_function_that_is_called():
    bb = BlockBuilder()
    x, y = bb.param("x", (N,)), bb.param("y", (N,))
    with bb.function("inner", [x]):
        bb.emit_func_output(bb.emit_te(topi.reshape, bb.emit_te(topi.reshape, x, (N // 2, 2)), (N,)))
    inner = bb.get()["inner"]
    inner = inner.replace(attrs={**inner.attrs, "conditions": (Condition(N >= 3, "inner takes at least 3"),)})
    with bb.function("outer", [y]):
        bb.emit_func_output(bb.emit_call(inner, [y]))
    run = tw.compile(bb.get()["outer"])
    assert run(zeros(4)).shape == (4,)
    with pytest.raises(GraphError, match="inner takes at least 3"):
        run(zeros(2))


def test_sums_of_sizes_in_another_order():
    def both(first):
        def body(emit, x, y):
            return emit(topi.concatenate, [x, y] if first else [y, x], axis=0)
        return function(body, (N,), (M,))
    bb = BlockBuilder()
    flag, x, y = bb.param("flag", (), "bool"), bb.param("x", (N,)), bb.param("y", (M,))
    with bb.function("main", [flag, x, y]):
        bb.emit_func_output(bb.emit_call(If(both(True), both(False)), [flag, x, y]))
    run = tw.compile(bb.get()["main"])
    a, b = np.arange(2, dtype="float32"), np.arange(3, dtype="float32") + 7
    assert run(np.array(True), a, b).numpy().tolist() == [0, 1, 7, 8, 9]
    assert run(np.array(False), a, b).numpy().tolist() == [7, 8, 9, 0, 1]


def test_a_loop_of_a_file_ends_where_its_body_fails(tmp_path):
    def body(emit, s, x):
        place = emit(topi.astype, emit(topi.argmax, x, axis=0), "float32")
        return [emit(lambda s: te.compute((), lambda: s() < 2), s), emit(topi.add, x, place)]
    bb = BlockBuilder()
    s, x = bb.param("s", (), "int64"), bb.param("x", (N, 3))
    with bb.function("turn", [s, x]):
        bb.emit_func_output(body(bb.emit_te, s, x))
    count, y = bb.param("count", (), "int64"), bb.param("y", (N, 3))
    with bb.function("main", [count, y]):
        start = bb.const(np.array(True))
        bb.emit_func_output(list(bb.emit_call(Loop(bb.functions["turn"], 1), [count, start, y])))
    run = tw.compile(bb.get()["main"])
    run.export(tmp_path / "f.o")
    many = np.array(2**62)
    for call, error in ((run, TilewrightError), (tw.load(tmp_path / "f.o"), CallError)):
        np.testing.assert_array_equal(call(many, zeros(2, 3)), zeros(2, 3))
        with pytest.raises(error):
            call(many, zeros(0, 3))


def test_sums_of_sizes_are_written_in_one_way():
    wide = [Cast("int64", v) for v in (N, M)]
    for made, text in ((9 - N - M, "9 - m - n"), (N * 2 - 1, "n * 2 - 1"), (N + M, "m + n"), (0 - M + N, "n - m"),
                       (wide[0] * 2 - wide[1], 'T.Cast("int64", n) * T.int64(2) - T.Cast("int64", m)')):
        assert str(canonical(made)) == str(canonical(canonical(made))) == text
