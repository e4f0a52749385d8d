"""The base class of the IR, and the table of what each class of nodes holds.

Most of the table follows from the types of the fields:

- A field that holds nodes (`X`, `X | None` or `tuple[X, ...]`) is a *child*: it is evaluated or executed here, and
  traversals go there.
- A field that holds a `Var` or a `Buffer` is a *symbol*: the node uses what is defined elsewhere, or defines it.
- All else is data: names, numbers, annotations.

The rest is said by a decorator of the class:

    @structure(defines=("loop_var",), within=("body",))
    @dataclass(slots=True, eq=False, repr=False)
    class For(Stmt):

Traversals, substitution, structural equality, copies, free variables, accesses and the verifier (for a statement that
it has no rule for) read the table, so that a new class is described once.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Flag, auto
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from tilewright.support.registry import hook

N = TypeVar("N", bound="Node")
V = TypeVar("V")
C = TypeVar("C", bound=type)


class Effect(Flag):
    """What evaluating or executing a node does to memory, besides what its children do."""
    NONE = 0
    READS = auto()                      # the element of `buffer` at `indices`
    WRITES = auto()                     # the same
    CALLS = auto()                      # what the row of its operator says: see `accesses.effects`


class PerClass(dict[type, V]):
    """Something of each class of nodes, found by `find` when the class is asked for the first time."""
    __slots__ = ("find",)

    def __init__(self, find: Callable[[type], V]) -> None:
        self.find = find

    def __missing__(self, cls: type) -> V:
        found = self[cls] = self.find(cls)
        return found


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """An IR node. Immutable by agreement: nothing assigns to a field after construction.

    `hash` is by identity; compare structure with `tir.equal.structural_equal`.
    """

    def replace(self: N, **changed: Any) -> N:
        """A copy with some fields changed."""
        cls = type(self)
        return cls(*[changed[k] if k in changed else getattr(self, k) for k in FIELDS[cls]])

    def same_as(self, other: object) -> bool:
        return self is other

    def __str__(self) -> str:
        return hook("tir.print")(self)

    def __repr__(self) -> str:
        return hook("tir.print")(self)


def structure(*, defines: tuple[str, ...] = (), within: tuple[str, ...] = (), sizes: tuple[str, ...] = (),
              labels: tuple[str, ...] = (), runs: tuple[str, ...] = (), effect: Effect = Effect.NONE,
              symbol: bool = False, statement: bool = False) -> Callable[[C], C]:
    """Decorator: say of a class of nodes what the types of its fields do not tell.

    `defines`: the fields whose Vars and Buffers the node defines; of a field that holds nodes, what these define.
    `within`: the fields in which the definitions hold; without it they hold in the node that holds this one.
    `sizes`: the fields of the defined buffers whose Vars are defined as well.
    `labels`: the fields that name the node for readers.
    `runs`: the fields that hold statements, in the order in which they run, where that is not the order of the fields.
    `symbol`, `statement`: fields that hold nodes of this class are symbols, statements.
    """
    said = {k: v for k, v in locals().items() if v}

    def keep(cls: C) -> C:
        cls.__structure__ = {**getattr(cls, "__structure__", {}), **said}  # type: ignore[attr-defined]
        return cls
    return keep


@dataclass(frozen=True, eq=False)
class Structure:
    """The row of a class of nodes: names of fields, in the order of the fields where nothing else is said."""
    fields: tuple[str, ...]
    children: tuple[str, ...]
    tuples: frozenset[str]              # the children that are tuples of nodes
    optional: frozenset[str]            # the children that may be None
    statements: tuple[str, ...]         # the children that are statements, in the order in which they run
    spoken: tuple[str, ...]             # where expressions of this node stand: no statements below, no names or numbers
    symbols: tuple[str, ...]
    defines: tuple[str, ...]
    within: tuple[str, ...]
    sizes: tuple[str, ...]
    labels: tuple[str, ...]
    compared: tuple[str, ...]           # all that tell nodes apart: those outside of definitions, `defines`, `within`
    effect: Effect
    is_symbol: bool


def _row(cls: type) -> Structure:
    said = getattr(cls, "__structure__", {})
    hints = get_type_hints(cls)
    kinds = {f.name: _kind(hints[f.name]) for f in fields(cls)}
    says = {name: getattr(kind, "__structure__", {}) for name, kind in kinds.items()}
    symbols = tuple(n for n in kinds if "symbol" in says[n])
    children = tuple(n for n, kind in kinds.items() if issubclass(kind, Node) and n not in symbols)
    statements = said.get("runs", tuple(n for n in children if "statement" in says[n]))
    spoken = tuple(n for n, kind in kinds.items() if kind not in (str, int, float, bool) and n not in statements
                   and (n not in symbols or STRUCTURE[kind].spoken))
    defines, within, labels = (said.get(key, ()) for key in ("defines", "within", "labels"))
    compared = [f.name for f in fields(cls) if f.compare and f.name not in labels]
    outside = [n for n in compared if n not in (*defines, *within)]
    return Structure(
        tuple(kinds), children, frozenset(n for n in children if get_origin(hints[n]) is tuple),
        frozenset(n for n in children if isinstance(hints[n], UnionType)), statements, spoken, symbols, defines, within,
        said.get("sizes", ()), labels, (*outside, *defines, *[n for n in compared if n in within]),
        said.get("effect", Effect.NONE), "symbol" in said)


def _kind(hint: Any) -> type:
    """The class of what a field holds, one or several; `object` for what no class describes."""
    if get_origin(hint) is tuple or isinstance(hint, UnionType):
        hint = get_args(hint)[0]
    return hint if isinstance(hint, type) and get_origin(hint) is None else object


STRUCTURE: PerClass[Structure] = PerClass(_row)
FIELDS: PerClass[tuple[str, ...]] = PerClass(lambda cls: STRUCTURE[cls].fields)
