"""Steps: memory, in-place updates, plans per shape, optimizers, feeds."""
import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import graph
from tilewright.graph import SGD, Adam, Executor, TensorType, Update, gradients, parameter, placeholder
from tilewright.graph.memory import Lifetime, plan_memory
from tilewright.graph.plan.code import native_steps
from tilewright.graph.value import topological
from tilewright.script import from_source
from tilewright.support.errors import GraphError
from tilewright.tir import interp
from tilewright.tir.equal import assert_structural_equal

RANDOM = np.random.RandomState(3)


def f32(*shape): return RANDOM.normal(0, 1, shape).astype("float32")


def test_feeds_of_other_shapes_are_planned_again_and_both_plans_stay():
    x = placeholder("x")
    ex = Executor([graph.relu(x) * 2.0])
    for shape in [(3, 4), (5, 2), (3, 4), (0, 4), (1,)]:
        a = f32(*shape)
        y, = ex.run({x: a})
        np.testing.assert_array_equal(y.numpy(), np.maximum(a, 0) * 2)
    assert len(ex._steps) == 4


def test_outputs_of_one_run_are_not_overwritten_by_the_next():
    x = placeholder("x")
    ex = Executor([x + 1.0])
    first, = ex.run({x: np.zeros(4, "float32")})
    ex.run({x: np.ones(4, "float32")})
    np.testing.assert_array_equal(first.numpy(), np.ones(4))


def test_leaves_repeats_and_updates_as_outputs():
    a, b = f32(4), f32(4)
    x, p = placeholder("x"), parameter("p", a)
    moved = p + x
    ex = Executor([x, p, moved, moved], [Update(p, moved)])
    got = [t.numpy() for t in ex.run({x: b})]
    for value, want in zip(got, (b, a, a + b, a + b)):
        np.testing.assert_array_equal(value, want)
    np.testing.assert_array_equal(p.data.numpy(), a + b)


def test_updates_see_the_old_values_of_each_other():
    """p and q change places: neither update may be done in place before the other has read."""
    a, b = f32(6), f32(6)
    p, q = parameter("p", a), parameter("q", b)
    Executor([], [Update(p, q * 1.0), Update(q, p * 1.0)]).run()
    np.testing.assert_array_equal(p.data.numpy(), b)
    np.testing.assert_array_equal(q.data.numpy(), a)


def test_an_update_that_reads_its_parameter_elsewhere_is_not_done_in_place():
    a = f32(5, 5)
    p = parameter("p", a)
    Executor([], [Update(p, graph.matmul(p, p))]).run()
    np.testing.assert_allclose(p.data.numpy(), a.astype("float64") @ a, rtol=1e-4, atol=1e-5)


def test_parameters_that_take_each_others_values():
    a, b = f32(5, 5), f32(5, 5)
    p, q = parameter("p", a), parameter("q", b)
    updates = [Update(p, q * 2.0), Update(q, p * 3.0)]
    step = Executor([], updates)
    for _ in range(2):
        step.run()
        assert [k.operators for k in step.step.kernels] == [("mulconst",)] * 2 + [("te.copy",)] * 2
        a, b = b * 2, a * 3
        np.testing.assert_array_equal(p.data.numpy(), a)
        np.testing.assert_array_equal(q.data.numpy(), b)


def test_a_step_is_a_function_that_calls_the_kernels_on_addresses_of_a_table():
    x, y = placeholder("x"), placeholder("y")
    w = parameter("w", f32(5, 3))
    loss = graph.softmax_cross_entropy(graph.matmul(x, w), y)
    ex = Executor([loss], Adam(0.1).minimize(loss, [w]))
    step = ex.compile({x: TensorType((4, 5)), y: TensorType((4, 3))})
    plan, seen = step.plan, []
    calls, table = native_steps(plan, plan.steps, ()), np.arange(len(plan.slots), dtype="uint64")
    interp.run(calls, table, np.zeros(1, "int64"), externs={
        f"{k.name}__kernel": lambda *args, name=k.name: seen.append((name, args)) or 0 for k in step.kernels})
    assert seen == [(s.callee.name, s.slots) for s in plan.steps]
    assert calls.name == native_steps(plan, plan.steps, ()).name
    assert_structural_equal(from_source(str(calls)), calls)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_training_equals_numpy_step_by_step(target):
    sizes, rows = (20, 16, 7, 5), 33
    w = [f32(a, b) * 0.3 for a, b in zip(sizes, sizes[1:])]
    b = [f32(n) * 0.1 for n in sizes[1:]]
    pw, pb = [parameter(f"w{k}", a) for k, a in enumerate(w)], [parameter(f"b{k}", a) for k, a in enumerate(b)]
    x, y = placeholder("x"), placeholder("y")
    h = graph.relu(graph.dense(x, pw[0], pb[0]))
    h = graph.relu(graph.dense(h, pw[1], pb[1]))
    loss = graph.softmax_cross_entropy(graph.dense(h, pw[2], pb[2]), y, reduction="sum")
    ex = Executor([loss], SGD(0.01).minimize(loss, [*pw, *pb]), target=target)
    w, b = [a.astype("float64") for a in w], [a.astype("float64") for a in b]
    for _ in range(4):
        xs, ys = f32(rows, sizes[0]), np.eye(5, dtype="float32")[RANDOM.randint(0, 5, rows)]
        got, = ex.run({x: xs, y: ys})
        h1 = np.maximum(xs @ w[0] + b[0], 0)
        h2 = np.maximum(h1 @ w[1] + b[1], 0)
        z = h2 @ w[2] + b[2]
        e = np.exp(z - z.max(1, keepdims=True))
        s = e / e.sum(1, keepdims=True)
        np.testing.assert_allclose(got.numpy()[0], -(ys * np.log(s)).sum(), rtol=1e-4)
        d3 = s - ys
        d2 = (d3 @ w[2].T) * (h2 > 0)
        d1 = (d2 @ w[1].T) * (h1 > 0)
        for k, (i, d) in enumerate(((xs, d1), (h1, d2), (h2, d3))):
            w[k] -= 0.01 * (i.T @ d)
            b[k] -= 0.01 * d.sum(0)
    for p, want in zip([*pw, *pb], [*w, *b]):
        np.testing.assert_allclose(p.data.numpy(), want, rtol=2e-3, atol=2e-4)


def test_memory_is_shared_and_bounded():
    x = placeholder("x")
    v = x
    for k in range(6):
        v = graph.matmul(graph.tanh(v), parameter(f"w{k}", f32(8, 8)))
    ex = Executor([v])
    ex.run({x: f32(8, 8)})
    plan = ex.memory
    assert plan.lower_bound <= plan.planned < plan.unshared


def test_an_input_that_another_element_of_the_output_needs_is_not_written_over():
    p = parameter("p", f32(4, 4))
    for build, kernels in ((graph.exp, ["relu_exp"]), (lambda y: graph.matmul(y, y), ["relu", "matmul"])):
        y = graph.relu(p)
        ex = Executor([], [Update(p, build(y))])
        before = np.maximum(p.data.numpy().astype("float64"), 0)
        ex.run()
        assert [k.name.rpartition("_")[0] for k in ex.step.kernels] == kernels
        np.testing.assert_allclose(p.data.numpy(), np.exp(before) if len(kernels) == 1 else before @ before, rtol=1e-5)


def test_the_plan_never_overlaps_values_that_live_together():
    for seed in range(200):
        random = np.random.RandomState(seed)
        lives = []
        for k in range(random.randint(1, 20)):
            first = int(random.randint(0, 15))
            lives.append(Lifetime(k, int(random.randint(0, 400)), first, first + int(random.randint(0, 6))))
        plan = plan_memory(lives)
        for a in lives:
            for b in lives:
                if a.value < b.value and a.first <= b.last and b.first <= a.last:
                    p, q = plan.offset[a.value], plan.offset[b.value]
                    assert p + a.nbytes <= q or q + b.nbytes <= p or 0 in (a.nbytes, b.nbytes)
        assert plan.lower_bound <= plan.planned <= plan.unshared


def test_fusion_changes_nothing_but_the_number_of_kernels():
    a, w, bias = f32(9, 5), f32(5, 6), f32(6)
    x = placeholder("x")
    y = graph.tanh(graph.dense(x, parameter("w", w), parameter("b", bias)) * 2.0)
    fused, plain = Executor([y]), Executor([y], fuse=False)
    np.testing.assert_allclose(fused.run({x: a})[0].numpy(), plain.run({x: a})[0].numpy(), rtol=1e-6)
    assert len(fused.step.kernels) == 1 < len(plain.step.kernels)


def test_the_kernels_of_a_step():
    """Products and sums take in what is element by element before and behind them, the step down the gradient too."""
    x, y = placeholder("x"), placeholder("y")
    w, b = [parameter("w", f32(6, 5)), parameter("v", f32(5, 3))], [parameter("b", f32(5)), parameter("c", f32(3))]
    h = graph.relu(graph.dense(x, w[0], b[0]))
    loss = graph.softmax_cross_entropy(graph.dense(h, w[1], b[1]), y)
    ex = Executor([loss], SGD(0.1).minimize(loss, [*w, *b]))
    step = ex.compile({x: TensorType((4, 6)), y: TensorType((4, 3))})
    assert [k.operators for k in step.kernels] == [
        ("matmul", "broadcastlike", "add", "relu"), ("matmul", "broadcastlike", "add"), ("softmaxcrossentropy",),
        ("softmaxcrossentropygrad", "oneslike", "broadcastlike", "mul"), ("matmul", "relugrad"), ("matmul", "descent"),
        ("matmul", "descent"), ("sumlike", "descent"), ("sumlike", "descent")]
    assert all(len(k.over) == 1 for k in step.kernels[-4:]) and step.memory.planned == step.memory.lower_bound
    assert len(step.calls()) == 9
    for call in step.calls():
        call()


def test_gradients_of_a_deep_graph_do_not_recurse():
    x = parameter("x", np.full(3, 0.5))
    v = x
    for _ in range(3000):
        v = v + 1.0
    assert gradients(graph.reduce_sum(v), [x])[0].op is not None


FEEDS = {
    "is not fed": lambda ex, x: ex.run({}),
    "is no placeholder": lambda ex, x: ex.run({x: f32(2), placeholder("z"): f32(2)}),
    "run: x is .1.0, 2.0.": lambda ex, x: ex.run({x: [1.0, 2.0]}),
    "not a float": lambda ex, x: ex.run({x: np.zeros(3, "int64")}),
    "has not run": lambda ex, x: ex.memory,
}


@pytest.mark.parametrize("message", FEEDS)
def test_wrong_feeds_are_refused(message):
    x = placeholder("x")
    with pytest.raises(GraphError, match=message):
        FEEDS[message](Executor([graph.exp(x)]), x)


def test_wrong_programs_are_refused():
    x, p = placeholder("x"), parameter("p", f32(2))
    with pytest.raises(GraphError, match="nothing to compute"):
        Executor([])
    with pytest.raises(GraphError, match="updated twice"):
        Executor([], [Update(p, p + 1.0), Update(p, p + 2.0)])
    with pytest.raises(GraphError, match="is not a parameter"):
        Executor([], [Update(x, x + 1.0)])
    with pytest.raises(GraphError, match="the update of p is"):
        Executor([], [Update(p, graph.reduce_sum(p))]).run()
    with pytest.raises(GraphError, match="does not depend on"):
        gradients(graph.reduce_sum(p), [parameter("q", f32(2))])
    for dtype in ("float32x4", "handle"):
        with pytest.raises(GraphError, match="is no type of elements"):
            graph.cast(x, dtype)
    with pytest.raises(GraphError, match="learning_rate"):
        SGD(-1.0)
    with pytest.raises(GraphError, match="neither a graph value nor a number"):
        p + f32(2)


def unaligned(a):
    return np.frombuffer(b"-" + a.tobytes(), a.dtype, offset=1).reshape(a.shape)


@pytest.mark.parametrize("given", [
    np.broadcast_to(np.float32(3), (4, 6)), f32(6, 4).T, f32(4, 6)[::-1], f32(4, 12)[:, ::2], unaligned(f32(4, 6)),
    tw.nd.from_dlpack(f32(6, 4).T), f32(0, 6)[:, ::2], np.float32(2)])
def test_feeds_of_any_layout_are_read(given):
    x = placeholder("x")
    executor = Executor([x + 1.0])
    np.testing.assert_array_equal(executor.run({x: given})[0].numpy(), np.asarray(given) + 1)


def test_an_executor_and_its_parameters_in_a_pickle():
    """What was learned comes along; copies learn on their own, and values keep who they are within one pickle."""
    x, y = placeholder("x"), placeholder("y")
    w = parameter("w", f32(4, 3))
    loss = graph.softmax_cross_entropy(x @ w, y)
    train = Executor([loss], Adam(0.1).minimize(loss, [w]), schedule="default")
    feeds = {x: f32(5, 4), y: np.eye(3, dtype="float32")[[0, 1, 2, 0, 1]]}
    train.run(feeds)
    again, x2, y2, w2 = pickle.loads(pickle.dumps((train, x, y, w)))
    assert again.schedule == "default" and again.placeholders == [x2, y2]
    np.testing.assert_array_equal(w2.data.numpy(), w.data.numpy())
    before = w.data.numpy()
    got = [again.run({x2: feeds[x], y2: feeds[y]})[0].numpy() for _ in range(3)]
    np.testing.assert_array_equal(w.data.numpy(), before)
    np.testing.assert_array_equal(got, [train.run(feeds)[0].numpy() for _ in range(3)])
    np.testing.assert_array_equal(w2.data.numpy(), w.data.numpy())


def test_a_cast_passes_the_gradient_in_the_type_of_its_input():
    """A product in bfloat16 under a loss in float32, against float64."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(8, 4)), rng.normal(size=(4, 3))
    weights = parameter("w", w.astype(ml_dtypes.bfloat16))
    fed = placeholder("x")
    loss = graph.reduce_sum(graph.cast(fed @ weights, "float32") ** 2)
    second = gradients(graph.reduce_sum(graph.cast(graph.cast(weights, "float64") ** 3, "float32")), [weights])[0]
    got, cubed = Executor([gradients(loss, [weights])[0], second]).run({fed: x.astype(ml_dtypes.bfloat16)})
    rounded, inputs = (v.astype(ml_dtypes.bfloat16).astype("float64") for v in (w, x))
    assert got.dtype == cubed.dtype == "bfloat16"
    np.testing.assert_allclose(got.numpy().astype("float64"), 2 * inputs.T @ (inputs @ rounded), rtol=0.05, atol=0.3)
    np.testing.assert_allclose(cubed.numpy().astype("float64"), 3 * rounded**2, rtol=0.01)
    before = weights.data.numpy().astype("float64")
    training = Executor([loss], Adam(0.01).minimize(loss, [weights]))
    losses = [training.run({fed: x.astype(ml_dtypes.bfloat16)})[0].numpy()[0] for _ in range(20)]
    assert losses[-1] < losses[0] and (weights.data.numpy().astype("float64") != before).any()
    with pytest.raises(GraphError, match="no differentiable path"):
        gradients(graph.cast(graph.cast(weights, "int32"), "float32"), [weights])


def test_a_deep_graph_in_a_pickle():
    x, w = placeholder("x"), parameter("w", f32(3))
    y = x
    for _ in range(1500):
        y = y + w
    again = pickle.loads(pickle.dumps(Executor([y])))
    assert copy.deepcopy(again).placeholders[0].name == "x"
    got, = Executor([again.placeholders[0] * 2.0]).run({again.placeholders[0]: np.ones(3, "float32")})
    np.testing.assert_array_equal(got.numpy(), 2)
    assert len(topological(again.outputs)) == 1502
