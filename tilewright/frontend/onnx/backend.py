"""The interface `onnx.backend.base.Backend`, by which programs and the tests of the onnx package run models."""
from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.frontend.onnx.files import read_model
from tilewright.frontend.onnx.model import from_onnx
from tilewright.frontend.onnx.optional import onnx
from tilewright.frontend.onnx.tensors import CODED, NARROW
from tilewright.graph.compile import build_function
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import ImportModelError

_NARROW = {kind: dtype for kind, dtype, _ in NARROW.values()}


class Prepared:
    """A model that can be run. What its shapes depend on is compiled in: a run with other such elements compiles anew.

    Which inputs these are is what importing the model says: the shape of a Reshape, the condition of an If.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        graph = read_model(model)[0].graph
        constant = {t.name for t in graph.initializer}
        self.names = [i.name for i in graph.input if i.name not in constant]
        self.structure = {i.name: i.type.WhichOneof("value") for i in graph.input}
        self.needs: tuple[str, ...] = ()
        self.built: dict[Any, tuple[Any, list[tuple[Any, ...]], list[str]]] = {}
        self.exact = any(self.structure[n] != "tensor_type" for n in self.names)
        if not self.exact:
            try:
                self._build({}, {})
            except ImportModelError as error:
                self.exact = not all(_is_fixed(i.type.tensor_type) for i in graph.input if i.name in self.names)
                if not error.needs and not self.exact:
                    raise
                self.needs = error.needs

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """The results for inputs in order, or by name."""
        given = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(self.names, inputs))
        shapes = {n: _shapes(v) for n, v in given.items()} if self.exact else {}
        run, results, parameters = self._specialised(shapes, given)
        arrays: list[np.ndarray] = []
        for name in parameters:
            value = given[name]
            arrays += [_plain(v) for v in value] if isinstance(value, (list, tuple)) else [_plain(value)]
        made = run(*arrays)
        flat = [as_numpy(t) for t in (made if isinstance(made, tuple) else (made,))] if run is not _nothing else []
        out: list[Any] = []
        place = 0
        for _name, count, kind, _ in results:
            tensors = [_typed(t, kind) for t in flat[place:place + (1 if count is None else count)]]
            place += len(tensors)
            out.append(tensors[0] if count is None else tensors)
        return tuple(out)

    def _specialised(self, shapes: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
        """What runs the model for these shapes, and these elements of what it needs to know."""
        while True:
            try:
                return self._build(shapes, {n: given[n] for n in self.needs})
            except ImportModelError as error:
                more = [n for n in error.needs if n not in self.needs and n in given]
                if not more:
                    raise
                self.needs = (*self.needs, *more)

    def _build(self, shapes: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
        key = (repr(shapes), tuple((n, _key(v)) for n, v in values.items()))
        if key not in self.built:
            fixed = {n: [_plain(a) for a in v] if isinstance(v, (list, tuple)) else _plain(v)
                     for n, v in values.items()}
            function = from_onnx(self.model, shapes={n: s for n, s in shapes.items() if n not in values},
                                 values=fixed)
            run = build_function(function) if function.results else _nothing
            self.exact = self.exact or "equal" in function.attrs       # sizes that may differ in a run
            self.built[key] = (run, list(function.attrs["results"]), [
                n for n in self.names if n not in values and shapes.get(n, ()) is not None])
        return self.built[key]


def _is_fixed(proto: Any) -> bool:
    """A tensor whose extents are numbers in the file."""
    return proto.HasField("shape") and all(d.WhichOneof("value") == "dim_value" for d in proto.shape.dim)


def _nothing(*_: Any) -> tuple[Any, ...]:
    """Runs a function that has no results, for a sequence of none."""
    return ()


def _key(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_key, value))
    array = np.asarray(value)
    return array.dtype.name, array.shape, array.tobytes()


def _shapes(value: Any) -> Any:
    """What `shapes` of from_onnx says of a sequence, or of an optional value."""
    if value is None:
        return None
    return [tuple(np.shape(v)) for v in value] if isinstance(value, (list, tuple)) else tuple(np.shape(value))


def _plain(value: Any) -> np.ndarray:
    """An array as the function takes it: integers below 8 bits as ones of 8, floats that it has not as codes."""
    array = np.asarray(value)
    if array.dtype.name in CODED:
        return np.ascontiguousarray(array).reshape(array.shape).view("uint8")
    return array.astype(_NARROW[array.dtype.name]) if array.dtype.name in _NARROW else np.ascontiguousarray(
        array).reshape(array.shape)


def _typed(array: np.ndarray, kind: str) -> np.ndarray:
    """A result in the type that it has in the file."""
    if kind in CODED:
        return array.view(getattr(ml_dtypes, kind))
    return array.astype(getattr(ml_dtypes, kind)) if kind in _NARROW else array


@functools.cache
def backend() -> Any:
    """The class for `onnx.backend.test.BackendTest(backend())` and `backend().run_model(model, inputs)`."""
    base = onnx("backend.base")

    class TilewrightBackend(base.Backend):  # type: ignore[misc, name-defined]
        """Compiles models for this machine."""

        @classmethod
        def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Any:
            """The model, ready to run."""
            return Prepared(model)

        @classmethod
        def run_node(cls, node: Any, inputs: Sequence[Any], device: str = "CPU", outputs_info: Any = None,
                     **kwargs: Any) -> Any:
            """The results of one node."""
            helper = onnx("helper")
            given = [np.asarray(v) for v in inputs]
            infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                     for name, a in zip(node.input, given)]
            outs = [helper.make_empty_tensor_value_info(name) for name in node.output]
            version = kwargs.get("opset_version", onnx("defs").onnx_opset_version())
            model = helper.make_model(helper.make_graph([node], "node", infos, outs),
                                      opset_imports=[helper.make_opsetid(node.domain, version)])
            return cls.prepare(model, device).run(given)

        @classmethod
        def supports_device(cls, device: str) -> bool:
            """True for the CPU."""
            return device == "CPU"
    return TilewrightBackend
