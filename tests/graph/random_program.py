"""A random program: a function of the graph that is being made, and beside each value how a reference computes it."""
import ml_dtypes
import numpy as np

from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.types import extents, size
from tilewright.tir import Var

LARGE = {"float16": 2e3}                                      # elements beyond which a program says nothing


class TooLarge(Exception):
    """Elements so large that rounding, or the range of a type, decides what comes out."""


def is_float(v):
    return "float" in v.dtype


def number(d):
    return isinstance(d, int)


def positive(d):
    """An extent that is 1 at least: a number, or a size by itself."""
    return d > 0 if isinstance(d, int) else isinstance(d, Var)


class Program:
    """values, and for each of them in `how`: (name or function, inputs, which result, attributes).

    exact: elements that a reference has to the last bit, so that comparisons of them, orders and places are decided.
    outer: the program in which this one is a branch or a body.
    """

    def __init__(self, rng, outer=None):
        self.rng, self.outer = rng, outer
        self.bb = BlockBuilder()
        self.values, self.how, self.exact = [], [], []
        self.params, self.ranges, self.outputs = [], [], []
        self.now = ({}, "float64")                            # sizes and floats of the evaluation that goes on
        self.depth = 0 if outer is None else outer.depth + 1

    # draws

    def choice(self, found):
        found = list(found)
        return found[int(self.rng.integers(len(found)))]

    def chance(self, share):
        return bool(self.rng.random() < share)

    def pick_at(self, accept):
        """The place of a value that fits, or None; more often a late one, so that programs are deep."""
        found = [k for k, v in enumerate(self.values) if accept(k, v)]
        return self.choice(found[-3:] if self.chance(0.6) else found) if found else None

    def pick(self, accept=lambda v: True):
        return self.pick_at(lambda k, v: accept(v))

    def array(self, *shape):
        return (self.rng.standard_normal(shape) / 2).astype("float32")

    @staticmethod
    def numpy_type(dtype):
        return np.dtype(getattr(ml_dtypes, dtype) if dtype == "bfloat16" else dtype)

    def room(self):
        """The program may have another parameter."""
        return len(self.params) < 8

    # values

    def keep(self, value, how, exact):
        self.values.append(value)
        self.how.append(how)
        self.exact.append(exact)
        return len(self.values) - 1

    def add(self, name, inputs, rule, *args, attrs=None, **kwargs):
        """The value, or the first of the values, of a rule; the reference computes them by `name`."""
        made = self.bb.emit_te(rule, *args, **kwargs)
        exact = all(self.exact[k] for k in inputs) and self.keeps(name, inputs)
        results = made if isinstance(made, tuple) else (made,)
        first = len(self.values)
        for k, v in enumerate(results):
            self.keep(v, (name, inputs, k if len(results) > 1 else None, attrs or {}), exact)
        return first

    def keeps(self, name, inputs):
        """The operator is exact for exact inputs."""
        if not any(is_float(self.values[k]) for k in inputs):
            return True
        return name in MOVEMENT or name == "cast" and self.values[inputs[0]].dtype in ("float16", "bfloat16")

    def view(self, k, rule, *args, **kwargs):
        """A value of the elements of value k, row by row."""
        made = self.bb.emit_te(rule, *args, **kwargs)
        return self.keep(made, ("view", (k,), None, {"shape": made.shape}), self.exact[k])

    def spread(self, k, rule, v, shape):
        made = self.bb.emit_te(rule, v, shape)
        return self.keep(made, ("broadcast", (k,), None, {"shape": made.shape}), self.exact[k])

    def param(self, shape, dtype="float32", between=(0, 2), name=None):
        p = self.bb.param(name or f"p{len(self.params)}", shape, dtype)
        self.params.append(p)
        self.ranges.append(between)
        return self.keep(p, ("param", (), len(self.params) - 1, {}), True)

    def const(self, array):
        return self.keep(self.bb.const(array), ("const", (), None, {"array": array}), True)

    def call(self, function, inputs, callee):
        """The results of a choice or a loop; function(*inputs, reference) gives them."""
        made = self.bb.emit_call(callee, [self.values[k] for k in inputs])
        for k, v in enumerate(made):
            self.keep(v, (function, inputs, k, {}), False)

    # the reference

    def inputs_for(self, sizes):
        """Arrays for the parameters, where the sizes have these values; some with strides of their own."""
        return [self.input_for(p, between, sizes) for p, between in zip(self.params, self.ranges)]

    def input_for(self, p, between, sizes):
        shape = tuple(d if number(d) else sizes[d.name] for d in p.shape)
        dtype = self.numpy_type(p.dtype)
        if is_float(p):
            made = self.array(*shape).astype(dtype)
        elif p.dtype in ("int64", "bool"):
            made = self.rng.integers(between[0], max(between[1], between[0] + 1), size=shape).astype(dtype)
        else:
            low = 0 if p.dtype.startswith("uint") else -9
            made = self.rng.integers(low, 10, size=shape).astype(dtype)
        if self.chance(0.15) and made.ndim >= 2:
            made = np.asfortranarray(made)
        return made

    def evaluate(self, reference, arrays, sizes, floats="float64"):
        """The results by a reference, for its values of the parameters. Raises TooLarge."""
        self.now = (sizes, floats)
        known, made, calls = {size(k): n for k, n in sizes.items()}, [], {}
        for v, (name, inputs, which, attrs) in zip(self.values, self.how):
            given = [made[k] for k in inputs]
            if name == "param":
                value = arrays[which]
            elif name == "const":
                value = reference.load(_plain(attrs["array"]))
            elif callable(name):
                if (name, inputs) not in calls:
                    calls[name, inputs] = name(*given, reference)
                value = calls[name, inputs][which]
            else:
                if "shape" in attrs:
                    attrs = {"shape": extents(attrs["shape"], known)}
                value = reference.table[name](*given, **attrs)
                value = value[which or 0] if isinstance(value, (tuple, list)) else value
            made.append(reference.cast(value, v.dtype, floats))
            _check_large(reference.store(made[-1]), v.dtype)
        return [made[k] for k in self.outputs]

    def expected(self, reference, arrays, sizes, floats="float64"):
        """The results for arrays, as arrays."""
        given = [reference.load(_plain(a)) for a in arrays]
        return [np.asarray(reference.store(x)) for x in self.evaluate(reference, given, sizes, floats)]


MOVEMENT = frozenset({
    "negative", "abs", "relu", "sign", "floor", "maximum", "minimum", "where", "max", "min", "sort", "topk",
    "transpose", "concatenate", "stack", "slice", "split", "unstack", "flip", "roll", "pad", "reflect", "tile",
    "repeat", "tril", "diagonal", "take", "gather", "scatter", "greater", "less_equal", "less", "equal", "argmax"})


def _plain(array):
    """A copy whose dtype NumPy and PyTorch have."""
    return np.array(array, "float64" if "float" in str(array.dtype) else None, order="C")


def _check_large(array, dtype):
    limit = LARGE.get(dtype, 1e12 if "float" in dtype else None)
    if limit is not None and array.size and not np.abs(array).max() < limit:
        raise TooLarge


def start(rng):
    """A program with parameters: extents of 0, 1, primes and others, and sizes."""
    p = Program(rng)
    symbols = ["n", "m"] if p.chance(0.6) else []

    def extent():
        if symbols and p.chance(0.4):
            return size(p.choice(symbols))
        return 0 if p.chance(0.02) else int(p.choice([1, 2, 3, 4, 5, 7, 8, 11, 16, 23]))
    shapes = [[extent() for _ in range(p.rng.integers(1, 5))] for _ in range(p.rng.integers(1, 4))]
    if p.chance(0.3):
        shapes.append([extent(), int(p.choice([1, 2, 3, 4])), *(int(d) for d in rng.integers(3, 8, size=2))])
    if symbols:
        shapes.append([size("n"), size("m"), 4])
    for shape in shapes:
        dtype = p.choice(["float32"] * 12 + ["float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8",
                                             "bool"])
        p.param(shape, dtype, (0, 2) if dtype == "bool" else (-9, 10))
    if not any(v.dtype == "float32" for v in p.values):
        p.param([extent()])
    return p


def rounded(dtype):
    """How far rounding moves an element, relative to the largest one, after some operators."""
    return {"float32": 2e-3, "float64": 1e-9, "float16": 2e-2, "bfloat16": 1.5e-1}.get(dtype, 0.0)


def coarsest(p):
    """The tolerance of each value: that of the coarsest float that it is computed from."""
    found = []
    for v, (_, inputs, _, _) in zip(p.values, p.how):
        found.append(max([rounded(v.dtype), *(found[k] for k in inputs)]))
    return found

