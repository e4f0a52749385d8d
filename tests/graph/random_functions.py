"""Random functions of the graph against NumPy in float64.

`python -m tests.graph.random_functions --count 1000 --seed 0` compiles and runs so many and prints what differs.
"""
import argparse
import sys
import traceback

import numpy as np

from tilewright import te, topi
from tilewright.graph.compile import build_function
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.types import extents, size
from tilewright.graph.ir.values import check_function

TOLERANCE = 2e-3
SIZES = {"n": (1, 2, 5, 8, 17), "m": (1, 3, 4, 16)}


class Program:
    """A function that is being made, and beside each value how NumPy computes it from the values before."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.bb = BlockBuilder()
        self.values, self.how = [], []                       # Value; (numpy function, positions of inputs)
        self.params = []

    def pick(self, accept=lambda v: True):
        found = [k for k, v in enumerate(self.values) if accept(v)]
        return int(self.rng.choice(found)) if found else None

    def add(self, how, inputs, rule, *args, **kwargs):
        """One more value: rule(*args) in the graph, how(*arrays) in NumPy."""
        made = self.bb.emit_te(rule, *args, **kwargs)
        self.values.append(made)
        self.how.append((how, inputs))

    def param(self, shape, dtype="float32"):
        p = self.bb.param(f"p{len(self.params)}", shape, dtype)
        self.params.append(p)
        self.values.append(p)
        self.how.append((None, ()))

    def array(self, *shape):
        return (self.rng.standard_normal(shape) / 2).astype("float32")


def is_float(v):
    return v.dtype == "float32"


def number(d):
    return isinstance(d, int)


def unary(p):
    table = [(topi.relu, lambda x: np.maximum(x, 0)), (topi.tanh, np.tanh), (topi.negative, np.negative),
             (topi.abs, np.abs), (topi.sigmoid, lambda x: 1 / (1 + np.exp(-x))), (topi.square, np.square),
             (lambda x: topi.exp(topi.clip(x, -3.0, 3.0)), lambda x: np.exp(np.clip(x, -3, 3)))]
    k = p.pick(is_float)
    rule, how = table[p.rng.integers(len(table))]
    p.add(how, (k,), rule, p.values[k])


def own_rule(p):
    """An operator of the program: two stages, the second read with an offset inside of the tensor."""
    def smooth(x):
        twice = te.compute(x.shape, lambda *i: x(*i) * 2.0 + 0.25, name="twice")
        return te.compute(x.shape, lambda *i: twice(*i) - x(*i) * 0.5, name="smooth")
    k = p.pick(is_float)
    p.add(lambda x: x * 1.5 + 0.25, (k,), smooth, p.values[k])


def binary(p):
    table = [(topi.add, np.add), (topi.multiply, np.multiply), (topi.subtract, np.subtract),
             (topi.maximum, np.maximum), (topi.minimum, np.minimum)]
    rule, how = table[p.rng.integers(len(table))]
    a = p.pick(is_float)
    shape = [str(d) for d in p.values[a].shape]

    def fits(v):
        own = [str(d) for d in v.shape]
        pairs = list(zip(own[::-1], shape[::-1]))
        return is_float(v) and all(x == y or "1" in (x, y) for x, y in pairs)
    b = p.pick(fits)
    pair = (a, b) if p.rng.random() < 0.5 else (b, a)
    p.add(how, pair, rule, *(p.values[k] for k in pair))


def with_number(p):
    k, c = p.pick(is_float), float(np.round(p.rng.standard_normal(), 2))
    rule, how = [(topi.add, np.add), (topi.multiply, np.multiply)][p.rng.integers(2)]
    p.add(lambda x: how(x, c), (k,), rule, p.values[k], c)


def with_constant(p):
    k = p.pick(lambda v: is_float(v) and v.ndim and number(v.shape[-1]))
    if k is not None:
        c = p.array(p.values[k].shape[-1])
        p.add(lambda x: x + c, (k,), topi.add, p.values[k], p.bb.const(c))


def linear(p):
    k = p.pick(lambda v: is_float(v) and v.ndim and number(v.shape[-1]) and v.shape[-1])
    if k is not None:
        w = p.array(int(p.rng.choice([1, 3, 8, 33, 64])), p.values[k].shape[-1])
        p.add(lambda x: x @ w.T.astype("float64"), (k,), topi.linear, p.values[k], p.bb.const(w))


def matmul(p):
    a = p.pick(lambda v: is_float(v) and v.ndim >= 2)
    if a is None:
        return
    b = p.pick(lambda v: is_float(v) and v.ndim == 2 and str(v.shape[-1]) == str(p.values[a].shape[-1]))
    if b is not None:
        p.add(lambda x, y: x @ y.T, (a, b), topi.matmul, p.values[a], p.values[b], transpose_b=True)


def reduction(p):
    table = [(topi.sum, np.sum), (topi.mean, np.mean), (topi.max, np.max), (topi.min, np.min)]
    rule, how = table[p.rng.integers(len(table))]
    k = p.pick(lambda v: is_float(v) and v.ndim and all(not number(d) or d for d in v.shape))
    if k is not None:
        count = p.values[k].ndim
        axes = tuple(int(a) for a in p.rng.permutation(count)[:p.rng.integers(1, count + 1)])
        keep = bool(p.rng.integers(2))
        p.add(lambda x: how(x, axis=axes, keepdims=keep), (k,), rule, p.values[k], axis=axes, keepdims=keep)


def rows(p):
    k = p.pick(lambda v: is_float(v) and v.ndim and v.shape[-1] != 0)
    if k is None:
        return

    def softmax(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)
    if p.rng.random() < 0.5 or not number(p.values[k].shape[-1]):
        p.add(softmax, (k,), topi.softmax, p.values[k], axis=-1)
        return
    w = p.array(p.values[k].shape[-1])
    p.add(lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-2) * w, (k,),
          topi.layer_norm, p.values[k], p.bb.const(w), eps=1e-2)


def transpose(p):
    k = p.pick(lambda v: v.ndim >= 2)
    if k is not None:
        axes = tuple(int(a) for a in p.rng.permutation(p.values[k].ndim))
        p.add(lambda x: x.transpose(axes), (k,), topi.transpose, p.values[k], axes)


def reshape(p):
    k = p.pick(lambda v: 1 <= v.ndim < 5)
    if k is None:
        return
    shape = list(p.values[k].shape)
    at = int(p.rng.integers(len(shape)))
    kind = p.rng.integers(3)
    if kind == 0 and len(shape) > 1 and at + 1 < len(shape):
        shape[at:at + 2] = [shape[at] * shape[at + 1]]
    elif kind == 1 and number(shape[at]) and shape[at] % 2 == 0 and shape[at]:
        shape[at:at + 1] = [2, shape[at] // 2]
    else:
        shape.insert(at, 1)
    p.values.append(p.bb.emit_te(topi.reshape, p.values[k], tuple(shape)))
    p.how.append(("reshape", (k,)))


def concatenate(p):
    a = p.pick(lambda v: is_float(v) and v.ndim)
    if a is None:
        return
    shape = p.values[a].shape
    axis = int(p.rng.integers(len(shape)))
    rest = [str(d) for k, d in enumerate(shape) if k != axis]
    b = p.pick(lambda v: is_float(v) and v.ndim == len(shape)
               and [str(d) for k, d in enumerate(v.shape) if k != axis] == rest)
    p.add(lambda x, y: np.concatenate([x, y], axis), (a, b), topi.concatenate, [p.values[a], p.values[b]], axis=axis)


def strided(p):
    k = p.pick(lambda v: v.ndim and any(number(d) and d > 1 for d in v.shape))
    if k is None:
        return
    v = p.values[k]
    axis = int(p.rng.choice([a for a, d in enumerate(v.shape) if number(d) and d > 1]))
    begin = int(p.rng.integers(v.shape[axis]))
    end = int(p.rng.integers(begin + 1, v.shape[axis] + 1))
    step = int(p.rng.choice([1, 2]))
    at = tuple([slice(None)] * axis + [slice(begin, end, step)])
    p.add(lambda x: x[at], (k,), topi.strided_slice, v, begin=(begin,), end=(end,), strides=(step,), axes=(axis,))


def gather(p):
    k = p.pick(lambda v: v.ndim and number(v.shape[0]) and v.shape[0] > 0)
    if k is not None:
        at = p.rng.integers(0, p.values[k].shape[0], size=3).astype("int64")
        p.add(lambda x: x[at], (k,), topi.take, p.values[k], p.bb.const(at), axis=0)


def choice(p):
    a = p.pick(is_float)
    p.add(lambda x: np.where(x > 0, x, x * 0.1), (a,),
          lambda x: topi.where(topi.greater(x, 0.0), x, topi.multiply(x, 0.1)), p.values[a])


def convolution(p):
    k = p.pick(lambda v: is_float(v) and v.ndim == 4 and number(v.shape[1]) and v.shape[1]
               and all(number(d) and d >= 1 for d in v.shape[2:]))
    if k is None:
        return
    w = p.array(int(p.rng.choice([1, 4, 16])), p.values[k].shape[1], 3, 3)

    def correlated(x):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        return np.einsum("bchwij,ocij->bohw", windows, w.astype("float64"))
    p.add(correlated, (k,), topi.conv, p.values[k], p.bb.const(w), padding=1)


MOVES = [unary, unary, own_rule, binary, binary, binary, with_number, with_constant, linear, linear, matmul, reduction,
         rows, transpose, reshape, reshape, concatenate, strided, gather, choice, convolution]


def generate(seed):
    """A random program with its function."""
    p = Program(seed)
    symbols = ["n", "m"] if p.rng.random() < 0.6 else []

    def extent():
        return size(str(p.rng.choice(symbols))) if symbols and p.rng.random() < 0.4 else \
            int(p.rng.choice([1, 2, 3, 4, 7, 8, 16, 31, 48]))
    shapes = [[extent() for _ in range(p.rng.integers(1, 5))] for _ in range(p.rng.integers(1, 4))]
    if symbols:
        shapes.append([size("n"), size("m"), 4])
    for shape in shapes:
        p.param(shape)
    with p.bb.function("main", p.params):
        for _ in range(p.rng.integers(2, 16)):
            MOVES[p.rng.integers(len(MOVES))](p)
        count = len(p.values)
        p.outputs = [count - 1, *(int(k) for k in p.rng.integers(0, count, size=p.rng.integers(0, 3)))]
        p.bb.emit_func_output([p.values[k] for k in p.outputs])
    p.function = p.bb.get()["main"]
    return p


def arrays_for(p, sizes):
    def shape(v):
        return tuple(d if isinstance(d, int) else sizes[d.name] for d in v.shape)
    return [p.array(*shape(v)) for v in p.params]


def expected(p, arrays, sizes):
    """The results, computed by NumPy in float64."""
    known = {size(k): n for k, n in sizes.items()}
    inputs, values = iter(arrays), []
    for v, (how, at) in zip(p.values, p.how):
        if how is None:
            values.append(next(inputs).astype("float64"))
        elif how == "reshape":
            values.append(values[at[0]].reshape(extents(v.shape, known)))
        else:
            values.append(how(*(values[k] for k in at)))
    return [values[k] for k in p.outputs]


def check(seed, runs=2):
    """Raise AssertionError where a random function differs from NumPy."""
    p = generate(seed)
    check_function(p.function)
    run = build_function(p.function)
    for _ in range(runs):
        sizes = {k: int(p.rng.choice(v)) for k, v in SIZES.items()}
        arrays = arrays_for(p, sizes)
        before = [a.copy() for a in arrays]
        with np.errstate(all="ignore"):
            wanted = expected(p, arrays, sizes)
        got = run(*arrays)
        got = got if isinstance(got, tuple) else (got,)
        for k, (a, b) in enumerate(zip(got, wanted)):
            a = np.asarray(a)
            assert a.shape == b.shape, f"result {k} has the shape {a.shape}, not {b.shape} ({sizes})"
            scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0.0)))
            if scale < 1e30:
                np.testing.assert_allclose(a / scale, b / scale, atol=TOLERANCE, rtol=TOLERANCE, err_msg=f"{k} {sizes}")
        for a, b in zip(arrays, before):
            np.testing.assert_array_equal(a, b, err_msg="an input has changed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    failed = 0
    for seed in range(asked.seed, asked.seed + asked.count):
        try:
            check(seed)
        except Exception as error:
            failed += 1
            text = "".join(traceback.format_exception_only(error)).strip()
            print(f"{seed}: {text[:600]}\n", flush=True)
    print(f"{asked.count} functions, {failed} failures")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
