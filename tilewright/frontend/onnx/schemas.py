"""What the onnx package says of operators: how many inputs they take, types of attributes, bodies of functions."""
from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.frontend.onnx.node import Unsupported
from tilewright.frontend.onnx.optional import onnx
from tilewright.frontend.onnx.registry import Row
from tilewright.frontend.onnx.tensors import NUMBERS
from tilewright.frontend.onnx.values import Held


@functools.lru_cache(4096)
def schema(domain: str, name: str, version: int) -> Any:
    """The definition of an operator at a version of its domain; None where there is none."""
    defs = onnx("defs")
    try:
        return defs.get_schema(name, version, domain)
    except defs.SchemaError:
        return None


@functools.lru_cache(4096)
def _rules(domain: str, name: str, version: int) -> Any:
    found = schema(domain, name, version)
    if found is None:
        return None
    kinds = {k: (int(getattr(a.type, "value", a.type)), bool(a.required)) for k, a in found.attributes.items()}
    return found.min_input, found.max_input, found.max_output, kinds


def check_node(proto: Any, domain: str, version: int, attributes: Mapping[str, Any]) -> None:
    """Raise Unsupported where a node does not have the form that its operator says."""
    rules = _rules(domain, proto.op_type, version)
    if rules is None:
        return
    least, most, results, kinds = rules
    if not least <= len(proto.input) <= most:
        raise Unsupported(f"it has {len(proto.input)} input(s), from {least} to {most} are needed")
    if len(proto.output) > results:
        raise Unsupported(f"it has {len(proto.output)} results, the operator gives at most {results}")
    for name, (kind, required) in kinds.items():
        found = attributes.get(name)
        if found is None and required:
            raise Unsupported(f"the attribute {name} is missing")
        if found is not None and found.type != kind:
            raise Unsupported(f"the attribute {name} is of type {found.type}, and of type {kind} in the operator")


def check_known(attributes: Mapping[str, Any], inputs: int, row: Row) -> None:
    """Raise Unsupported for an attribute or input that a row does not know; None there: a schema says which are."""
    unknown = [] if row.attributes is None else [name for name in attributes if name not in row.attributes]
    if unknown:
        raise Unsupported(f"the attribute {unknown[0]}, which is not known of the operator")
    if row.inputs is not None and inputs > row.inputs:
        raise Unsupported(f"input {inputs - 1}, which is not known of the operator: {row.inputs} inputs are")


@functools.lru_cache(4096)
def has_function(domain: str, name: str, version: int) -> bool:
    """The operator is defined by other operators."""
    found = schema(domain, name, version)
    return found is not None and bool(found.has_function or found.has_context_dependent_function)


def function_of(proto: Any, domain: str, version: int, inputs: Sequence[Any]) -> Any:
    """The FunctionProto that defines a node. Raises Unsupported where there is none for these inputs."""
    found = schema(domain, proto.op_type, version)
    if found is not None and found.has_function:
        return _body(domain, proto.op_type, version)
    if found is None or not found.has_context_dependent_function:
        raise Unsupported("the operator has no definition by other operators")
    package = onnx()
    types = []
    for held in inputs:
        if not isinstance(held, Held):
            types.append(package.TypeProto().SerializeToString())
            continue
        shape = [d if isinstance(d, int) else str(d) for d in held.shape]
        types.append(onnx("helper").make_tensor_type_proto(NUMBERS[held.kind], shape).SerializeToString())
    versions = sorted(v for v in found.context_dependent_function_opset_versions if v <= version) or \
        list(found.context_dependent_function_opset_versions)
    try:
        data = found.get_context_dependent_function_with_opset_version(versions[-1], proto.SerializeToString(), types)
    except (RuntimeError, ValueError, IndexError) as error:
        raise Unsupported(f"its definition by other operators cannot be made: {error}") from None
    body = package.FunctionProto()
    body.ParseFromString(data)
    if not body.node:
        raise Unsupported("the operator has no definition by other operators for these inputs")
    return body


@functools.lru_cache(1024)
def _body(domain: str, name: str, version: int) -> Any:
    found = schema(domain, name, version)
    versions = sorted(v for v in found.function_opset_versions if v <= version) or list(found.function_opset_versions)
    data = found.get_function_with_opset_version(versions[-1])
    body = onnx().FunctionProto()
    body.ParseFromString(data)
    return body


def defaults(domain: str, name: str, version: int) -> dict[str, Any]:
    """The attributes that an operator has where a node does not say otherwise."""
    found = schema(domain, name, version)
    return {} if found is None else {
        k: a.default_value for k, a in found.attributes.items() if a.default_value.name and a.default_value.type}
