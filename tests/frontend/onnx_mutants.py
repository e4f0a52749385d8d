"""Damaged models: `python -m tests.frontend.onnx_mutants --count 10000 --seed 0`.

Each case is a small model, changed in its bytes or in its fields, that is imported in a process of bounded memory: it
is imported, or refused by an ImportModelError. All else (another exception, a crash, a case of more than 20 seconds)
is printed with the seed that repeats it, and the exit status is 1. Every `--build`-th case that is imported is compiled
and run too; there any error of Tilewright is a refusal.
"""
from __future__ import annotations

import argparse
import collections
import random
import resource
import signal
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

import numpy as np
from onnx import ModelProto, TensorProto, helper

from tests.frontend.onnx_models import BOOL, INT64, graph, model, node, tensor, transformer
from tilewright.frontend.onnx import from_onnx
from tilewright.graph.compile import build_function
from tilewright.graph.ir.types import extents
from tilewright.support.errors import ImportModelError, TilewrightError

SECONDS, BYTES = 20, 6 << 30
NUMBERS = (0, 1, -1, 2, 3, 7, 64, 1000, -5, 2**15, 2**20, 2**31 - 1, 2**31, -2**31, 2**40, 2**62, -2**63, 2**63 - 1)
OPERATORS = ("Relu", "Add", "Conv", "Reshape", "Concat", "Loop", "If", "Softmax", "Split", "Pad", "Gather", "Range",
             "Resize", "TopK", "Tile", "Expand", "Slice", "LSTM", "QuantizeLinear", "ConstantOfShape", "Einsum", "DFT",
             "MaxPool", "NonZero", "Scan", "SequenceAt", "Identity", "Attention", "CenterCropPad", "Nothing", "")


def bases():
    """The models that are damaged."""
    body = graph([node("Add", "v x", "w"), node("Identity", "c", "d")],
                 [tensor("i", [], INT64), tensor("c", [], BOOL), tensor("v", None)],
                 [tensor("d", [], BOOL), tensor("w", None), tensor("w", None)])
    loop = model([helper.make_node("Loop", ["turns", "", "x"], ["last", "all"], body=body)], [tensor("x", ["n"])],
                 [tensor("last", None), tensor("all", None)], {"turns": np.int64(3)})
    twice = helper.make_function("own", "Twice", ["x"], ["y"], [node("Add", "x x", "y")], [helper.make_opsetid("", 18)])
    again = helper.make_function("own", "Again", ["x"], ["y"], [
        helper.make_node("Twice", ["x"], ["t"], domain="own"), helper.make_node("Twice", ["t"], ["y"], domain="own")],
        [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)])
    called = model([helper.make_node("Again", ["x"], ["y"], domain="own")], [tensor("x", ["n", 3])],
                   [tensor("y", None)], functions=[twice, again], domains=["own"])
    w = np.ones((4, 3, 3, 3), "float32")
    images = model([node("Conv", "x w b", "c", pads=[1, 1, 1, 1], strides=[2, 2]), node("Relu", "c", "r"),
                    node("MaxPool", "r", "m", kernel_shape=[2, 2], strides=[2, 2]), node("Shape", "m", "s"),
                    node("Slice", "s begin end", "t"), node("Concat", "t open", "u", axis=0),
                    node("Reshape", "m u", "f"), node("Pad", "f pads", "p"), node("TopK", "p k", "v i"),
                    node("Gather", "v zero", "g", axis=1), node("Resize", "x none none2 sizes", "z", mode="linear"),
                    node("Split", "p", "h1 h2", axis=1, num_outputs=2)],
                   [tensor("x", ["n", 3, 16, 16])], [tensor("g", None), tensor("z", None), tensor("h2", None)],
                   {"w": w, "b": np.zeros(4, "float32"), "begin": np.array([0]), "end": np.array([1]),
                    "open": np.array([-1]), "pads": np.array([0, 1, 0, 1]), "k": np.array([3]), "zero": np.int64(0),
                    "none": np.zeros(0, "float32"), "none2": np.zeros(0, "float32"),
                    "sizes": np.array([1, 3, 8, 8])})
    images.graph.node[10].input[:] = ["x", "", "", "sizes"]
    images.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    quantized = model([node("DynamicQuantizeLinear", "x", "q s z"), node("DequantizeLinear", "q s z", "y"),
                       node("QuantizeLinear", "y s2 z2", "a", axis=1), node("CumSum", "y axis", "c"),
                       node("LSTM", "l w r", "o h cc", hidden_size=2),
                       node("Einsum", "x x", "e", equation="ij,kj")],
                      [tensor("x", [2, 3]), tensor("l", ["t", 1, 3])],
                      [tensor("a", None, TensorProto.INT8), tensor("c", None), tensor("h", None), tensor("e", None)],
                      {"s2": np.ones(3, "float32"), "z2": np.zeros(3, "int8"), "axis": np.int64(1),
                       "w": np.ones((1, 8, 3), "float32"), "r": np.ones((1, 8, 2), "float32")}, opset=21)
    own = {"domain": "com.microsoft"}
    fused = model([node("MatMulNBits", "x w s", "p", K=32, N=48, block_size=32, **own),
                   node("Split", "p", "q k v", axis=2, num_outputs=3),
                   node("MultiHeadAttention", "q k v", "a", num_heads=2, unidirectional=1, **own),
                   node("GroupQueryAttention", "q k v old old ends total table table", "g keys values", num_heads=1,
                        kv_num_heads=1, do_rotary=1, **own),
                   node("SkipLayerNormalization", "a g weight", "n", **own),
                   node("QuantizeLinear", "n one zero", "i", **own),
                   node("QLinearAdd", "i one zero i one zero one zero", "y", **own)],
                  [tensor("x", [1, 3, 32]), tensor("old", [1, 1, 2, 16])],
                  [tensor("y", None, TensorProto.UINT8), tensor("keys", None)],
                  {"w": np.ones((48, 1, 16), "uint8"), "s": np.ones((48, 1), "float32"), "ends": np.array([4], "int32"),
                   "total": np.array(5, "int32"), "table": np.ones((8, 8), "float32"), "weight": np.ones(16, "float32"),
                   "one": np.float32(1), "zero": np.uint8(0)}, domains=["com.microsoft"])
    return [m.SerializeToString() for m in (transformer(), loop, called, images, quantized, fused)]


def damaged_bytes(data, rng):
    """The bytes of a model with some changed, left out, repeated, or cut off."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(out))
        kind = rng.randrange(5)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at] = rng.randrange(256)
        elif kind == 2:
            del out[at:at + rng.choice((1, 2, 8, 100))]
        elif kind == 3:
            out[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 2, 9))))
        else:
            out = out[:max(at, 1)] if rng.random() < 0.3 else out[:at] + out[max(at - 50, 0):]
        if not out:
            break
    return bytes(out)


def messages(message):
    """All messages within one, itself first."""
    found = [message]
    for k in range(10**6):
        if k == len(found):
            return found
        for field, value in found[k].ListFields():
            if field.message_type is not None:
                found += list(value) if hasattr(value, "append") or hasattr(value, "add") else [value]
    return found


def damaged_fields(data, rng):
    """A model with some of its fields changed, taken from elsewhere, or left out."""
    proto = ModelProto.FromString(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = [(m, f, v) for m in messages(proto) for f, v in m.ListFields()]
        if places:
            message, field, value = places[rng.randrange(len(places))]
            try:
                _change(message, field, value, places, rng)
            except (ValueError, TypeError):
                continue
    return proto.SerializeToString()


def _change(message, field, value, places, rng):
    repeated = hasattr(value, "append") or hasattr(value, "add")
    if rng.random() < 0.1:
        message.ClearField(field.name)
    elif repeated and rng.random() < 0.4 and len(value):
        k = rng.randrange(len(value))
        action = rng.randrange(3)
        if action == 0:
            del value[k]
        elif action == 1 and field.message_type is not None:
            value.add().CopyFrom(_copy(value[k]))
        elif action == 1:
            value.append(value[k])
        else:
            kept = [_copy(v) for v in value]
            rng.shuffle(kept)
            message.ClearField(field.name)
            getattr(message, field.name).extend(kept)
    elif field.message_type is not None:
        others = [v for m, f, v in places if f.message_type is field.message_type and not hasattr(v, "add")]
        if others and not repeated:
            value.CopyFrom(_copy(rng.choice(others)))
    elif repeated and len(value):
        value[rng.randrange(len(value))] = _scalar(field, value[0], places, rng)
    elif not repeated:
        setattr(message, field.name, _scalar(field, value, places, rng))


def _copy(value):
    """A value that does not lie within the message that is changed."""
    return type(value).FromString(value.SerializePartialToString()) if hasattr(value, "ListFields") else value


def _scalar(field, value, places, rng):
    if isinstance(value, bytes):
        return damaged_bytes(value, rng) if value else b"\0"
    if isinstance(value, str):
        if field.name == "op_type":
            return rng.choice(OPERATORS)
        same = [v for _, f, v in places if f.name == field.name and isinstance(v, str)]
        return rng.choice([*same, "", "x", "../up", "a" * 300, "%s", "ai.onnx"])
    if isinstance(value, float):
        return rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf"), 0.5, -0.0))
    return rng.choice((*NUMBERS, value + 1, value - 1, -value))


def mutant(seed, data):
    """The bytes of case number `seed`."""
    rng = random.Random(seed)
    base = rng.choice(data)
    return damaged_bytes(base, rng) if rng.random() < 0.4 else damaged_fields(base, rng)


def outcome(case, build=False):
    """"imported", "refused", "run", "not run". Raises what is neither an import nor a refusal."""
    try:
        function = from_onnx(case)
    except ImportModelError:
        return "refused"
    if not build:
        return "imported"
    try:
        run = build_function(function)
        shapes = [extents(p.shape, dict.fromkeys(function.sizes, 2)) for p in function.params]
        if sum(p.type.nbytes(dict.fromkeys(function.sizes, 2)) for p in function.params) > 1 << 28:
            return "not run"
        run(*(np.zeros(s, p.dtype) for s, p in zip(shapes, function.params)))
        return "run"
    except (TilewrightError, MemoryError):
        return "not run"


def _limit(nbytes):
    resource.setrlimit(resource.RLIMIT_AS, (nbytes, nbytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class TooLong(BaseException):
    """A case takes longer than it may."""


def _stop(*_):
    raise TooLong(f"more than {SECONDS} s")


def chunk(seeds, build):
    """(counts of outcomes, what went wrong) of some cases."""
    data, counts, wrong = bases(), collections.Counter(), []
    signal.signal(signal.SIGALRM, _stop)
    for seed in seeds:
        signal.alarm(SECONDS)
        try:
            counts[outcome(mutant(seed, data), bool(build) and seed % build == 0)] += 1
        except (Exception, TooLong) as error:
            wrong.append((seed, f"{type(error).__name__}: {str(error)[:200]}"))
        finally:
            signal.alarm(0)
    return counts, wrong


def run(count, seed, processes=2, build=0, size=50):
    """(counts of outcomes, what went wrong) of `count` cases from `seed` on."""
    counts, wrong = collections.Counter(), []
    parts = [range(k, min(k + size, seed + count)) for k in range(seed, seed + count, size)]
    with ProcessPoolExecutor(processes, initializer=_limit, initargs=(BYTES,)) as pool:
        waiting = {pool.submit(chunk, part, build): part for part in parts}
        for done in as_completed(waiting):
            try:
                found, bad = done.result()
                counts += found
                wrong += bad
            except BrokenProcessPool:
                wrong.append((waiting[done].start, f"a process ended in the cases {waiting[done]}, or beside them"))
                break
    return counts, wrong


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--build", type=int, default=0, help="compile and run every so many-th case")
    given = options.parse_args()
    counts, wrong = run(given.count, given.seed, given.processes, given.build)
    for seed, text in wrong:
        print(f"seed {seed}: {text}")
    print(f"{given.count} cases from {given.seed} on: {dict(counts)}, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
