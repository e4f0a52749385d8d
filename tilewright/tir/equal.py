"""Structural equality and hash: two pieces of IR are equal when they differ only in names.

Both come from one traversal that writes a node as a flat list of tokens. What the node defines (parameters,
loop variables, block axes, let variables, buffers) is numbered in order of definition; what it does not
define stands for itself, or is numbered by first use when free variables are mapped. Block names are labels
and do not count.
"""
from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from tilewright.support.errors import StructuralError
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import FloatImm, Var
from tilewright.tir.functions import BaseFunc, ModuleText
from tilewright.tir.printer import show
from tilewright.tir.stmt import PrimFunc, Seq, Stmt
from tilewright.tir.structure import STRUCTURE, Node


def structural_equal(a: Any, b: Any, map_free_vars: bool = False) -> bool:
    """True when a and b are the same up to names of what they define (and of free variables, if mapped)."""
    return a is b or _Tokens(map_free_vars).of(a) == _Tokens(map_free_vars).of(b)


def structural_hash(a: Any, map_free_vars: bool = False) -> int:
    """A 64-bit hash that structurally equal nodes share; for closed functions it is the same in every process."""
    digest = hashlib.blake2b(digest_size=8)
    for token in _Tokens(map_free_vars).of(a):
        digest.update(f"{token!r};".encode())
    return int.from_bytes(digest.digest(), "little")


def assert_structural_equal(a: Any, b: Any, map_free_vars: bool = False) -> None:
    """Raises StructuralError, which shows both sides with the first difference marked, unless a equals b."""
    left, right = _Tokens(map_free_vars), _Tokens(map_free_vars)
    x, y = left.of(a), right.of(b)
    if x == y:
        return
    at = next((k for k, (p, q) in enumerate(zip(x, y, strict=False)) if p != q), min(len(x), len(y)))
    texts = [show(node, tokens.statement_at(at)) if isinstance(node, Node) else repr(node)
             for node, tokens in ((a, left), (b, right))]
    first, second = (str(t[at]) if at < len(t) else "nothing" for t in (x, y))
    raise StructuralError(f"the two are not structurally equal: {first} against {second}\n\n{texts[0]}\n\n"
                          f"-- against --\n\n{texts[1]}")


class _Tokens:
    def __init__(self, map_free_vars: bool) -> None:
        self.map_free = map_free_vars
        self.out: list[Any] = []
        self.number: dict[int, int] = {}
        self.count = 0
        self.statements: list[tuple[int, Node]] = []  # (first token, statement)

    def of(self, node: Any) -> list[Any]:
        self.value(node)
        return self.out

    def statement_at(self, at: int) -> tuple[Node, ...]:
        """The statement that token number `at` belongs to."""
        inside = [s for start, s in self.statements if start <= at]
        return tuple(inside[-1:])

    def define(self, thing: Any) -> None:
        self.number[id(thing)] = self.count
        self.count += 1

    def value(self, x: Any) -> None:
        if isinstance(x, Node):
            self.node(x)
        elif isinstance(x, (tuple, list)):
            self.out.append(len(x))
            for y in x:
                self.value(y)
        elif isinstance(x, Mapping):
            self.out.append(len(x))
            for key in sorted(x, key=str):
                self.out.append(str(key))
                self.value(x[key])
        elif isinstance(x, float):
            self.out.append(repr(x))  # tells -0.0 from 0.0, and NaN equals NaN
        elif isinstance(x, BaseFunc):
            self.out += x.lines_in("f", ModuleText(plain=True))
            for f in x.called_functions:
                self.value(f)
        elif x is None or isinstance(x, (bool, int, str)):
            self.out.append((type(x).__name__, x))
        else:
            self.out.append(repr(x))

    def node(self, x: Node) -> None:
        if isinstance(x, Var):
            self.var(x)
            return
        if isinstance(x, Buffer):
            self.buffer(x)
            return
        if isinstance(x, Seq) and len(x.stmts) == 1:
            self.node(x.stmts[0])               # a sequence of one is that one
            return
        if isinstance(x, Stmt):
            self.statements.append((len(self.out), x))
        self.out.append(type(x).__name__)
        if isinstance(x, PrimFunc):
            self.function(x)
        elif isinstance(x, FloatImm):
            self.out += [repr(float(x.value)), x.type]
        else:
            row = STRUCTURE[type(x)]
            for name in row.compared:
                (self.definitions if name in row.defines else self.value)(getattr(x, name))

    def definitions(self, x: Any) -> None:
        """What a field defines."""
        if isinstance(x, tuple):
            self.out.append(len(x))
            for y in x:
                self.definitions(y)
        elif isinstance(x, Var):
            self.definition(x)
        elif isinstance(x, Buffer):
            self.buffer(x, True)
        else:
            self.node(x)

    def definition(self, v: Var) -> None:
        self.define(v)
        self.out.append(v.type)

    def var(self, v: Var, defines: bool = False) -> None:
        known = self.number.get(id(v))
        if known is not None:
            self.out.append(("var", known))
        elif defines or self.map_free:
            self.out.append(("var", self.count))
            self.definition(v)
        else:
            self.out.append(("free", id(v)))

    def buffer(self, b: Buffer, defines: bool = False) -> None:
        """A buffer is written out where it is defined, or at first use when it shares memory with a known one."""
        known = self.number.get(id(b))
        if known is not None:
            self.out.append(("buffer", known))
            return
        if not (defines or self.map_free or id(b.data) in self.number):
            self.out.append(("free", id(b)))
            return
        self.define(b)
        self.out.append("Buffer")
        for e in (*b.shape, *b.strides, b.elem_offset):
            if defines and isinstance(e, Var):
                self.var(e, True)
            else:
                self.value(e)
        self.out += [len(b.shape), len(b.strides), b.dtype, b.scope, b.data_alignment, b.offset_factor]
        self.value(b.axis_separators)
        self.var(b.data, True)

    def function(self, x: PrimFunc) -> None:
        """What a function defines is known inside of it only: another one may hold the same nodes."""
        outside = dict(self.number)
        self.signature(x)
        self.value(x.attrs)
        self.value(x.body)
        self.number = outside

    def signature(self, x: PrimFunc) -> None:
        self.out.append(len(x.params))
        for p in x.params:
            self.definition(p)
        for b in x.buffers:                     # an extent may be used by a buffer before the one that defines it
            for e in (*b.shape, *b.strides, b.elem_offset):
                if isinstance(e, Var):
                    self.var(e, True)
        for p in x.params:
            self.out.append(p in x.buffer_map)
            if p in x.buffer_map:               # a handle and the data behind it are one address
                self.number.setdefault(id(x.buffer_map[p].data), self.number[id(p)])
                self.buffer(x.buffer_map[p], True)
