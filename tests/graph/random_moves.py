"""Random steps of a program: what each adds, to the function of the graph and to what the reference computes."""
import numpy as np

from tests.graph.random_program import Program, is_float, number, positive
from tilewright import te, topi
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.regions import If, Loop
from tilewright.tir import Var

FLOATS = ("float32", "float64", "float16", "bfloat16")


def text(v):
    return [str(d) for d in v.shape]


def own_rule(x):
    """An operator of a program: two stages, the second reads the first and the input."""
    twice = te.compute(x.shape, lambda *i: x(*i) * te.const(2.0, x.dtype) + te.const(0.25, x.dtype), name="twice")
    return te.compute(x.shape, lambda *i: twice(*i) - x(*i) * te.const(0.5, x.dtype), name="smooth")


def two_results(x):
    """Two results of one rule, over a stage that both read."""
    twice = te.compute(x.shape, lambda *i: x(*i) * te.const(2.0, x.dtype), name="twice")
    return (te.compute(x.shape, lambda *i: twice(*i) + te.const(1.0, x.dtype), name="more"),
            te.compute(x.shape, lambda *i: twice(*i) - x(*i) * x(*i), name="less"))


UNARY = {"relu": topi.relu, "tanh": topi.tanh, "negative": topi.negative, "abs": topi.abs, "sigmoid": topi.sigmoid,
         "square": topi.square, "exp": lambda x: topi.exp(topi.clip(x, -3.0, 3.0)), "erf": topi.erf,
         "sin": topi.sin, "cos": topi.cos, "softplus": topi.softplus, "silu": topi.silu, "gelu": topi.gelu,
         "leaky_relu": lambda x: topi.leaky_relu(x, negative_slope=0.1), "hardswish": topi.hardswish,
         "own": own_rule}
BINARY = {"add": topi.add, "multiply": topi.multiply, "subtract": topi.subtract, "maximum": topi.maximum,
          "minimum": topi.minimum}
EXACT = {"negative": topi.negative, "abs": topi.abs, "relu": topi.relu}


# elements


def unary(p, k=None):
    k = p.pick(is_float) if k is None else k
    if k is not None:
        name = p.choice(UNARY)
        return p.add(name, (k,), UNARY[name], p.values[k])


def several(p):
    k = p.pick(is_float)
    if k is not None:
        p.add("two", (k,), two_results, p.values[k])


def partner(p, a, accept):
    """A value that broadcasts with value a."""
    shape = text(p.values[a])

    def fits(k, v):
        pairs = list(zip(text(v)[::-1], shape[::-1]))
        return accept(k, v) and v.dtype == p.values[a].dtype and all(x == y or "1" in (x, y) for x, y in pairs)
    return p.pick_at(fits)


def binary(p):
    a = p.pick(is_float)
    if a is not None:
        b = partner(p, a, lambda k, v: True)
        name = p.choice(BINARY)
        pair = (a, b) if p.chance(0.5) else (b, a)
        p.add(name, pair, BINARY[name], *(p.values[k] for k in pair))


def integers(p):
    a = p.pick(lambda v: v.dtype.startswith(("int", "uint")))
    if a is None:
        return
    if p.chance(0.4) and not p.values[a].dtype.startswith("uint"):
        name = p.choice(EXACT)
        p.add(name, (a,), EXACT[name], p.values[a])
        return
    b = partner(p, a, lambda k, v: True)
    name = p.choice(BINARY)
    p.add(name, (a, b), BINARY[name], p.values[a], p.values[b])


def with_number(p, k=None):
    k = p.pick(is_float) if k is None else k
    if k is not None:
        name, c = p.choice(["add_number", "times"]), float(np.round(p.rng.standard_normal() * 4)) / 4
        return p.add(name, (k,), topi.add if name == "add_number" else topi.multiply, p.values[k], c, attrs={"c": c})


def with_constant(p):
    k = p.pick(lambda v: is_float(v) and v.ndim and number(v.shape[-1]))
    if k is not None:
        c = p.const(p.array(p.values[k].shape[-1]).astype(p.numpy_type(p.values[k].dtype)))
        name = p.choice(["add", "multiply"])
        p.add(name, (k, c), BINARY[name], p.values[k], p.values[c])


def cast(p):
    k = p.pick()
    v = p.values[k]
    if is_float(v):
        to = p.choice(FLOATS) if not p.exact[k] or p.chance(0.6) else "int32"
    else:
        to = p.choice(["float32", "int64", "int32", "float64"])
    if to != v.dtype:
        p.add("cast", (k,), topi.astype, v, to)


def comparison(p):
    """Of values that are exact: elements near the border would differ."""
    a = p.pick_at(lambda k, v: p.exact[k] and v.dtype != "bool")
    if a is not None:
        b = partner(p, a, lambda k, v: p.exact[k])
        name = p.choice(["greater", "less_equal", "equal"])
        p.add(name, (a, b), getattr(topi, name), p.values[a], p.values[b])


def logic(p):
    a = p.pick(lambda v: v.dtype == "bool")
    if a is None:
        comparison(p)
    elif p.chance(0.3):
        p.add("logical_not", (a,), topi.logical_not, p.values[a])
    elif p.chance(0.3) and p.values[a].ndim and all(positive(d) for d in p.values[a].shape):
        axes, keep = axes_of(p, p.values[a])
        p.add("any", (a,), topi.any, p.values[a], axis=axes, keepdims=keep, attrs={"axes": axes, "keep": keep})
    else:
        b = partner(p, a, lambda k, v: True)
        name = p.choice(["logical_and", "logical_or"])
        p.add(name, (a, b), getattr(topi, name), p.values[a], p.values[b])


def choice(p):
    c = p.pick(lambda v: v.dtype == "bool" and v.ndim)
    if c is None:
        comparison(p)
        return
    shape = text(p.values[c])
    a = p.pick(lambda v: v.dtype != "bool" and text(v) == shape)
    if a is not None:
        b = partner(p, a, lambda k, v: text(v) == shape)
        p.add("where", (c, a, b), topi.where, *(p.values[k] for k in (c, a, b)))


def stepwise(p):
    k = p.pick_at(lambda k, v: p.exact[k] and is_float(v))
    if k is not None:
        name = p.choice(["floor", "sign"])
        p.add(name, (k,), getattr(topi, name), p.values[k])


# products


def linear(p):
    k = p.pick(lambda v: v.dtype in ("float32", "float64") and v.ndim and number(v.shape[-1]) and v.shape[-1])
    if k is not None:
        out, dtype = int(p.choice([1, 2, 5, 8, 17])), p.values[k].dtype
        w, b = (p.const(p.array(*s).astype(dtype)) for s in ((out, p.values[k].shape[-1]), (out,)))
        p.add("linear", (k, w, b), topi.linear, *(p.values[i] for i in (k, w, b)))


def matmul(p):
    a = p.pick(lambda v: is_float(v) and v.ndim >= 2)
    if a is None:
        return
    if p.chance(0.3):
        v = p.values[a]
        p.add("gram", (a,), lambda x: topi.matmul(x, x, transpose_b=True), v)
        return
    b = p.pick(lambda v: v.dtype == p.values[a].dtype and v.ndim >= 2 and text(v)[-1] == text(p.values[a])[-1]
               and (v.ndim == 2 or text(v)[:-2] == text(p.values[a])[:-2]))
    p.add("matmul", (a, b), topi.matmul, p.values[a], p.values[b], transpose_b=True)


def einsum(p):
    a = p.pick(lambda v: is_float(v) and v.ndim == 2)
    if a is not None:
        b = p.pick(lambda v: v.dtype == p.values[a].dtype and text(v) == text(p.values[a]))
        equation = p.choice(["ij,kj->ik", "ij,ij->i", "ij,ij->ji", "ij,ij->", "ij,kj->jik"])
        if equation in ("ij,kj->ik", "ij,kj->jik") or b is not None:
            p.add("einsum", (a, b), lambda x, y: topi.einsum(equation, x, y), p.values[a], p.values[b],
                  attrs={"equation": equation})


def attention(p):
    q = p.pick(lambda v: v.dtype == "float32" and v.ndim == 4 and all(positive(d) for d in v.shape))
    if q is not None:
        k, v = (p.pick(lambda v: v.dtype == "float32" and text(v) == text(p.values[q])) for _ in range(2))
        p.add("attention", (q, k, v), topi.scaled_dot_product_attention, *(p.values[i] for i in (q, k, v)))


def images(p):
    return p.pick(lambda v: v.dtype in ("float32", "float64") and v.ndim == 4 and number(v.shape[1]) and v.shape[1]
                  and all(number(d) and d >= 1 for d in v.shape[2:]))


def convolution(p):
    k = images(p)
    if k is None:
        return
    v = p.values[k]
    c, size = v.shape[1], int(p.choice([1, 2, 3]))
    groups = c if p.chance(0.3) else 1
    filters = groups * int(p.choice([1, 2])) if groups > 1 else int(p.choice([1, 4, 8]))
    stride, padding = int(p.choice([1, 1, 2])), int(p.choice([0, 1]))
    if any(d + 2 * padding < size for d in v.shape[2:]):
        return
    w, b = (p.const(p.array(*s).astype(v.dtype)) for s in ((filters, c // groups, size, size), (filters,)))
    attrs = {"stride": stride, "padding": padding, "groups": groups}
    made = p.add("conv", (k, w, b), topi.conv, *(p.values[i] for i in (k, w, b)), attrs=attrs, **attrs)
    if p.chance(0.4):
        four = [p.const(a.astype(v.dtype)) for a in (p.array(filters), np.abs(p.array(filters)) + 0.5,
                                                      p.array(filters) + 1, p.array(filters))]
        p.add("batch_norm", (made, *four), topi.batch_norm, p.values[made], *(p.values[i] for i in four), eps=1e-2)


def pooling(p):
    k = images(p)
    if k is None:
        return
    v, size = p.values[k], int(p.choice([1, 2, 3]))
    padding = int(p.rng.integers(0, size // 2 + 1))
    if any(d + 2 * padding < size for d in v.shape[2:]):
        return
    if p.chance(0.2):
        p.add("global_avg_pool", (k,), topi.global_avg_pool, v)
        return
    name, attrs = p.choice(["max_pool", "avg_pool"]), {"stride": int(p.choice([1, 2])), "padding": padding}
    p.add(name, (k,), getattr(topi, name), v, size, attrs={"kernel": size, **attrs}, **attrs)


# reductions


def axes_of(p, v):
    count = v.ndim
    axes = tuple(int(a) for a in p.rng.permutation(count)[:p.rng.integers(1, count + 1)])
    return axes, p.chance(0.5)


def reduction(p):
    k = p.pick(lambda v: is_float(v) and v.ndim and all(positive(d) for d in v.shape))
    if k is not None:
        axes, keep = axes_of(p, p.values[k])
        name = p.choice(["sum", "mean", "max", "min", "var"])
        p.add(name, (k,), getattr(topi, name), p.values[k], axis=axes, keepdims=keep,
              attrs={"axes": axes, "keep": keep})


def integer_reduction(p):
    k = p.pick(lambda v: v.dtype in ("int32", "int64") and v.ndim and all(positive(d) for d in v.shape))
    if k is not None:
        axes, keep = axes_of(p, p.values[k])
        name = p.choice(["sum", "max", "min"])
        p.add(name, (k,), getattr(topi, name), p.values[k], axis=axes, keepdims=keep,
              attrs={"axes": axes, "keep": keep})


def empty_sum(p):
    k = p.pick(lambda v: is_float(v) and v.ndim)
    if k is not None:
        axes, keep = axes_of(p, p.values[k])
        p.add("sum", (k,), topi.sum, p.values[k], axis=axes, keepdims=keep, attrs={"axes": axes, "keep": keep})


def places(p):
    """Results that are places or an order, of exact values."""
    k = p.pick_at(lambda k, v: p.exact[k] and v.dtype == "float32" and v.ndim and positive(v.shape[-1]))
    if k is None:
        return
    v, name = p.values[k], p.choice(["argmax", "sort", "topk"])
    if name == "topk":
        if number(v.shape[-1]):
            most = int(p.rng.integers(1, v.shape[-1] + 1))
            p.add("topk", (k,), topi.topk, v, k=most, axis=-1, attrs={"k": most})
    else:
        p.add(name, (k,), getattr(topi, name), v, axis=-1, attrs={"axis": -1})


def running(p):
    k = p.pick(lambda v: is_float(v) and v.ndim)
    if k is not None:
        axis = int(p.rng.integers(p.values[k].ndim))
        p.add("cumsum", (k,), topi.cumsum, p.values[k], axis=axis, attrs={"axis": axis})


def rows(p):
    k = p.pick(lambda v: v.dtype in ("float32", "float64") and v.ndim and positive(v.shape[-1]))
    if k is None:
        return
    v = p.values[k]
    name = p.choice(["softmax", "log_softmax", "layer_norm", "rms_norm", "logsumexp"])
    if name == "softmax":
        axis = int(p.choice([a for a in range(v.ndim) if positive(v.shape[a])]))
        p.add(name, (k,), topi.softmax, v, axis=axis, attrs={"axis": axis})
    elif name == "log_softmax":
        p.add(name, (k,), topi.log_softmax, v, axis=-1)
    elif name == "logsumexp":
        p.add(name, (k,), topi.logsumexp, v, axis=-1, attrs={"axis": -1})
    elif number(v.shape[-1]):
        w, b = (p.const(p.array(v.shape[-1]).astype(v.dtype)) for _ in range(2))
        given = (k, w, b) if name == "layer_norm" else (k, w)
        p.add(name, given, getattr(topi, name), *(p.values[i] for i in given), eps=1e-2)


def per_image(p):
    k = p.pick(lambda v: v.dtype == "float32" and v.ndim == 4 and all(positive(d) for d in v.shape))
    if k is not None:
        p.add("instance_norm", (k,), topi.instance_norm, p.values[k], eps=1e-2)


# movement


def transpose(p):
    k = p.pick(lambda v: v.ndim >= 2)
    if k is not None:
        axes = tuple(int(a) for a in p.rng.permutation(p.values[k].ndim))
        p.add("transpose", (k,), topi.transpose, p.values[k], axes, attrs={"axes": axes})


def view(p):
    k = p.pick(lambda v: 1 <= v.ndim < 5)
    if k is None:
        return
    v, shape = p.values[k], list(p.values[k].shape)
    at, kind = int(p.rng.integers(len(shape))), p.rng.integers(5)
    if kind == 0 and at + 1 < len(shape):
        shape[at:at + 2] = [shape[at] * shape[at + 1]]
        p.view(k, topi.reshape, v, tuple(shape))
    elif kind == 1 and number(shape[at]) and shape[at] % 2 == 0 and shape[at]:
        shape[at:at + 1] = [2, shape[at] // 2]
        p.view(k, topi.reshape, v, tuple(shape))
    elif kind == 2 and shape[at] == 1:
        p.view(k, topi.squeeze, v, axis=at)
    elif kind == 3 and at + 1 < len(shape):
        p.view(k, topi.flatten, v, start=at, end=at + 1)
    else:
        p.view(k, topi.expand_dims, v, axis=at)


def concatenate(p):
    a = p.pick(lambda v: v.ndim and v.dtype != "bool")
    if a is None:
        return
    v = p.values[a]
    axis = int(p.rng.integers(v.ndim))
    rest = [d for k, d in enumerate(text(v)) if k != axis]
    parts = [a, *(p.pick(lambda w: w.dtype == v.dtype and w.ndim == v.ndim
                         and [d for k, d in enumerate(text(w)) if k != axis] == rest)
                  for _ in range(p.rng.integers(1, 3)))]
    if p.chance(0.3):
        parts = [k for k in parts if text(p.values[k]) == text(v)]
        p.add("stack", tuple(parts), lambda *xs: topi.stack(list(xs), axis=axis), *(p.values[k] for k in parts),
              attrs={"axis": axis})
    else:
        p.add("concatenate", tuple(parts), lambda *xs: topi.concatenate(list(xs), axis=axis),
              *(p.values[k] for k in parts), attrs={"axis": axis})


def strided(p):
    k = p.pick(lambda v: v.ndim and any(positive(d) for d in v.shape))
    if k is None:
        return
    v = p.values[k]
    axis = int(p.choice([a for a, d in enumerate(v.shape) if positive(d)]))
    if number(v.shape[axis]):
        begin = int(p.rng.integers(v.shape[axis]))
        end, step = int(p.rng.integers(begin, v.shape[axis] + 1)), int(p.choice([1, 2, 3]))
    else:
        begin, end, step = int(p.choice([0, 1, -2])), int(p.choice([2**31 - 1, 4, -1])), int(p.choice([1, 1, 2]))
    p.add("slice", (k,), topi.strided_slice, v, begin=(begin,), end=(end,), strides=(step,), axes=(axis,),
          attrs={"axis": axis, "begin": begin, "end": end, "step": step})


def parts(p):
    k = p.pick(lambda v: v.ndim and any(number(d) and d >= 2 for d in v.shape))
    if k is None:
        return
    v = p.values[k]
    if number(v.shape[0]) and 1 <= v.shape[0] <= 4 and p.chance(0.3):
        p.add("unstack", (k,), topi.unstack, v, axis=0)
        return
    axis = int(p.choice([a for a, d in enumerate(v.shape) if number(d) and d >= 2]))
    at = int(p.rng.integers(1, v.shape[axis]))
    p.add("split", (k,), topi.split, v, (at, v.shape[axis] - at), axis=axis, attrs={"axis": axis, "at": at})


def moved(p):
    k = p.pick(lambda v: v.ndim and all(positive(d) for d in v.shape))
    if k is None:
        return
    v, name = p.values[k], p.choice(["flip", "roll", "tile", "repeat", "tril", "diagonal", "broadcast"])
    axis = int(p.rng.integers(v.ndim))
    if name == "flip":
        p.add(name, (k,), topi.flip, v, axis=axis, attrs={"axis": axis})
    elif name == "roll":
        shift = int(p.rng.integers(-3, 4))
        p.add(name, (k,), topi.roll, v, shift, axis=axis, attrs={"axis": axis, "shift": shift})
    elif name == "tile":
        times = tuple(int(t) for t in p.rng.integers(1, 3, size=v.ndim))
        p.add(name, (k,), topi.tile, v, times, attrs={"times": times})
    elif name == "repeat":
        p.add(name, (k,), topi.repeat, v, 2, axis=axis, attrs={"axis": axis, "times": 2})
    elif name == "broadcast":
        p.spread(k, topi.broadcast_to, v, (2, *v.shape))
    elif v.ndim >= 2 and name == "tril" and v.dtype != "bool":
        shift = int(p.rng.integers(-2, 3))
        p.add(name, (k,), topi.tril, v, k=shift, attrs={"k": shift})
    elif v.ndim >= 2 and name == "diagonal" and text(v)[-1] == text(v)[-2]:
        p.add(name, (k,), topi.diagonal, v)


def padded(p):
    k = p.pick(lambda v: v.ndim and is_float(v))
    if k is None:
        return
    v = p.values[k]
    widths = tuple((int(a), int(b)) for a, b in p.rng.integers(0, 3, size=(v.ndim, 2)))
    if p.chance(0.3) and all(number(d) and d > 2 for d in v.shape):
        p.add("reflect", (k,), topi.pad, v, widths, mode="reflect", attrs={"widths": widths})
    else:
        p.add("pad", (k,), topi.pad, v, widths, value=0.5, attrs={"widths": widths, "value": 0.5})


def indexed(p):
    """Elements at places that a constant or a parameter says."""
    k = p.pick(lambda v: v.ndim and number(v.shape[0]) and v.shape[0] > 0)
    if k is None:
        return
    v = p.values[k]
    name = p.choice(["take", "take", "gather", "scatter", "one_hot"])
    extent = v.shape[0]
    if name == "scatter" and all(number(d) for d in v.shape) and v.dtype != "bool":
        at = p.const(np.stack([p.rng.permutation(extent)] * 1).reshape(-1, *(1,) * (v.ndim - 1))
                     * np.ones(v.shape, "int64"))
        updates = p.pick(lambda w: w.dtype == v.dtype and text(w) == text(v))
        p.add(name, (k, at, updates), topi.scatter, v, p.values[at], p.values[updates], axis=0, attrs={"axis": 0})
        return
    shape = v.shape if name == "gather" and all(number(d) for d in v.shape) else (int(p.choice([0, 1, 3, 5])),)
    if p.outer is None and p.room() and p.chance(0.5):
        at = p.param(shape, "int64", (0, extent))
    else:
        at = p.const(p.rng.integers(0, extent, size=shape).astype("int64"))
    if name == "one_hot":
        p.add(name, (at,), topi.one_hot, p.values[at], depth=extent, attrs={"depth": extent})
    elif name == "gather" and shape == v.shape:
        p.add(name, (k, at), topi.gather, v, p.values[at], axis=0, attrs={"axis": 0})
    else:
        p.add("take", (k, at), topi.take, v, p.values[at], axis=0, attrs={"axis": 0})


# choices and loops


def steady(p, k):
    """A step from value k to one of its type."""
    v, kind = p.values[k], p.rng.integers(5)
    if kind == 0 and v.ndim and all(positive(d) for d in v.shape):
        mean = p.add("mean", (k,), topi.mean, v, axis=(-1,), keepdims=True, attrs={"axes": (-1,), "keep": True})
        return p.add("subtract", (k, mean), topi.subtract, v, p.values[mean])
    if kind == 1:
        return with_number(p, k)
    if kind == 2:
        other = p.pick(lambda w: w.type == v.type)
        return p.add("add", (k, other), topi.add, v, p.values[other])
    return unary(p, k)


def binds_its_sizes(v):
    """A function with a parameter of this type has the sizes that are in it."""
    return v.dtype == "float32" and all(number(d) or isinstance(d, Var) for d in v.shape)


def inner(p, name, types):
    """A program within a program, with parameters of these types."""
    q = Program(p.rng, p)
    for k, t in enumerate(types):
        q.param(t.shape, t.dtype, name=f"{name}_x{k}")
    return q


def body_of(q, name, results):
    """The function of a program within a program; results(q) gives the positions of its results."""
    with q.bb.function(name, q.params):
        q.outputs = results(q)
        q.bb.emit_func_output([q.values[k] for k in q.outputs])
    return q.bb.get()[name]


def some_steps(q, k, count=3):
    for _ in range(q.rng.integers(1, count + 1)):
        k = steady(q, k)
    return k


def branch(p):
    k = p.pick(binds_its_sizes)
    if k is None or p.depth > 1:
        return
    v = p.values[k]
    flag = p.pick(lambda w: w.dtype == "bool" and all(d == 1 for d in w.shape))
    if flag is None:
        if p.outer is not None or not p.room():
            return
        flag = p.param((), "bool")
    def results(q):
        if q.chance(0.2):
            branch(q)
        return [some_steps(q, 0)]
    a, b = (inner(p, f"{name}{len(p.values)}", [v.type]) for name in ("then", "orelse"))
    then, orelse = (body_of(q, f"{name}{len(p.values)}", results) for q, name in ((a, "then"), (b, "orelse")))
    p.call(lambda flag, x, ref: (a if bool(ref.store(flag).reshape(-1)[0]) else b).evaluate(ref, [x], *p.now),
           (flag, k), If(then, orelse))


def turns(p):
    k = p.pick(binds_its_sizes)
    if k is None or p.depth > 1:
        return
    v, stacked = p.values[k], p.chance(0.5)
    steps = int(p.rng.integers(0, 4))
    if stacked or p.outer is not None or not p.room():
        count = p.const(np.array(steps, "int64"))
    else:
        count = p.param((), "int64", (0, 4))
    read = p.pick(lambda w: w.type == v.type)
    q = inner(p, f"body{len(p.values)}", [BlockBuilder.param("i", (), "int64").type, v.type, v.type])
    limit = int(p.rng.integers(1, 4)) if not stacked else 100

    def results(q):
        most = q.const(np.array(limit, "int64"))
        go = q.add("less", (0, most), topi.less, q.values[0], q.values[most])
        mixed = q.add("add", (1, 2), topi.add, q.values[1], q.values[2])
        last = some_steps(q, mixed, 2)
        last = q.add("tanh", (last,), topi.tanh, q.values[last])
        return [go, last, mixed] if stacked else [go, last]
    loop = Loop(body_of(q, f"body{len(p.values)}", results), 1, steps if stacked else 0)
    go = p.const(np.array(True))

    def run(count, go, x, other, ref):
        at, rows = 0, []
        keep = bool(ref.store(go))
        while at < int(ref.store(count)) and keep:
            made = q.evaluate(ref, [ref.load(np.array(at, "int64")), x, other], *p.now)
            keep, x = bool(ref.store(made[0])), made[1]
            rows += [ref.store(r) for r in made[2:]]
            at += 1
        if not stacked:
            return [x]
        return [x, ref.load(np.stack(rows) if rows else np.zeros((0, *ref.store(x).shape)))]
    p.call(run, (count, go, k, read), loop)


MOVES = [unary, unary, unary, several, binary, binary, binary, integers, with_number, with_constant, cast, comparison,
         logic, choice, stepwise, linear, linear, matmul, einsum, attention, convolution, pooling, reduction, reduction,
         integer_reduction, empty_sum, places, running, rows, rows, per_image, transpose, transpose, view, view, view,
         concatenate, concatenate, strided, strided, parts, moved, padded, indexed, indexed, branch, turns]
