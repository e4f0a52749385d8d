"""The engines of the table, as `worker.py` runs them: each computes a row's operator, once to be checked."""
from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import kernel_cases  # noqa: F401 (defines the operators)
from kernel_cases.rows import Row, several

Prepared = tuple[Callable[[], object], dict[str, Any]]


class NoWay(Exception):
    """The engine has no operator for the row, or none of its types."""


# ---- Tilewright


def definition(row: Row, symbolic: bool = False) -> tuple[list[Any], list[Any]]:
    """(placeholders, results) of the row's operator; symbolic: its leading extent is a variable."""
    from tilewright import te, topi
    shapes: list[list[Any]] = [list(s) for s in row.shapes]
    if symbolic:
        extent, places = te.var("n"), row.operator.leading(*row.shapes)
        if not places:
            raise NoWay("no extent of this operator is symbolic")
        for operand, axis in places:
            shapes[operand][axis] = extent
    inputs = [te.placeholder(shape, x.dtype, name=f"x{k}") for k, (shape, x) in enumerate(zip(shapes, row.operands))]
    return inputs, several(row.operator.te(topi, *inputs))


def compiled(row: Row, threads: int, symbolic: bool) -> tuple[Any, list[str], dict[str, Any]]:
    """(function, types of results, what compiling it took): from te to a callable, without the cache of objects."""
    import tilewright as tw
    from tilewright import te
    start = time.perf_counter()
    inputs, results = definition(row, symbolic)
    module = tw.compile(te.create_prim_func([*inputs, *results], name="kernel"), target=f"llvm -num-cores={threads}")
    function = module["kernel"]
    seconds = time.perf_counter() - start
    types = [t.dtype for t in results]
    return function, types, {"compile_seconds": seconds, "object_bytes": sum(len(i.data) for i in module.images),
                             "dtypes": types}


@functools.cache
def start_compiler() -> None:
    """Compile something small, so that no row pays for what the first one loads."""
    from kernel_cases.products import matmul
    os.environ["TILEWRIGHT_CACHE"] = "0"
    compiled(matmul("", 8, 8, 8), 1, False)


def _tilewright(threads: int, data: dict[str, Any], symbolic: bool) -> Prepared:
    import tilewright as tw
    start_compiler()
    tw.set_num_threads(threads)
    row = Row.of(**data)
    function, types, facts = compiled(row, threads, symbolic)
    given = [tw.nd.array(a, dtype=x.dtype) for a, x in zip(row.arrays(), row.operands)]
    outs = [tw.nd.empty(shape, dtype) for shape, dtype in zip(row.results, types, strict=True)]
    for out in outs:
        out[...] = float("nan") if "float" in out.dtype else 77        # what is not written is wrong
    function(*given, *outs)
    row.check([out.numpy() for out in outs])
    return lambda: function(*given, *outs), facts


def prepare_tilewright(threads: int, **data: Any) -> Prepared:
    return _tilewright(threads, data, symbolic=False)


def prepare_tilewright_symbolic(threads: int, **data: Any) -> Prepared:
    return _tilewright(threads, data, symbolic=True)


# ---- peers


def _prepared(row: Row, call: Callable[[], Any], arrays: Callable[[Any], Sequence[np.ndarray]]) -> Prepared:
    """The call, after a check of its results."""
    found = call()
    if found is None:
        raise NoWay(f"no way to compute {row.name}")
    row.check(arrays(found))
    return call, {}


def prepare_numpy(threads: int, **data: Any) -> Prepared:
    row = Row.of(**data)
    if not row.operator.numpy_is_peer:
        raise NoWay(f"NumPy has no {row.name}")
    operands = row.arrays()
    return _prepared(row, lambda: row.operator.numpy(*operands), lambda y: [np.asarray(t) for t in several(y)])


def _torch(threads: int, data: dict[str, Any], wrap: Callable[..., Any]) -> Prepared:
    import torch
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    row = Row.of(**data)
    operands = [torch.from_numpy(a).to(getattr(torch, x.dtype)) for a, x in zip(row.arrays(), row.operands)]
    function = wrap(functools.partial(row.operator.torch, torch))
    return _prepared(row, lambda: function(*operands), lambda y: [
        (t.float() if t.is_floating_point() else t).numpy() for t in several(y)])


def prepare_torch(threads: int, **data: Any) -> Prepared:
    return _torch(threads, data, lambda f: f)


def prepare_torch_compiled(threads: int, **data: Any) -> Prepared:
    import torch
    torch.compiler.reset()
    return _torch(threads, data, lambda f: torch.compile(f, dynamic=False))


def prepare_jax(threads: int, **data: Any) -> Prepared:
    import jax
    jax.clear_caches()
    row = Row.of(**data)
    operands = [jax.numpy.asarray(a).astype(x.dtype) for a, x in zip(row.arrays(), row.operands)]
    function = jax.jit(functools.partial(row.operator.jax, jax))
    return _prepared(row, lambda: jax.block_until_ready(function(*operands)), lambda y: [
        np.asarray(t.astype("float32") if t.dtype == "bfloat16" else t) for t in several(y)])


def prepare_onnxruntime(threads: int, **data: Any) -> Prepared:
    import onnxruntime as ort

    from kernel_cases.onnx_graph import model
    row = Row.of(**data)
    if any(x.dtype == "bfloat16" for x in row.operands):
        raise NoWay("ONNX Runtime computes no bfloat16 on a CPU")
    built = model(row)
    if built is None:
        raise NoWay(f"no ONNX graph of {row.name}")
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    session = ort.InferenceSession(built, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    held = [ort.OrtValue.ortvalue_from_numpy(a) for a in row.arrays()]
    for value, name in zip(held, session.get_inputs()):
        binding.bind_ortvalue_input(name.name, value)
    for name in session.get_outputs():
        binding.bind_output(name.name)
    session.run_with_iobinding(binding)
    results = binding.get_outputs()                                    # every call writes to the same memory
    for value, name in zip(results, session.get_outputs()):
        binding.bind_ortvalue_output(name.name, value)

    def call() -> Any:
        session.run_with_iobinding(binding)
        return results
    return _prepared(row, call, lambda y: [t.numpy() for t in y])
