"""From a model in the ONNX format to a function of the graph: its inputs, its nodes, its results."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.frontend.onnx import operators  # noqa: F401  (fills the table)
from tilewright.frontend.onnx.files import read_model
from tilewright.frontend.onnx.importer import Importer, versions_of
from tilewright.frontend.onnx.limits import MOST_ENDS, MOST_NODES, MOST_RANK
from tilewright.frontend.onnx.node import Unsupported
from tilewright.frontend.onnx.scope import Poisoned, Scope
from tilewright.frontend.onnx.tensors import stored
from tilewright.frontend.onnx.values import Held, replaced, solved
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.types import size, size_variables
from tilewright.graph.ir.values import Function, Value
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import ImportModelError, TilewrightError, described, nearest
from tilewright.support.names import NameSupply, identifier
from tilewright.tir import Var

_UNSET = object()


def from_onnx(model: Any, *, shapes: Mapping[str, Any] | None = None,
              values: Mapping[str, Any] | None = None) -> Function:
    """The function of the graph that a model in the ONNX format is: a path, the bytes of a file, or a ModelProto.

    Its parameters are the inputs of the model without an initializer, in order; an extent with a name in the file is
    the size variable of that name, an unknown one a size variable of its own. shapes: by name of an input, the shape
    to take instead: numbers, and names or expressions of sizes; for an input that is a sequence a list of shapes, for
    an optional one None where it is left out. values: by name of an input, the elements that it always has: it is no
    parameter then. `function.attrs["results"]`: for each result of the model its name, how many results of the function
    it is (None for a tensor, a number for a sequence), its type in the file, and where its size depends on elements
    (axis, number of the function's result that says how many slices along it count). `function.attrs["counted"]`: for
    each of the last kind (number of the result, axis, number of the result that says how many slices count): what is
    compiled hands out what counts.

    Sizes of different names that the operators of the model need to be equal are one size, and a size that has to be a
    number is that number: a call with other extents is refused. `function.attrs["equal"]`: the names of such sizes, and
    what they are.

    Raises ImportModelError for a file that is damaged or asks for what is not allowed, and for nodes that are not
    supported, all at once; its `needs` names inputs that would have to be given by `values`.
    """
    equal: dict[Var, Any] = {}
    while True:
        try:
            return _imported(model, shapes or {}, values or {}, equal)
        except _Refused as refused:
            more = solved(refused.unequal, refused.sizes)
            if not more:
                raise refused.error from None
            equal = {**{v: replaced(e, more) for v, e in equal.items()}, **more}


class _Refused(Exception):
    """error: that the model cannot be imported. unequal: extents that would have to be equal; sizes: of the inputs."""

    def __init__(self, error: ImportModelError, unequal: Sequence[tuple[Any, Any]], sizes: Sequence[Var]) -> None:
        super().__init__()
        self.error, self.unequal, self.sizes = error, unequal, sizes


def _imported(model: Any, shapes: Mapping[str, Any], values: Mapping[str, Any], equal: Mapping[Var, Any]) -> Function:
    """from_onnx, with numbers or other sizes for some sizes of the inputs. Raises _Refused for nodes."""
    proto, external = read_model(model)
    functions = {("" if f.domain == "ai.onnx" else f.domain, f.name): f for f in proto.functions}
    bb = BlockBuilder()
    importer = Importer(bb, functions, external)
    graph, versions = proto.graph, versions_of(proto.opset_import)
    missing: dict[str, list[str]] = {}
    for what, ends in (("inputs", graph.input), ("results", graph.output)):
        if len(ends) > MOST_ENDS:
            raise ImportModelError(f"the model has {len(ends)} {what}, at most {MOST_ENDS} are supported")
    count = len(graph.node)
    if count <= MOST_NODES:
        count = importer.survey(graph.node, versions, missing, {})
    if count > MOST_NODES:
        raise ImportModelError(f"the model has {count} nodes, functions written out; at most {MOST_NODES} are imported")
    if missing:
        raise _unsupported(missing)
    scope = Scope(versions)
    importer.initializers(graph, scope)
    params = _Params(equal)
    _check_names(graph, shapes, values)
    for i in graph.input:
        if i.name not in scope.names:
            scope.names[i.name] = _input(i, shapes, values, params)
        elif scope.names[i.name] is None:
            raise ImportModelError(f"the name {i.name!r} is given to two inputs")
    name = identifier(_text(graph.name)) or "main"
    importer.parameters = params.values
    with bb.function(name, params.values):
        importer.run(graph.node, scope)
        results, described_results = _results(importer, graph, scope)
        if importer.problems:
            sizes = size_variables(d for v in params.values for d in v.shape)
            raise _Refused(_refused(importer, params), importer.unequal, list(sizes))
        bb.emit_func_output(results)
    attrs: dict[str, Any] = {"results": tuple(described_results), **_counted(described_results)}
    if importer.conditions:
        attrs["conditions"] = tuple(importer.conditions.values())
    if equal:
        attrs["equal"] = {v.name: str(e) for v, e in equal.items()}
    return bb.get()[name].replace(attrs=attrs)


def _text(name: str | bytes) -> str:
    """A name of the file, which are bytes where they are no text."""
    return name if isinstance(name, str) else name.decode(errors="replace")


def _unsupported(missing: Mapping[str, Sequence[str]]) -> ImportModelError:
    """The error for operators that are not supported, with some nodes of each."""
    lines = []
    for name, nodes in list(missing.items())[:50]:
        some = ", ".join(n[:60] for n in nodes[:3]) + (", ..." if len(nodes) > 3 else "")
        lines.append(f"  {name[:120]}: {len(nodes)} node(s), {some}")
    more = f"\n  and {len(missing) - 50} more" if len(missing) > 50 else ""
    return ImportModelError(f"{len(missing)} operator(s) of the model are not supported:\n" + "\n".join(lines) + more,
                            "docs/onnx.md has the operators that are")


class _Params:
    """The parameters, and the inputs of the model that they are. equal: what some sizes are instead."""

    def __init__(self, equal: Mapping[Var, Any]) -> None:
        self.equal = equal
        self.values: list[Value] = []
        self.inputs: dict[str, str] = {}
        self._names = NameSupply()

    def add(self, name: str, dims: Sequence[Any], dtype: str, source: str) -> Value:
        dims = [replaced(d, self.equal) for d in dims]
        value = BlockBuilder.param(self._names.fresh(identifier(name)), dims, dtype)
        self.values.append(value)
        self.inputs[value.name] = source
        return value


def _refused(importer: Importer, params: _Params) -> ImportModelError:
    lines = "\n".join(f"  {p}" for p in importer.problems)
    more = f"\n  and {importer.unreported} more" if importer.unreported else ""
    needs = tuple(dict.fromkeys(params.inputs[n] for n in importer.needs))
    hint = f"give the elements of {', '.join(needs)}: from_onnx(model, values={{{needs[0]!r}: array}})" if needs else ""
    error = ImportModelError(f"{len(importer.problems) + importer.unreported} node(s) of the model cannot be imported:"
                             f"\n{lines}{more}", hint)
    error.needs = needs
    return error


def _check_names(graph: Any, *given: Mapping[str, Any]) -> None:
    known = [i.name for i in graph.input]
    if len(set(known)) != len(known):
        raise ImportModelError("two inputs of the model have one name")
    for mapping in given:
        for name in mapping:
            if name not in known:
                raise ImportModelError(f"the model has no input {name!r}", nearest(str(name), known))


def _input(info: Any, shapes: Mapping[str, Any], values: Mapping[str, Any], params: _Params) -> Any:
    """The entry of an input; its parameters are added to params."""
    kind, name = info.type.WhichOneof("value"), _text(info.name)
    if name in values:
        return _given(values[name], info.type)
    shape, proto = shapes.get(name, _UNSET), info.type
    if kind == "optional_type":
        if shape is None:
            return None
        proto, kind = proto.optional_type.elem_type, proto.optional_type.elem_type.WhichOneof("value")
    if kind == "sequence_type" and shape is not _UNSET:
        element = proto.sequence_type.elem_type
        if element.WhichOneof("value") != "tensor_type" or not isinstance(shape, (list, tuple)):
            raise ImportModelError(f"the input {name!r} is a sequence of no tensors, which is not supported")
        return [_tensor(f"{name}_{k}", element.tensor_type, s, params, name) for k, s in enumerate(shape)]
    if kind == "tensor_type":
        return _tensor(name, proto.tensor_type, shape, params, name)
    error = ImportModelError(f"the input {name!r} is {_kind(kind)}, and the number of its tensors is not known",
                             f"from_onnx(model, shapes={{{name!r}: [(2, 3), (2, 3)]}}) says it")
    error.needs = (name,)
    raise error


def _kind(kind: str | None) -> str:
    return {"sequence_type": "a sequence", "map_type": "a map", "sparse_tensor_type": "a sparse tensor",
            "optional_type": "an optional value"}.get(kind or "", "of no type")


def _given(value: Any, proto: Any) -> Any:
    """The entry of an input whose elements are given."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)) and proto.WhichOneof("value") != "tensor_type":
        return [_given(v, proto) for v in value]
    return Held.known(np.array(as_numpy(value) if not isinstance(value, np.ndarray) else value))


def _tensor(name: str, proto: Any, shape: Any, params: _Params, source: str) -> Held:
    """A new parameter."""
    kind, dtype = stored(proto.elem_type, f"the input {name!r}")
    if shape is not _UNSET:
        if not isinstance(shape, (list, tuple)):
            raise ImportModelError(f"the shape of {name!r} is {described(shape)}, not a tuple of extents")
        dims = [size(d) if isinstance(d, str) else d for d in shape]
    elif not proto.HasField("shape"):
        error = ImportModelError(f"the input {name!r} has no shape in the file",
                                 f'from_onnx(model, shapes={{{name!r}: ("n", 3)}}) says it')
        error.needs = (name,)
        raise error
    else:
        if len(proto.shape.dim) > MOST_RANK:
            raise ImportModelError(f"the input {name!r} has {len(proto.shape.dim)} dimensions, at most {MOST_RANK}")
        dims = [_extent(name, k, d) for k, d in enumerate(proto.shape.dim)]
    try:
        return Held.of(params.add(name, dims, dtype, source), kind)
    except TilewrightError as error:
        raise ImportModelError(f"the input {name!r}: {error}") from None


def _extent(name: str, axis: int, dim: Any) -> Any:
    """A number, the size variable of a name, or one of the input's own."""
    if dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0:
        if dim.dim_value >= 2**31:
            raise ImportModelError(f"extent {axis} of the input {name!r} is {dim.dim_value}, beyond 32 bits")
        return int(dim.dim_value)
    text = re.sub(r"\W+", "_", _text(dim.dim_param), flags=re.ASCII).strip("_")[:60] if dim.dim_param else ""
    text = text if dim.dim_param else f"{identifier(name)}_{axis}"
    return size(text if text.isidentifier() else f"size_{text}")


def _counted(rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """The attribute of results whose size elements decide, where there are any."""
    found, place = [], 0
    for _, count, _, cut in rows:
        if cut is not None:
            found.append((place, *cut))
        place += 1 if count is None else count
    return {"counted": tuple(found)} if found else {}


def _results(importer: Importer, graph: Any, scope: Scope) -> tuple[list[Value], list[tuple[Any, ...]]]:
    """(the results of the function, what each result of the model is of them)."""
    results: list[Value] = []
    made: list[list[Any]] = []
    if not graph.output:
        raise ImportModelError("the model has no results")
    for o in graph.output:
        try:
            entry = importer.read(scope, o.name, "a result of the model")
            tensors = entry if isinstance(entry, list) else [entry]
            if any(not isinstance(t, Held) for t in tensors):
                raise Unsupported(f"the result {o.name!r} is an empty optional value or a nested sequence")
            places = [t.value if t.counted else importer.value(t) for t in tensors]
            made.append([o.name, len(entry) if isinstance(entry, list) else None, tensors[0].kind if tensors else "",
                         tensors[0].counted if tensors and not isinstance(entry, list) else None])
            if isinstance(entry, list) and any(t.counted for t in tensors):
                raise Unsupported(f"the result {o.name!r} is a sequence of tensors whose size depends on elements")
            results += places
        except Poisoned:
            continue
        except Unsupported as problem:
            importer.problem(str(problem))
    for row in made:
        if row[3] is not None:
            axis, number = row[3]
            row[3] = (axis, len(results))
            results.append(number)
    return results, [tuple(row) for row in made]
