"""`tvm.ir.save_json` and `load_json`: IR as JSON. Each node stands once, so that one variable stays one."""
from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from tilewright import tir
from tilewright.support.errors import ArgumentError, TilewrightError, described
from tilewright.support.target import Target
from tilewright.tir import Node
from tilewright.tir.node import field_names

_FORMAT = 1


# the classes of nodes, by name; `__subclasses__` would also give what `slots` leaves of them until it is collected
KINDS = {c.__name__: c for c in vars(tir).values() if isinstance(c, type) and issubclass(c, Node) and field_names(c)}


def save_json(node: Any) -> str:
    """node, or a list, dict or number, as JSON. Raises ArgumentError for an object that is no IR."""
    writer = _Writer()
    try:
        root = writer.value(node)
    except RecursionError:
        raise ArgumentError("save_json: the expression is nested too deeply") from None
    return json.dumps({"tilewright": _FORMAT, "root": root, "nodes": writer.nodes})


def load_json(json_str: str) -> Any:
    """What `save_json` wrote, with new variables and buffers. Raises ArgumentError for any other text."""
    try:
        data = json.loads(json_str)
        if data["tilewright"] != _FORMAT:
            raise ArgumentError(f"load_json: the text is of format {data['tilewright']!r}, not {_FORMAT}")
        nodes: list[Node] = []
        for kind, *values in data["nodes"]:
            nodes.append(_made(kind, [_read(v, nodes) for v in values]))
        return _read(data["root"], nodes)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as why:
        if isinstance(why, TilewrightError):
            raise
        raise ArgumentError(f"load_json: this is no JSON of save_json: {why!r}") from None


def _made(kind: str, values: list[Any]) -> Node:
    cls = KINDS[kind]
    if len(values) != len(field_names(cls)):
        raise ValueError(f"{kind} has {len(field_names(cls))} fields, {len(values)} given")
    return cls(*values)


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[list[Any]] = []
        self.numbers: dict[int, int] = {}
        self.held: list[Node] = []                     # so that ids stay unique

    def value(self, x: Any) -> Any:
        """x in JSON: what JSON has as it is, everything else as an object of one key."""
        if x is None or isinstance(x, (bool, int, str)):
            return str(x) if isinstance(x, str) else x
        if isinstance(x, float):
            return x if math.isfinite(x) else {"float": repr(x)}
        if isinstance(x, (list, tuple)):
            return {"list" if isinstance(x, list) else "tuple": [self.value(v) for v in x]}
        if isinstance(x, Mapping):
            return {"dict": [[self.value(k), self.value(v)] for k, v in x.items()]}
        if isinstance(x, Target):
            return {"target": str(x)}
        if type(x).__name__ not in KINDS or not isinstance(x, Node):
            raise ArgumentError(f"save_json: {described(x)} is no IR")
        return {"node": self.node(x)}

    def node(self, x: Node) -> int:
        """The number of a node."""
        if id(x) not in self.numbers:
            row = [type(x).__name__, *(self.value(getattr(x, name)) for name in field_names(type(x)))]
            self.numbers[id(x)] = len(self.nodes)
            self.held.append(x)
            self.nodes.append(row)
        return self.numbers[id(x)]


def _read(x: Any, nodes: list[Node]) -> Any:
    if not isinstance(x, dict):
        if isinstance(x, list):
            raise ValueError("a list stands where a value is expected")
        return x
    (tag, held), = x.items()
    if tag == "node":
        if isinstance(held, bool) or not 0 <= held < len(nodes):
            raise ValueError(f"node {held} is not there yet")
        return nodes[held]
    if tag == "dict":
        return {_read(k, nodes): _read(v, nodes) for k, v in held}
    if tag in ("list", "tuple"):
        items = [_read(v, nodes) for v in held]
        return items if tag == "list" else tuple(items)
    if tag == "target":
        return Target(held)
    if tag == "float":
        return float(held)
    raise ValueError(f"{tag!r} is no kind of value")
