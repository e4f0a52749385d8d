"""Functions that update parameters: order, places in memory, what is given, files."""
import numpy as np
import pytest

import tilewright as tw
from tilewright import nd, te, topi
from tilewright.graph import BlockBuilder, size
from tilewright.graph.compile import build_function, lowered
from tilewright.graph.ir.regions import If
from tilewright.graph.ir.types import TensorType
from tilewright.graph.plan.plan import ARENA
from tilewright.script import from_source
from tilewright.support.errors import CallError, GraphError

RNG = np.random.default_rng(2)


def array(*shape): return RNG.standard_normal(shape).astype("float32")


def function(body, **shapes):
    """The function of parameters of some shapes whose (results, updates) are what body(emit, *params) gives."""
    bb = BlockBuilder()
    params = [BlockBuilder.param(name, shape) for name, shape in shapes.items()]
    with bb.function("step", params):
        results, updates = body(bb.emit_te, *params)
        bb.emit_func_output(results, updates=updates)
    return bb.get()["step"]


def names(run): return [k.name.rpartition("_")[0] for k in run.kernels]


def descent():
    """A step of a linear layer."""
    def body(emit, x, w, rate):
        y = emit(topi.matmul, x, w)
        g = emit(topi.matmul, x, y, transpose_a=True)
        return y, {w: emit(topi.subtract, w, emit(topi.multiply, g, rate))}
    return function(body, x=(size("n"), 5), w=(5, 3), rate=())


def follow(w, x, rate):
    y = x.astype("float64") @ w
    return y, w - rate * (x.T.astype("float64") @ y)


def test_new_values_are_written_over_old_ones():
    run = build_function(descent())
    assert names(run) == ["matmul", "matmul_multiply_subtract"]
    assert not any(s.kind == ARENA for s in run.plan.slots)
    with pytest.raises(GraphError, match="step: the plan of memory depends on the sizes of each call"):
        _ = run.memory
    w = array(5, 3)
    held = nd.array(w)
    for rows in (7, 1, 40):
        x = array(rows, 5)
        y, w = follow(w, x, 0.01)
        np.testing.assert_allclose(run(x, held, np.float32(0.01)).numpy(), y, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(held.numpy(), w, rtol=1e-4, atol=1e-4)


def test_readers_of_the_old_value_run_first():
    """The update is asked for before the results that read what it replaces."""
    def body(emit, p, q):
        moved = emit(topi.add, p, q)
        wide = emit(topi.matmul, moved, moved)
        return [wide, emit(topi.matmul, p, p), p], {p: moved}
    run = build_function(function(body, p=(4, 4), q=(4, 4)))
    a, b = array(4, 4), array(4, 4)
    p = nd.array(a)
    wide, old, same = (t.numpy() for t in run(p, b))
    np.testing.assert_allclose(wide, (a + b) @ (a + b), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(old, a @ a, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(same, a)
    np.testing.assert_array_equal(p.numpy(), a + b)
    assert names(run).index("add") > max(k for k, n in enumerate(names(run)) if n == "copy")


def test_parameters_that_take_each_others_values():
    def body(emit, p, q):
        return [], {p: emit(topi.multiply, q, 2.0), q: emit(topi.multiply, p, 3.0)}
    run = build_function(function(body, p=(5, 5), q=(5, 5)))
    assert names(run) == ["multiply", "multiply", "copy", "copy"]
    a, b = array(5, 5), array(5, 5)
    p, q = nd.array(a), nd.array(b)
    for _ in range(2):
        assert run(p, q) == ()
        a, b = b * 2, a * 3
        np.testing.assert_array_equal(p.numpy(), a)
        np.testing.assert_array_equal(q.numpy(), b)


@pytest.mark.parametrize("shape", [(5, 5), (3, 5, 5)])
def test_what_reads_other_elements_than_it_writes_is_made_elsewhere(shape):
    run = build_function(function(lambda emit, p: ([], {p: emit(topi.matmul, p, p)}), p=shape))
    assert names(run) == ["matmul", "copy"]
    a = array(*shape)
    p = nd.array(a)
    run(p)
    np.testing.assert_allclose(p.numpy(), a.astype("float64") @ a, rtol=1e-4, atol=1e-5)


def test_a_parameter_that_is_read_through_a_view_as_well():
    """Element i is read where it is written, and, through the view, elsewhere too."""
    def body(emit, p):
        turned = emit(topi.transpose, emit(topi.reshape, emit(topi.reshape, p, (2, 8)), (4, 4)), (1, 0))
        return [], {p: emit(topi.add, p, turned)}
    run = build_function(function(body, p=(4, 4)))
    a = array(4, 4)
    p = nd.array(a)
    run(p)
    np.testing.assert_array_equal(p.numpy(), a + a.T)


def test_values_that_are_asked_for_several_times():
    """A result that is an update, updates by one value, by a view, a parameter, a constant, and by nothing new."""
    ones = BlockBuilder.const(np.ones(6, "float32"))

    def body(emit, p, q, r, s, t, u):
        moved = emit(topi.add, p, q)
        flat = emit(topi.reshape, emit(topi.tanh, emit(topi.reshape, t, (2, 3))), (6,))
        return [moved, moved, r], {p: moved, q: moved, r: s, s: ones, t: flat, u: u}
    step = function(body, **dict.fromkeys("pqrstu", (6,)))
    arrays = [array(6) for _ in range(6)]
    tensors = [nd.array(a) for a in arrays]
    first, second, third = build_function(step)(*tensors)
    p, q, r, s, t, u = arrays
    wanted = p + q, p + q, r, p + q, p + q, s, np.ones(6), np.tanh(t), u
    for got, want in zip((first, second, third, *tensors), wanted):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


def test_held_parameters_are_no_arguments():
    step = descent()
    _, w, rate = step.params
    start, x = array(5, 3), array(8, 5)
    held = {rate: nd.array(np.float32(0.01)), w: nd.array(start)}
    run = lowered(step, tw.target(), held)
    assert [name for name, _ in run.plan.params] == ["x"] and "held" in str(run)
    want = start
    for _ in range(2):
        y, want = follow(want, x, 0.01)
        np.testing.assert_allclose(run(x).numpy(), y, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(held[w].numpy(), want, rtol=1e-4, atol=1e-4)
    with pytest.raises(GraphError, match="cannot be exported: it holds w"):
        run.module()


def test_a_step_in_a_file(tmp_path):
    """Programs give it the parameters that it updates; `tw.load` knows them from results."""
    build_function(descent()).export(tmp_path / "step.so")
    step, model = tw.load_module(tmp_path / "step.so"), tw.load(tmp_path / "step.so")
    w, x, rate = array(5, 3), array(8, 5), nd.array(np.float32(0.01))
    held, y = nd.array(w), nd.empty((8, 3))
    step(x, held, rate, y)
    for got in (y, lambda: model(x, held, rate)):
        got = got() if callable(got) else got
        want, w = follow(w, x, 0.01)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(held.numpy(), w, rtol=1e-4, atol=1e-4)
    with pytest.raises(CallError, match="step: w is updated in place, and what is given is read-only"):
        model(x, READ_ONLY, rate)


def test_a_step_without_results_in_a_file(tmp_path):
    run = build_function(function(lambda emit, p, q: ([], {p: emit(topi.add, p, q)}), p=(3,), q=(3,)))
    run.export(tmp_path / "step.so")
    p, q = nd.array(array(3)), nd.array(array(3))
    want = p.numpy() + q.numpy()
    assert tw.load(tmp_path / "step.so")(p, q) == ()
    np.testing.assert_array_equal(p.numpy(), want)


def test_what_shares_memory_with_an_updated_parameter_is_copied():
    run = build_function(function(lambda emit, p, x: (emit(topi.matmul, x, x), {p: emit(topi.add, p, x)}),
                                  p=(3, 3), x=(3, 3)))
    a = array(3, 3)
    p = nd.array(a)
    np.testing.assert_allclose(run(p, p).numpy(), a @ a, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(p.numpy(), a + a)


def test_updates_are_printed_and_read():
    step = descent()
    assert "R.update(w, " in str(step)
    simple = function(lambda emit, p: (p, {p: p}), p=(3,))
    again = from_source(str(simple))
    assert list(again.updates.items()) == [(again.params[0], again.params[0])]


READ_ONLY = np.zeros((5, 3), "float32")
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize("given, why", [
    (READ_ONLY, "read-only"), (np.zeros((3, 5), "float32").T, r"not contiguous: shape \(5, 3\), strides \(4, 20\)"),
    (np.zeros(61, "uint8")[1:].view("float32").reshape(5, 3), r"at an address that is no multiple of 4")])
def test_what_cannot_be_updated_in_place_is_refused(given, why, tmp_path):
    run = build_function(function(lambda emit, w: ([], {w: emit(topi.exp, w)}), w=(5, 3)))
    run.export(tmp_path / "step.o")
    before = given.copy()
    for call in (run, tw.load(tmp_path / "step.o")):
        with pytest.raises(GraphError, match=f"step: w is updated in place, and what is given is .*{why}"):
            call(given)
    np.testing.assert_array_equal(given, before)


def test_wrong_updates_are_refused():
    with pytest.raises(GraphError, match=r"step: the update of p is float32\[3\], the parameter is float32\[3, 3\]"):
        function(lambda emit, p: (p, {p: emit(topi.sum, p, axis=0)}), p=(3, 3))
    with pytest.raises(GraphError, match="is updated and is no parameter"):
        function(lambda emit, p: (p, {emit(topi.exp, p): p}), p=(3,))
    inner = function(lambda emit, p: (p, {p: emit(topi.exp, p)}), p=(3,))
    with pytest.raises(GraphError, match="if: step updates p, and calls have no effects"):
        If(inner, inner).types(TensorType((), "bool"), TensorType((3,)))
    two = function(lambda emit, p, q: ([], {p: emit(topi.exp, p), q: emit(topi.exp, q)}), p=(3,), q=(3,))
    run = build_function(two)
    both = nd.empty((3,))
    with pytest.raises(GraphError, match="step: p and q share memory, and both are updated"):
        run(both, both)


def test_each_kernel_by_itself():
    """With arguments where calls decide a size; a kernel that updates a parameter does so."""
    run = build_function(descent())
    w, x = array(5, 3), array(8, 5)
    held = nd.array(w)
    first, second = run.calls(x, held, np.float32(0.01))
    first()
    np.testing.assert_array_equal(held.numpy(), w)
    second()
    np.testing.assert_allclose(held.numpy(), follow(w, x, 0.01)[1], rtol=1e-4, atol=1e-4)
    with pytest.raises(GraphError, match="step takes 3 argument"):
        run.calls()


def with_neighbour(x):
    """y[i] = 2 x[i] + 2 x[i - 1], by a stage that is read at both places."""
    twice = te.compute(x.shape, lambda i: x[i] * 2.0, name="twice")
    return te.compute(x.shape, lambda i: twice[i] + te.if_then_else(i > 0, twice[i - 1], 0.0), name="with_neighbour")


def neighbours(p): return 2 * p + 2 * np.concatenate([np.zeros(1, p.dtype), p[:-1]])


def test_a_value_whose_stages_other_elements_read_is_not_written_over():
    run = build_function(function(lambda emit, p: ([], {p: emit(with_neighbour, p)}), p=(1000,)))
    p = array(1000)
    wanted = neighbours(p)
    run(p)
    np.testing.assert_allclose(p, wanted, rtol=1e-6)


def test_the_stages_may_be_calls_of_one_kernel():
    def body(emit, p):
        a = emit(topi.relu, p)
        return [], {p: emit(topi.add, a, emit(topi.transpose, a))}
    run = build_function(function(body, p=(40, 40)))
    p = array(40, 40)
    positive = np.maximum(p, 0)
    run(p)
    np.testing.assert_allclose(p, positive + positive.T, rtol=1e-6)
