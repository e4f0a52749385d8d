"""Which memory a statement reads and writes itself, and in which of its fields: the one place that says so."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.tir.buffer import Buffer, BufferRegion, Load
from tilewright.tir.expr import Binary, Call, Expr, FloatImm, IntImm, Let, StringImm, Var
from tilewright.tir.iter_var import IterVar, Range
from tilewright.tir.node import sub_statements, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.stmt import Stmt
from tilewright.tir.structure import STRUCTURE, Effect, Node, PerClass

Conditions = tuple[tuple[Expr, bool], ...]          # each holds, or does not
Lets = tuple[tuple[Var, Expr], ...]

SPOKEN: PerClass[tuple[str, ...]] = PerClass(lambda cls: STRUCTURE[cls].spoken)
_EFFECT: PerClass[Effect] = PerClass(lambda cls: STRUCTURE[cls].effect)
_ACCESS = (Effect.READS, Effect.WRITES, Effect.READS | Effect.WRITES)
# The accesses of statements that were asked for lately: a rewrite leaves most statements as they are, and asks them
# again. The statement is kept too, and so its id.
_known: dict[int, tuple[Node, Sequence[Use]]] = {}
# Tuples and buffers in which there is no access, for the same reason: a rewritten block keeps its axes and regions.
_silent: dict[int, object] = {}
_MOST_KNOWN = 4096
_QUIET = {IntImm, FloatImm, StringImm, type(None), int, float, str, bool}


@dataclass(slots=True, eq=False)
class Use:
    """One access that a node makes.

    `node` makes it: a Load, a Store or another node whose class says that it reads or writes, of the element at
    `indices` in the lanes of `predicate`; a call of access_ptr, through which any element may be read and written, as
    through a pointer that stands by itself (a Var: then the buffer is not known); these have no indices. `field` is the
    field of the statement through which it is made, `under` the conditions in its expressions under which, `lets` the
    variables that these bind around it, outermost first.
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
        return _EFFECT[type(self.node)] is not Effect.READS

    @property
    def reads(self) -> bool:
        return _EFFECT[type(self.node)] is not Effect.WRITES

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
    for name in SPOKEN[type(node)]:
        _collect(getattr(node, name), name, found)
    if _EFFECT[type(node)] in _ACCESS:
        found.append(_own(node, "buffer"))
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
        stack += sub_statements(top)[::-1]


def is_silent(value: object) -> bool:
    """True for most values of fields, quickly: there is no access in them."""
    kind = type(value)
    if kind in _QUIET or _silent.get(id(value)) is value:
        return True
    if not _is_arithmetic((value.shape, value.strides, value.elem_offset) if isinstance(value, Buffer) else value):
        return False
    if kind is tuple or kind is Buffer:
        if len(_silent) >= _MOST_KNOWN:
            _silent.clear()
        _silent[id(value)] = value
    return True


def _is_arithmetic(value: object) -> bool:
    """True where all expressions in value are arithmetic on variables and constants."""
    stack = [value]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in _QUIET:
            continue
        if kind is Var:
            if node.type == "handle":  # type: ignore[attr-defined]
                return False
        elif kind is tuple or kind is list:
            stack += node  # type: ignore[arg-type]
        elif kind is Range:
            stack += (node.min, node.extent)  # type: ignore[attr-defined]
        elif kind is IterVar:
            stack.append(node.dom)  # type: ignore[attr-defined]
        elif kind is Binary:
            stack += (node.a, node.b)  # type: ignore[attr-defined]
        elif kind is BufferRegion:
            stack.append(node.buffer)  # type: ignore[attr-defined]
            stack += node.region  # type: ignore[attr-defined]
        elif kind is Buffer:
            if not is_silent(node):
                return False
        elif kind is not dict or node:
            return False
    return True


def _collect(value: object, name: str, found: list[Use], under: Conditions = (), lets: Lets = ()) -> None:
    """Note the accesses in the value of a field, under conditions and inside of lets of an expression."""
    stack = [value]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in _QUIET:
            continue
        if kind is Var:
            if node.type == "handle":  # type: ignore[attr-defined]
                found.append(Use(None, None, None, node, name, under, lets))  # type: ignore[arg-type]
        elif kind is Binary:
            stack += (node.b, node.a)  # type: ignore[attr-defined]
        elif kind is tuple or kind is list:
            if not is_silent(node):
                stack += reversed(node)  # type: ignore[call-overload]
        elif kind is Load:
            found.append(Use(node.buffer, node.indices, node.predicate, node, name, under, lets))  # type: ignore
            stack += [v for v in (node.predicate, node.indices, node.buffer) if not is_silent(v)]  # type: ignore
        elif isinstance(node, Let):
            _collect(node.value, name, found, under, lets)
            _collect(node.body, name, found, under, (*lets, (node.var, node.value)))
        elif isinstance(node, Call) and node.op == "if_then_else":                # evaluates one of the two
            condition, a, b = node.args
            _collect(condition, name, found, under, lets)
            _collect(a, name, found, (*under, (condition, True)), lets)
            _collect(b, name, found, (*under, (condition, False)), lets)
        elif isinstance(node, Node) and not isinstance(node, Stmt):
            if isinstance(node, Call) and node.op == "access_ptr" and isinstance(node.args[0], Load):
                found.append(Use(node.args[0].buffer, None, None, node, name, under, lets))
            elif _EFFECT[kind] in _ACCESS:
                found.append(_own(node, name, under, lets))
            if kind is not Buffer or not is_silent(node):
                stack += [getattr(node, f) for f in reversed(SPOKEN[kind])]
        elif isinstance(node, Mapping):
            stack += reversed(list(node.values()))


def _own(node: Any, name: str, under: Conditions = (), lets: Lets = ()) -> Use:
    """The access of a node to the element of its buffer at its indices."""
    return Use(node.buffer, node.indices, getattr(node, "predicate", None), node, name, under, lets)


def effects(node: Node) -> Effect:
    """What evaluating or executing node does to memory itself; CALLS for an operator that may do anything."""
    effect = _EFFECT[type(node)]
    if effect is Effect.CALLS and INTRINSICS[node.op].kind != "effect":  # type: ignore[attr-defined]
        return Effect.NONE
    return effect


def reads_memory(e: Expr | int) -> bool:
    """True when the value of e depends on memory, or its evaluation may fault: it has a load or an effect."""
    if isinstance(e, (int, IntImm, Var)):                # most bounds
        return False
    return any(_EFFECT[type(n)] is not Effect.NONE and effects(n) is not Effect.NONE for n in walk(e))
