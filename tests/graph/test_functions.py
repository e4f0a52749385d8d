"""Functions of typed values: made by BlockBuilder, compiled for all sizes, run."""
import copy
import json
import pickle
import threading

import numpy as np
import pytest

import tilewright
from tilewright import te, topi
from tilewright.graph.compile import build_function
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.types import TensorType, size
from tilewright.graph.ir.values import check_function
from tilewright.graph.plan.profiling import share_of_limit
from tilewright.support.errors import CallError, GraphError, TilewrightError

RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.standard_normal(shape).astype("float32")


def network(n):
    """Two layers with a softmax, and the arrays of it."""
    w, b, v = array(20, 16), array(16), array(16, 5)
    bb = BlockBuilder()
    x = bb.param("x", (n, 20))
    with bb.function("main", [x]):
        h = bb.emit_te(topi.relu, bb.emit_te(topi.add, bb.emit_te(topi.matmul, x, bb.const(w)), bb.const(b)))
        parts = bb.emit_te(topi.reshape, h, (-1, 2, 8))
        h = bb.emit_te(topi.reshape, bb.emit_te(topi.multiply, parts, 2.0), (n, 16))
        bb.emit_func_output(bb.emit_te(topi.softmax, bb.emit_te(topi.matmul, h, bb.const(v)), axis=-1))

    def reference(x):
        z = 2 * np.maximum(x.astype("float64") @ w + b, 0) @ v
        e = np.exp(z - z.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)
    return bb.get()["main"], reference


def test_one_build_serves_every_size():
    function, reference = network(size("n"))
    check_function(function)
    assert [str(v.type) for v in function.results] == ["float32[n, 5]"]
    run = build_function(function)
    for n in (3, 1, 17, 3):
        x = array(n, 20)
        np.testing.assert_allclose(np.asarray(run(x)), reference(x), atol=1e-5)


def test_constant_sizes():
    function, reference = network(6)
    x = array(6, 20)
    np.testing.assert_allclose(np.asarray(build_function(function)(x)), reference(x), atol=1e-5)


def test_results_have_memory_of_their_own():
    bb = BlockBuilder()
    x = bb.param("x", (3, 4))
    with bb.function("main", [x]):
        y = bb.emit_te(topi.exp, x)
        flat = bb.emit_te(topi.reshape, y, (12,))
        bb.emit_func_output([x, y, flat, bb.const(np.arange(3))])
    given = array(3, 4)
    first, second, third, fourth = build_function(bb.get()["main"])(given)
    np.testing.assert_array_equal(np.asarray(first), given)
    np.testing.assert_allclose(np.asarray(second), np.exp(given), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(third), np.exp(given).ravel(), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(fourth), [0, 1, 2])
    assert len({t.data_ptr for t in (first, second, third)}) == 3


def test_rules_of_programs_are_operators():
    def twice_and_sum(x, y):
        k = te.reduce_axis((0, x.shape[1]), name="k")
        total = te.compute((x.shape[0],), lambda i: te.sum(x[i, k], axis=k), name="total")
        return te.compute(x.shape, lambda i, j: x[i, j] * 2.0 + y[j], name="twice"), total

    bb = BlockBuilder()
    x, y = bb.param("x", (size("n"), 7)), bb.param("y", (7,))
    with bb.function("main", [x, y]):
        a, b = bb.emit_te(twice_and_sum, x, y)
        bb.emit_func_output([bb.emit_te(topi.tanh, a), b])
    run = build_function(bb.get()["main"])
    p, q = array(5, 7), array(7)
    r, s = run(p, q)
    np.testing.assert_allclose(np.asarray(r), np.tanh(p * 2 + q), atol=1e-6)
    np.testing.assert_allclose(np.asarray(s), p.sum(1), atol=1e-5)


def test_threads_run_side_by_side():
    function, reference = network(size("n"))
    run = build_function(function)
    inputs = [array(n, 20) for n in (1, 4, 9, 30)]
    got = [None] * len(inputs)

    def work(k):
        for _ in range(20):
            got[k] = np.asarray(run(inputs[k]))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(inputs))]
    for t in threads: t.start()
    for t in threads: t.join()
    for x, y in zip(inputs, got):
        np.testing.assert_allclose(y, reference(x), atol=1e-5)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_an_index_outside_raises_and_the_next_run_is_right(target):
    bb = BlockBuilder()
    table, at = bb.param("table", (10, 4)), bb.param("at", (size("n"),), "int64")
    with bb.function("main", [table, at]):
        bb.emit_func_output(bb.emit_te(topi.take, table, at, axis=0))
    run = build_function(bb.get()["main"], target)
    values = array(10, 4)
    with pytest.raises(CallError, match=r"99 of in0 .*\n\nhint: the kernel is take, in0 is table, in1 is at"):
        run(values, np.array([1, 99]))
    np.testing.assert_array_equal(np.asarray(run(values, np.array([3, 0, 9]))), values[[3, 0, 9]])


@pytest.mark.parametrize("given, message", [
    ((np.zeros((3, 19), "float32"),), "shape"),
    ((np.zeros((3, 20), "float64"),), "float64"),
    ((np.zeros((20,), "float32"),), "shape"),
    ((np.float32(1),), r"shape \(\)"),
    (([1.0],), "pass a Tensor"),
    ((), "0 are given"),
])
def test_arguments_that_do_not_fit(given, message):
    run = build_function(network(size("n"))[0])
    with pytest.raises(GraphError, match=message):
        run(*given)


def test_arguments_by_name():
    bb = BlockBuilder()
    a, b = bb.param("a", (3,)), bb.param("b", (3,))
    with bb.function("main", [a, b]):
        bb.emit_func_output(bb.emit_te(topi.subtract, a, b))
    run = build_function(bb.get()["main"])
    x, y = array(3), array(3)
    for made in (run(b=y, a=x), run(x, b=y)):
        np.testing.assert_array_equal(np.asarray(made), x - y)
    for given, named, message in (((x,), {"c": y}, "no parameter 'c'"), ((x,), {"a": y}, "given twice"),
                                  ((), {"b": y}, "a is not given")):
        with pytest.raises(GraphError, match=message):
            run(*given, **named)


def test_refusals_while_a_function_is_made():
    bb = BlockBuilder()
    x = bb.param("x", (3, 4))
    with pytest.raises(GraphError, match="no function is open"):
        bb.emit_te(topi.relu, x)
    with pytest.raises(GraphError, match="without a result"):
        with bb.function("f", [x]):
            bb.emit_te(topi.relu, x)
    y = bb.param("y", (3, 4))
    with pytest.raises(TilewrightError, match=r"topi.matmul\(float32\[3, 4\], float32\[3, 4\]\)"):
        with bb.function("g", [x, y]):
            bb.emit_te(topi.matmul, x, y)
    assert bb.get() == {}


def test_types_are_equal_where_extents_are():
    n = size("n")
    assert size("n") is n
    assert TensorType.of((n * 2, 3)) == TensorType.of((n + n, 3)) != TensorType.of((n, 3))
    assert TensorType.of((n * 2 - n, 4)).shape[0] is n
    with pytest.raises(GraphError, match="negative"):
        TensorType.of((-1,))


def test_a_profile_names_each_kernel(tmp_path):
    run = build_function(network(size("n"))[0])
    found = tilewright.profile(run, array(9, 20))
    assert len(found.kernels) == len(run.plan.steps) and found.seconds > 0
    assert found.kernels[0].operations >= 2 * 9 * 20 * 16
    assert "matmul" in str(found) and "of the limit" in str(found)
    found.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [e["name"] for e in events] == [k.name for k in found.kernels]



def test_bytes_from_the_cache_are_no_share_of_what_memory_gives():
    assert share_of_limit(None, 1e11, 5e9, 1e10) == 0.5 and share_of_limit(2e10, 1e11, 5e9, 1e10) == 0.5
    assert share_of_limit(2e10, 1e11, 5e10, 1e10) == 0.2 and share_of_limit(2e11, 1e11, 5e9, 1e10) == 2.0
    assert share_of_limit(None, 1e11, 5e10, 1e10) is None and share_of_limit(2e10, None, 5e10, 1e10) is None


def test_models_are_pickled_and_copied():
    function, reference = network(size("n"))
    run = build_function(function)
    x = array(4, 20)
    for other in (pickle.loads(pickle.dumps(run)), copy.deepcopy(run)):
        np.testing.assert_allclose(np.asarray(other(x)), reference(x), atol=1e-5)


class CopiesInItsOrder(np.ndarray):
    def copy(self, order="K"):
        return np.array(self, order=order, subok=True)


def test_arrays_of_all_layouts():
    function, reference = network(size("n"))
    run = build_function(function)
    x = array(20, 8)
    unaligned = np.frombuffer(b"-" + x.T.tobytes(), "float32", offset=1, count=160).reshape(8, 20)
    for given in (x.T, x.T[::-2], unaligned, np.broadcast_to(x.T[0], (3, 20)), x.T.view(CopiesInItsOrder)):
        np.testing.assert_allclose(np.asarray(run(given)), reference(given), atol=1e-5)
    assert run(np.zeros((0, 20), "float32")).shape == (0, 5)


def test_sizes_in_attributes_are_no_constants():
    n = size("n")

    def rows(extent):
        return te.compute((1,), lambda i: extent.astype("int64"), name="rows")
    bb = BlockBuilder()
    x = bb.param("x", (n, 2))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(topi.multiply, bb.emit_te(rows, n * 2), 3))
    run = build_function(bb.get()["main"])
    for k in (4, 5):
        np.testing.assert_array_equal(np.asarray(run(array(k, 2))), [6 * k])


def test_variables_of_te_are_sizes_of_their_names():
    runs = []
    for n in (te.var("rows"), te.var("rows"), te.var("rows", "int64")):
        bb = BlockBuilder()
        x, y = bb.param("x", (n, 4)), bb.param("y", (te.var("rows"), 4))
        with bb.function("main", [x, y]):
            bb.emit_func_output(bb.emit_te(topi.reshape, bb.emit_te(topi.add, x, y), (n * 4,)))
        assert bb.get()["main"].sizes == (size("rows"),)
        runs.append(build_function(bb.get()["main"]))
    x = array(3, 4)
    for run in runs:
        np.testing.assert_allclose(np.asarray(run(x, x)), 2 * x.reshape(-1))
        with pytest.raises(GraphError, match="y has the shape"):
            run(x, array(2, 4))


def gathered(packed):
    """Elements of x, handed on by a packed function."""
    bb = BlockBuilder()
    x, index = bb.param("x", (1000,)), bb.param("index", (size("n"),), "int64")
    with bb.function("main", [x, index]):
        taken = bb.emit_te(topi.take, x, index, axis=0)
        bb.emit_func_output(bb.call_packed(packed, [taken], [taken.type]))
    return build_function(bb.get()["main"])


def test_a_run_beside_one_with_a_wrong_index():
    """What a kernel says is of its own run: that goes on when the other one has ended."""
    met, ended = threading.Event(), threading.Event()

    def hand_on(x, y):
        if threading.current_thread() is beside:
            met.set()
            ended.wait(60)
        y.copyfrom(x)
    tilewright.register_func("test_functions.hand_on", hand_on, override=True)
    run, a, said = gathered("test_functions.hand_on"), array(1000), []

    def wrong():
        try:
            run(a, np.array([5000]))
        except CallError as error:
            said.append(str(error))
    beside = threading.Thread(target=wrong)
    beside.start()
    assert met.wait(60)
    np.testing.assert_array_equal(np.asarray(run(a, np.array([5]))), a[5:6])
    ended.set()
    beside.join()
    assert len(said) == 1 and "is outside of its 1000 elements" in said[0]


def test_what_a_run_that_failed_left_is_not_said_of_the_next():
    """A packed function raises behind a kernel that met a wrong index."""
    def refuse(x, y):
        raise ValueError("no")
    tilewright.register_func("test_functions.refuse", refuse, override=True)
    run, a = gathered("test_functions.refuse"), array(1000)
    with pytest.raises(ValueError, match="no"):
        run(a, np.array([5000]))
    tilewright.register_func("test_functions.refuse", lambda x, y: y.copyfrom(x), override=True)
    np.testing.assert_array_equal(np.asarray(run(a, np.array([5]))), a[5:6])


def test_functions_that_call_functions():
    n = size("n")
    bb = BlockBuilder()
    x, y = bb.param("x", (n, 3)), bb.param("y", (n, 3))
    with bb.function("twice", [x, y]):
        total = bb.emit_te(topi.add, x, y)
        bb.emit_func_output([total, x, total])
    twice = bb.get()["twice"]
    z = bb.param("z", (n, 3))
    with bb.function("outer", [z]):
        total, again, _ = bb.emit_call(twice, [z, bb.emit_te(topi.exp, z)])
        bb.emit_func_output(bb.emit_te(topi.multiply, total, again))
    w = bb.param("w", (n, 3))
    with bb.function("main", [w]):
        first, = bb.emit_call(bb.get()["outer"], [w])
        bb.emit_func_output([*bb.emit_call(twice, [first, w]), *bb.emit_call(twice, [w, w])])
    main = bb.get()["main"]
    x = array(2, 3)
    first = (x + np.exp(x)) * x
    for got, wanted in zip(build_function(main)(x), (first + x, first, first + x, 2 * x, x, 2 * x), strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-5)
    assert tilewright.bisect(main, x) is None
    with bb.function("counts", [w]):
        bb.emit_func_output([], updates={w: bb.emit_te(topi.exp, w)})
    for inputs, message in (([w], "counts updates w, and calls have no effects"), ([w, w], "counts updates w")):
        with pytest.raises(GraphError, match=message), bb.function(f"bad{len(inputs)}", [w]):
            bb.emit_call(bb.get()["counts"], inputs)
    with pytest.raises(GraphError, match="twice takes 2 input"), bb.function("few", [w]):
        bb.emit_call(twice, [w])


def test_calls_that_give_nothing():
    bb = BlockBuilder()
    x = bb.param("x", (3,))
    with pytest.raises(GraphError, match="says: the call has no results"), bb.function("packed", [x]):
        bb.call_packed("says", [x], [])
    with pytest.raises(GraphError, match="emit_te: te.nothing gives no tensor"), bb.function("rule", [x]):
        def nothing(x): return ()
        bb.emit_te(nothing, x)


def test_names_of_parameters_that_methods_have():
    bb = BlockBuilder()
    own, others = bb.param("self", (3,)), bb.param("arguments", (3,))
    with bb.function("main", [own, others]):
        bb.emit_func_output(bb.emit_te(topi.subtract, own, others))
    a, b = array(3), array(3)
    run = build_function(bb.get()["main"])
    np.testing.assert_array_equal(np.asarray(run(arguments=b, self=a)), a - b)
    assert [k.operators for k in tilewright.profile(run, arguments=b, self=a).kernels] == [("topi.subtract",)]


def test_constants_are_what_arrays_held():
    w, shared = np.ones(4, "float32"), np.ones(4, "float32")
    bb = BlockBuilder()
    x = bb.param("x", (4,))
    with bb.function("main", [x]):
        value = bb.const(shared, share=True)
        bb.emit_func_output([bb.emit_te(topi.multiply, x, bb.const(w)), bb.emit_te(topi.multiply, x, value)])
    assert value.data is not None and np.shares_memory(value.data, shared)
    w[:] = 3
    run = build_function(bb.get()["main"])
    w[:] = 5
    np.testing.assert_array_equal(run(np.ones(4, "float32"))[0].numpy(), 1)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
def test_copies_of_functions_have_the_same_sizes(again):
    n = size("n")
    bb = BlockBuilder()
    x = bb.param("x", (n, 2))
    with bb.function("flat", [x]):
        bb.emit_func_output(bb.emit_te(topi.reshape, bb.emit_te(topi.exp, x), (n * 2,)))
    made = again(bb.get()["flat"])
    assert made.params[0].shape[0] is n and made.sizes == (n,)
    y = bb.param("y", (n, 2))
    with bb.function("main", [y]):
        bb.emit_func_output(bb.emit_te(topi.add, *bb.emit_call(made, [y]), *bb.emit_call(made, [y])))
    a = array(3, 2)
    np.testing.assert_allclose(np.asarray(build_function(bb.get()["main"])(a)), 2 * np.exp(a).reshape(-1), rtol=1e-5)


@pytest.mark.parametrize("first, second", [("T", "T_1"), ("T_1", "T"), ("lambda", "_lambda"), ("R", "R_1")])
def test_sizes_that_texts_show_alike(first, second):
    bb = BlockBuilder()
    x, y = bb.param("x", (size(first),)), bb.param("y", (size(second),))
    assert x.type != y.type
    with bb.function("main", [x, y]):
        rows = [bb.emit_te(topi.reshape, v, (v.shape[0], 1)) for v in (x, y)]
        bb.emit_func_output([bb.emit_te(topi.softmax, v, axis=0) for v in (x, y, *rows)])
    run = build_function(bb.get()["main"])
    a, b = array(3), array(5)
    for got, given in zip(run(a, b), (a, b, a[:, None], b[:, None]), strict=True):
        wanted = np.exp(given.astype("float64"))
        np.testing.assert_allclose(np.asarray(got), wanted / wanted.sum(), rtol=1e-5)


def test_functions_that_cannot_be_built():
    bb = BlockBuilder()
    x, same = bb.param("x", (3,)), bb.param("x", (3,))
    with bb.function("unbound", [x]):
        bb.emit_func_output(bb.emit_te(topi.broadcast_to, x, (size("n"), 3)))
    with pytest.raises(GraphError, match="unbound: the size n is an extent of no parameter"):
        build_function(bb.get()["unbound"])
    with bb.function("alike", [x, same]):
        bb.emit_func_output(bb.emit_te(topi.subtract, x, same))
    run, a = build_function(bb.get()["alike"]), array(3)
    np.testing.assert_array_equal(np.asarray(run(a, 2 * a)), -a)
    with pytest.raises(GraphError, match="alike: 2 parameters are named 'x'"):
        run(x=a)
    with pytest.raises(GraphError, match=r"function\('bad'\): 3 is not a parameter"), bb.function("bad", [3]):
        pass
    with pytest.raises(GraphError, match="'float32' is not the type of a result"), bb.function("packed", [x]):
        bb.call_packed("f", [x], ["float32"])
