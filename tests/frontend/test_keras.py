"""Models of Keras give what Keras gives."""
import importlib
import os

import numpy as np
import pytest

from tilewright.graph.compile import build_function
from tilewright.support.errors import ImportModelError

pytest.importorskip("torch")
os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")
from_keras = importlib.import_module("tilewright.frontend.keras").from_keras
RNG = np.random.default_rng(0)


def layers():
    return keras.layers


def image(*stack, shape=(9, 8, 4)):
    """A model of layers one after the other, with its weights made random."""
    x = keras.Input(shape, name="x")
    y = x
    for layer in stack:
        y = layer(y)
    return keras.Model(x, y)


MODELS = {
    "convolutions": lambda k: image(
        k.Conv2D(6, 3, strides=2, padding="same", activation="relu"), k.BatchNormalization(),
        k.DepthwiseConv2D(3, padding="same", use_bias=False), k.LeakyReLU(), k.SeparableConv2D(8, 2),
        k.GlobalAveragePooling2D(), k.Dense(5, activation="softmax")),
    "pooling": lambda k: image(
        k.ZeroPadding2D(((1, 0), (2, 1))), k.MaxPooling2D(3, 2, padding="same"), k.AveragePooling2D(2, 1, "same"),
        k.Cropping2D(1), k.UpSampling2D((2, 3)), k.Flatten(), k.Dense(3, activation="gelu")),
    "dilated": lambda k: image(k.Conv2D(4, 3, dilation_rate=2, groups=2), k.PReLU(), k.Permute((3, 1, 2)),
                               k.Reshape((-1, 4)), k.LayerNormalization(), k.Dropout(0.5)),
    "sequence": lambda k: image(k.Conv1D(4, 3, padding="causal"), k.ReLU(max_value=1.0), k.MaxPooling1D(2),
                                k.GlobalMaxPooling1D(), k.RepeatVector(3), k.Activation("tanh"), k.Softmax(axis=1),
                                shape=(12, 3)),
    "scaled": lambda k: image(k.Rescaling(0.5, 1.0), k.ELU(0.5), k.Activation("hard_sigmoid"),
                              k.Activation("swish"), k.GlobalMaxPooling2D(keepdims=True)),
}


def branches(k):
    a, b = keras.Input((6,), name="a"), keras.Input((6,), name="b")
    inner = keras.Sequential([keras.Input((6,)), k.Dense(4, activation="relu"), k.Dense(6)])
    p, q = inner(a), inner(b)
    merged = k.Concatenate()([k.Add()([p, q, a]), k.Multiply()([p, b]), k.Average()([p, q]), k.Subtract()([p, q])])
    return keras.Model([a, b], [k.Dense(3)(merged), k.Dot(axes=1)([p, q]), k.Maximum()([a, q]) * 2.0 + b])


def words(k):
    x = keras.Input((7,), dtype="int32", name="words")
    return keras.Model(x, k.Dense(2)(k.GlobalAveragePooling1D()(k.Embedding(11, 5)(x))))


def compared(model, inputs, **shapes):
    for w in model.weights:
        w.assign(np.abs(RNG.standard_normal(w.shape)).astype("float32") * 0.3 + 0.1)
    function = from_keras(model, shapes or None)
    run = build_function(function)
    got = run(*inputs)
    want = model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0)
    for g, w in zip(got if isinstance(got, tuple) else [got], want if isinstance(want, (list, tuple)) else [want]):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-4, atol=1e-4)
    return function


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    model = MODELS[name](layers())
    x = RNG.standard_normal((3, *model.inputs[0].shape[1:])).astype("float32")
    function = compared(model, [x])
    assert str(function.params[0].type.shape[0]) == "batch"


def test_branches_and_models_as_layers():
    a, b = (RNG.standard_normal((4, 6)).astype("float32") for _ in range(2))
    function = compared(branches(layers()), [a, b], a=(4, 6), b=(4, 6))
    assert [p.name for p in function.params] == ["a", "b"] and function.params[0].type.is_constant


def test_words():
    compared(words(layers()), [RNG.integers(0, 11, (2, 7)).astype("int32")])


def normalization(k, **options):
    return k.Normalization(mean=[1.5, 2, 3, 4], variance=[1.0, 2, 3, 4], **options)


@pytest.mark.parametrize("make", [lambda k: normalization(k), lambda k: normalization(k, invert=True),
                                  lambda k: k.Rescaling(0.5, 1.0),
                                  lambda k: k.Rescaling([1.0, 2, 3, 4], [0.0, 1, 0, 2])])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_what_brings_inputs_to_floats(make, dtype):
    x = keras.Input((4,), name="x", dtype=dtype)
    run = build_function(from_keras(model := keras.Model(x, make(layers())(x))))
    given = RNG.integers(0, 50, (3, 4)).astype(dtype)
    np.testing.assert_allclose(np.asarray(run(given)), keras.ops.convert_to_numpy(model(given)), rtol=1e-5, atol=1e-5)


def swish(x):
    return x * keras.ops.sigmoid(1.702 * x)


def own(x):
    class Softmax(keras.layers.Layer):
        def call(self, x): return x + 1.0
    return Softmax()(x)


@pytest.mark.parametrize("make, message", [
    (lambda k, x: k.Activation(swish)(x), "the activation swish"), (lambda k, x: own(x), "is a Softmax"),
    (lambda k, x: keras.ops.average(x, axis=1), "is a Average"),
    (lambda k, x: keras.ops.reshape(x, (-1, 2, 2)), "is a Reshape"),
    (lambda k, x: k.BatchNormalization()(x, training=True), "training=True"),
    (lambda k, x: k.Softmax()(x, mask=x > 0), "a call with 2 tensors|is a Greater"),
    (lambda k, x: k.LayerNormalization(rms_scaling=True)(x), "rms_scaling")])
def test_what_goes_by_a_name_that_is_known_and_is_another_thing(make, message):
    x = keras.Input((4,), name="x")
    with pytest.raises(ImportModelError, match=message):
        from_keras(keras.Model(x, make(layers(), x)))


def test_refusals():
    with pytest.raises(ImportModelError, match="is a LSTM"):
        from_keras(image(layers().LSTM(4), shape=(5, 3)))
    with pytest.raises(ImportModelError, match="no functional or sequential model"):
        from_keras(3)
    with pytest.raises(ImportModelError, match="no input 'y'"):
        from_keras(image(layers().ReLU()), {"y": (1, 9, 8, 4)})
    with pytest.raises(ImportModelError, match="of the shape"):
        from_keras(image(layers().ReLU()), {"x": (1, 9, 8, 5)})
