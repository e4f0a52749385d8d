"""Which memory a statement reads and writes itself, and in which of its fields: the one place that says so."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from tilewright.tir.buffer import Buffer, BufferRegion, Load
from tilewright.tir.expr import Binary, Call, Expr, FloatImm, IntImm, Let, StringImm, Var
from tilewright.tir.iter_var import IterVar, Range
from tilewright.tir.node import Node, children
from tilewright.tir.stmt import Stmt, Store

Conditions = tuple[tuple[Expr, bool], ...]          # each holds, or does not
Lets = tuple[tuple[Var, Expr], ...]

# Fields of these types hold no expression: names, numbers, symbols, and the statements below, which have their own.
_SILENT = {"str", "int", "bool", "float", "Var", "tuple[Var, ...]", "tuple[int, ...]", "Stmt", "Stmt | None",
           "tuple[Stmt, ...]", "Block"}
_FIELDS: dict[type, tuple[str, ...]] = {}
# The accesses of statements that were asked for lately: a rewrite leaves most statements as they are, and asks them
# again. The statement is kept too, and so its id.
_known: dict[int, tuple[Node, Sequence[Use]]] = {}
_MOST_KNOWN = 4096
_QUIET = {IntImm, FloatImm, StringImm, type(None), int, float, str, bool}


@dataclass(slots=True, frozen=True)
class Use:
    """One access that a node makes.

    `node` makes it: a Load or a Store, of the element at `indices` in the lanes of `predicate`; a call of access_ptr,
    through which any element may be read and written, as through a pointer that stands by itself (a Var: then the
    buffer is not known); these have no indices. `field` is the field of the statement through which it is made, `under`
    the conditions in its expressions under which, `lets` the variables that these bind around it, outermost first.
    """
    buffer: Buffer | None
    indices: tuple[Expr, ...] | None
    predicate: Expr | None
    node: Node
    field: str
    under: Conditions = ()
    lets: Lets = ()

    @property
    def writes(self) -> bool:
        return not isinstance(self.node, Load)

    @property
    def reads(self) -> bool:
        return not isinstance(self.node, Store)

    def touches(self, buffer: Buffer) -> bool:
        """True for an access to buffer, by its elements, its address or its pointer."""
        return self.buffer is buffer or self.node is buffer.data


def uses(node: Node) -> Sequence[Use]:
    """The accesses that a statement makes itself, in the order of its fields; those of statements below it are theirs.

    Every field counts that can hold an expression, whatever holds it there: axes, regions, annotations, the extents,
    strides and offset of a buffer. Of an expression (or a range, a buffer) all accesses in it.
    """
    known = _known.get(id(node))
    if known is not None and known[0] is node:
        return known[1]
    found: list[Use] = []
    if isinstance(node, Expr):
        _collect(node, "", found)
        return found
    names = _speaking(type(node))
    values = [getattr(node, name) for name in names]
    if not _is_silent(*values):
        for name, value in zip(names, values, strict=True):
            _collect(value, name, found)
    if isinstance(node, Store):
        found.append(Use(node.buffer, node.indices, node.predicate, node, "buffer"))
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[id(node)] = node, found
    return found


def uses_below(stmt: Stmt) -> Iterator[Use]:
    """The accesses of stmt and of every statement below it, in program order."""
    stack = [stmt]
    while stack:
        top = stack.pop()
        yield from uses(top)
        stack += reversed([c for c in children(top) if isinstance(c, Stmt)])


def _load(node: Load, name: str, under: Conditions, lets: Lets) -> Use:
    return Use(node.buffer, node.indices, node.predicate, node, name, under, lets)


def _speaking(cls: type) -> tuple[str, ...]:
    """The fields of a node class that can hold an expression; the pointer of a buffer is a symbol."""
    found = _FIELDS.get(cls)
    if found is None:
        names = (f.name for f in fields(cls) if f.type not in _SILENT)
        found = _FIELDS[cls] = tuple(n for n in names if cls is not Buffer or n != "data")
    return found


def _is_silent(*values: object) -> bool:
    """True for most values, quickly: arithmetic on variables and constants."""
    stack = list(values)
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in _QUIET:
            continue
        if kind is Var:
            if node.type == "handle":  # type: ignore[attr-defined]
                return False
        elif kind is Binary:
            stack += (node.a, node.b)  # type: ignore[attr-defined]
        elif kind is tuple:
            stack += node  # type: ignore[arg-type]
        elif kind is Range:
            stack += (node.min, node.extent)  # type: ignore[attr-defined]
        elif kind is Buffer:
            if node.strides or node.elem_offset is not None:  # type: ignore[attr-defined]
                return False
            stack += node.shape  # type: ignore[attr-defined]
        elif kind is IterVar:
            stack.append(node.dom)  # type: ignore[attr-defined]
        elif kind is BufferRegion:
            stack.append(node.buffer)  # type: ignore[attr-defined]
            stack += node.region  # type: ignore[attr-defined]
        elif kind is not dict or node:
            return False
    return True


def _collect(value: object, name: str, found: list[Use]) -> None:
    """Note the accesses in the value of a field."""
    if _is_silent(value):
        return
    stack: list[tuple[object, Conditions, Lets]] = [(value, (), ())]
    while stack:
        node, under, lets = stack.pop()
        kind = type(node)
        if kind in _QUIET or isinstance(node, Stmt):
            continue
        if kind is Var:
            if node.type == "handle":  # type: ignore[attr-defined]
                found.append(Use(None, None, None, node, name, under, lets))  # type: ignore[arg-type]
            continue
        if kind is Binary:
            stack += ((node.b, under, lets), (node.a, under, lets))  # type: ignore[attr-defined]
            continue
        if kind is Load and _is_silent(node.buffer, node.indices, node.predicate):  # type: ignore[attr-defined]
            found.append(_load(node, name, under, lets))  # type: ignore[arg-type]
            continue
        if isinstance(node, Let):
            below: list[tuple[object, Conditions, Lets]] = [
                (node.value, under, lets), (node.body, under, (*lets, (node.var, node.value)))]
        elif isinstance(node, Call) and node.op == "if_then_else":                # evaluates one of the two
            condition, a, b = node.args
            below = [(condition, under, lets), (a, (*under, (condition, True)), lets),
                     (b, (*under, (condition, False)), lets)]
        elif isinstance(node, Node):
            if isinstance(node, Load):
                found.append(_load(node, name, under, lets))
            elif isinstance(node, Call) and node.op == "access_ptr" and isinstance(node.args[0], Load):
                found.append(Use(node.args[0].buffer, None, None, node, name, under, lets))
            values = [getattr(node, f) for f in _speaking(kind)]
            below = [(v, under, lets) for v in values if not (type(v) is Buffer and _is_silent(v))]
        elif isinstance(node, Mapping):
            below = [(x, under, lets) for x in node.values()]
        elif isinstance(node, (tuple, list)):
            below = [(x, under, lets) for x in node]
        else:
            continue
        stack += reversed(below)
