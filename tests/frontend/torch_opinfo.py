"""PyTorch's own samples of its operators (OpInfo), compiled and compared: `python -m tests.frontend.torch_opinfo`.

An OpInfo counts as core where its samples trace to operators of the core ATen set alone. Each sample is traced,
imported, compiled and compared with PyTorch: floats with its results in float64, all else exactly. Tracing takes
operators apart that torch.export keeps: with --export the samples go through it.

    python -m tests.frontend.torch_opinfo [--all] [--export] [--samples 6] [--only NAME ...] [--dtypes float32 int64]
                                          [--part 1/2]
"""
from __future__ import annotations

import argparse
import collections
import re
import signal
import sys
import time
import warnings

import numpy as np
import torch
from torch._subclasses.functional_tensor import dispatch_functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from tilewright.frontend.torch.exported import compile_exported_program
from tilewright.frontend.torch.function import import_graph
from tilewright.graph.compile import build_function

SECONDS = 60                           # of one sample
UNSPECIFIED = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}


class Slow(Exception):
    """A sample took too long."""


def flat_function(op, sample):
    """(a function of the tensors of a sample, these tensors)"""
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [k for k, x in enumerate(leaves) if isinstance(x, torch.Tensor)]

    def function(*tensors):
        filled = list(leaves)
        for k, t in zip(places, tensors):
            filled[k] = t
        first, args, kwargs = pytree.tree_unflatten(filled, spec)
        return op(first, *args, **kwargs)
    return function, [leaves[k].detach() for k in places]


def trace(function, tensors):
    """The graph of ATen operators, without those that change their inputs."""
    module = make_fx(dispatch_functionalize(function), tracing_mode="fake")(*tensors)
    module.graph.eliminate_dead_code()
    return module


def called(module):
    return [n.target for n in module.graph.nodes if n.op == "call_function" and hasattr(n.target, "tags")]


def signature(sample):
    leaves, _ = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    return tuple((tuple(x.shape), str(x.dtype)) if isinstance(x, torch.Tensor) else "x" for x in leaves), \
        tuple(sorted(sample.kwargs))


def chosen(op, dtype, most):
    """Up to `most` samples, those with other shapes first."""
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=False))
    seen, first, rest = set(), [], []
    for s in samples:
        key = signature(s)
        (rest if key in seen else first).append(s)
        seen.add(key)
    step = max(len(first) / most, 1)
    picked = [first[int(k * step)] for k in range(min(most, len(first)))]
    return (picked + rest)[:most]


def copied(x, dtype=None):
    """A copy of a tensor and of the memory around it, which as_strided reads."""
    count = x.untyped_storage().nbytes() // x.element_size()
    memory = x.as_strided((count,), (1,), 0).clone()
    return memory.to(dtype or x.dtype).as_strided(x.shape, x.stride(), x.storage_offset())


def wide(x):
    return copied(x, torch.float64 if x.dtype == torch.float32 else None)


def tensors_of(x):
    return [t for t in pytree.tree_leaves(x) if isinstance(t, torch.Tensor)]


def tied(got, wanted, name, given):
    """Other places of equal elements: orders need not keep those of equals."""
    if name not in ("sort", "topk", "argsort", "msort", "kthvalue") or wanted.dtype != torch.int64:
        return False
    return any(torch.equal(given.gather(d, got), given.gather(d, wanted)) for d in range(given.ndim)
               if all(n <= m for k, (n, m) in enumerate(zip(got.shape, given.shape)) if k != d)
               and (not got.numel() or int(got.max()) < given.shape[d]))


def compare(got, wanted, exact, name, given):
    """Why results differ; "" where they are equal. exact: what PyTorch computes in float64, or None."""
    if len(got) != len(wanted):
        return f"{len(got)} results, {len(wanted)} wanted"
    for k, (a, b) in enumerate(zip(got, wanted)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"result {k} is {a.dtype} {tuple(a.shape)}, wanted {b.dtype} {tuple(b.shape)}"
        if name in UNSPECIFIED or not b.numel():
            continue
        if not b.dtype.is_floating_point:
            if not torch.equal(a, b) and not tied(a, b, name, given):
                return f"result {k} differs: {a.flatten()[:5].tolist()}, wanted {b.flatten()[:5].tolist()}"
            continue
        c = b.double() if exact is None else exact[k].double()
        a, b = a.double(), b.double()
        same = (a == c) | (a.isnan() & c.isnan()) | (a == b) | (a.isnan() & b.isnan())
        error, own = (a - c).abs(), (b - c).abs()
        bound = torch.maximum(1e-5 + 1e-4 * c.abs(), 4 * own)
        bad = ~same & ~(error <= bound)
        if bad.any():
            at = bad.flatten().nonzero()[0].item()
            return (f"result {k} differs in {int(bad.sum())} of {a.numel()}: {a.flatten()[at].item()!r}, wanted "
                    f"{c.flatten()[at].item()!r}")
    return ""


def through_trace(function, tensors):
    """What the operators that tracing finds give."""
    made = import_graph(trace(function, tensors), {})
    if not made.function.results:
        return None
    sizes = made.values(tensors)
    return made.returned(build_function(made.function)(*made.arguments(tensors, sizes)), tensors, sizes)


def through_export(function, tensors):
    """What a program of torch.export gives."""
    class Program(torch.nn.Module):
        def forward(self, *given):
            return function(*given)
    program = torch.export.export(Program(), tuple(map(copied, tensors)))
    return compile_exported_program(program)(*map(copied, tensors))


def run_sample(op, sample, name, run=through_trace):
    """The cause of a failure; "" for none."""
    function, tensors = flat_function(op, sample)
    wanted = tensors_of(function(*map(copied, tensors)))
    exact = None
    if any(t.dtype == torch.float32 for t in tensors):
        try:
            exact = tensors_of(function(*map(wide, tensors)))
        except Exception:
            exact = None
        if exact is not None and [t.shape for t in exact] != [t.shape for t in wanted]:
            exact = None
    got = run(function, tensors)
    return "" if got is None else compare(tensors_of(got), wanted, exact, name, tensors[0] if tensors else None)


def is_core(op, dtypes):
    """Samples of the operator trace to core operators alone."""
    for dtype in dtypes:
        for sample in chosen(op, dtype, 2):
            try:
                function, tensors = flat_function(op, sample)
                found = called(trace(function, tensors))
            except Exception:
                return False
            if not found or not all(torch.Tag.core in t.tags or str(t).startswith("prims.") for t in found):
                return False
        return True
    return False


def cause(error):
    text = str(error).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and lines[0].startswith("the model has nodes"):
        return lines[1][:230]
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}"


def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="operators whose form is not core too")
    parser.add_argument("--export", action="store_true", help="through torch.export")
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--dtypes", nargs="*", default=["float32", "int64", "bool"])
    parser.add_argument("--part", default="1/1", help="k/n: every n-th operator of all, from number k on")
    parser.add_argument("--verbose", action="store_true")
    chosen_options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    np.random.seed(0)

    def alarm(*_):
        raise Slow(f"more than {SECONDS} s")
    signal.signal(signal.SIGALRM, alarm)
    causes = collections.defaultdict(list)
    passed_ops = all_ops = passed_samples = all_samples = 0
    start = time.time()
    run = through_export if chosen_options.export else through_trace
    part, parts = map(int, chosen_options.part.split("/"))
    for op in op_db[part - 1::parts]:
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        if chosen_options.only and name not in chosen_options.only and op.name not in chosen_options.only:
            continue
        dtypes = [d for d in (getattr(torch, n) for n in chosen_options.dtypes) if d in op.dtypes]
        if not dtypes or not chosen_options.all and not chosen_options.only and not is_core(op, dtypes):
            continue
        all_ops += 1
        good = True
        for dtype in dtypes:
            for k, sample in enumerate(chosen(op, dtype, chosen_options.samples)):
                all_samples += 1
                signal.alarm(SECONDS)
                try:
                    why = run_sample(op, sample, op.name, run)
                except (Exception, Slow) as error:
                    if chosen_options.verbose:
                        import traceback
                        traceback.print_exc()
                    why = cause(error)
                finally:
                    signal.alarm(0)
                if why:
                    good = False
                    causes[re.sub(r" \(node \w+\)", "", why)].append((name, f"{dtype} sample {k}"))
                    if chosen_options.only:
                        print(f"{name} {dtype} {k}: {why} {signature(sample)} {sample.args} {sample.kwargs}")
                else:
                    passed_samples += 1
        passed_ops += good
        if all_ops % 20 == 0:
            print(f"  {all_ops} operators, {passed_ops} passed, {time.time() - start:.0f} s", flush=True)
    print("\nfailures, by cause:")
    for why, where in sorted(causes.items(), key=lambda item: -len(item[1])):
        found = collections.Counter(name for name, _ in where)
        print(f"  {why}\n    {len(where)} samples of {', '.join(found)}")
    print(f"\n{passed_ops} of {all_ops} operators ({100 * passed_ops / max(all_ops, 1):.1f} %), "
          f"{passed_samples} of {all_samples} samples, {time.time() - start:.0f} s")
    return 0 if passed_ops >= 0.9 * all_ops else 1


if __name__ == "__main__":
    sys.exit(main())
