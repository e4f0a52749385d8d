"""Does a block compute what the description of a tensor intrinsic says, and on which parts of which buffers?

Description and program are compared axis by axis and node by node. The axes may stand in another order, operands of
commutative operators may be swapped, axes of one value do not count, names and block structure neither: what counts
is which elements are computed from which others. For each buffer of the description this finds the box of the
program's buffer that stands for it.
"""
from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.linear import linear
from tilewright.schedule.matching.leaves import Leaf, extent_of, leaves
from tilewright.support.errors import Illegal
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Binary, Expr, FloatImm, IntImm, Let, Var
from tilewright.tir.iter_var import IterVar
from tilewright.tir.node import Node, field_names, substitute, walk
from tilewright.tir.stmt import Block, For, LetStmt, Stmt, Store

MOST_ORDERS = 720                              # orders of axes that are tried
COMMUTATIVE = frozenset(("add", "mul", "min", "max", "and", "or", "eq", "ne", "bitand", "bitor", "bitxor"))
_KINDS = {0: "data-parallel", 2: "reduction", 3: "ordered", 4: "opaque"}


@dataclass
class Operand:
    """Where a buffer of the description lies: element (i, j, ...) is buffer[base], with steps[d]*i added to
    dimension axes[d] for each dimension d of the description (axes[d] is None for one of a single element)."""
    buffer: Buffer
    axes: tuple[int | None, ...]
    steps: tuple[int, ...]
    base: tuple[Expr, ...]


class Mismatch(Exception):
    """The program differs from the description."""


def match(desc: Block, params: Sequence[Buffer], scalars: Sequence[Var], body: Stmt, analyzer: Analyzer,
          where: Stmt) -> tuple[dict[Buffer, Operand], dict[Var, Expr]]:
    """The operand behind each buffer of params and the value of each of scalars, where body computes what the block
    desc describes.

    Raises Illegal that says how they differ.
    """
    theirs, mine = leaves(desc.body), leaves(body)
    if len(theirs) != len(mine):
        names = ", ".join(leaf.realize.block.name for leaf in mine)
        raise Illegal(f"the description has {len(theirs)} block(s), the program {len(mine)} ({names})", (where,))
    state = _Matcher(params, scalars, analyzer)
    for d, p in zip(theirs, mine, strict=True):
        state.leaf(d, p)
    lost = [b.name for b in params if b not in state.operands] + [v.name for v in scalars if v not in state.values]
    if lost:
        raise Illegal(f"the description does not use its parameter {lost[0]}", (where,))
    return state.operands, state.values


class _Matcher:
    def __init__(self, params: Sequence[Buffer], scalars: Sequence[Var], analyzer: Analyzer) -> None:
        self.params, self.scalars, self.analyzer = set(params), set(scalars), analyzer
        self.values: dict[Var, Expr] = {}                # of the scalars
        self.operands: dict[Buffer, Operand] = {}
        self.var_of: dict[Var, Expr] = {}                # of the description -> in the program
        self.mine: set[Var] = set()                      # the axes and loops of the program's block
        self.matched = 0

    def leaf(self, d: Leaf, p: Leaf) -> None:
        """Match two blocks under some order of the axes. Raises Illegal with what the best order fails at."""
        best: tuple[int, str] = (-1, "")
        before = dict(self.operands), dict(self.values)
        for order in itertools.islice(_orders(d, p), MOST_ORDERS):
            self.operands, self.values, self.matched = dict(before[0]), dict(before[1]), 0
            self.var_of = {a.var: b.var for a, b in zip(d.axes, order, strict=True)}
            self.mine = {b.var for b in order}
            for b in order:
                self.analyzer.bind(b.var, b.domain.min, b.domain.extent)
            try:
                self.starts(d, p)
                self.node(d.body, p.body)
                return
            except Mismatch as why:
                best = max(best, (self.matched, str(why)), key=lambda x: x[0])
        raise Illegal(best[1] if best[0] >= 0 else _axes_differ(d, p), (p.realize,))

    def starts(self, d: Leaf, p: Leaf) -> None:
        if (d.init is None) != (p.init is None):
            has, lacks = ("program", "description") if d.init is None else ("description", "program")
            raise Mismatch(f"the {has} starts the reduction with an init, the {lacks} does not")
        if d.init is not None and p.init is not None:
            self.node(d.init, p.init)

    # ---- node by node

    def node(self, d: Node, p: Node) -> None:
        """Raise Mismatch unless p is what d says."""
        if isinstance(d, Expr) and isinstance(p, Expr):
            self.dtype(d, p)
            if isinstance(d, Var) and d in self.scalars:
                self.scalar(d, p)
                return
            if self.same_index(d, p):
                return
        if type(d) is not type(p):
            self.fail(d, p)
        if isinstance(d, (Load, Store)):
            self.memory(d, p)
        elif isinstance(d, (IntImm, FloatImm)):
            if d.value != p.value:  # type: ignore[attr-defined]
                self.fail(d, p)
        elif isinstance(d, Var):
            if self.var_of.get(d) is not p:
                self.fail(d, p)
        elif isinstance(d, Binary):
            self.binary(d, p)  # type: ignore[arg-type]
        else:
            self.fields(d, p)
        self.matched += 1

    def same_index(self, d: Expr, p: Expr) -> bool:
        """True for integer expressions of axes that have one value; axes may be written in other ways."""
        if not d.dtype.startswith(("int", "uint")) or isinstance(d, IntImm) and isinstance(p, IntImm):
            return False
        if any(isinstance(n, Load) for e in (d, p) for n in walk(e)):
            return False
        return self.analyzer.equal(substitute(d, self.var_of), p)

    def scalar(self, d: Var, p: Expr) -> None:
        """p is what the scalar parameter d stands for; it has one value in the block."""
        known = self.values.setdefault(d, p)
        if self.varies(p) or any(isinstance(n, Load) for n in walk(p)) or not structural_equal(known, p):
            raise Mismatch(f"the scalar {d.name} of the description stands for `{p}`" + (
                f" and for `{known}`" if known is not p else ", which has more than one value in the block"))

    def dtype(self, d: Expr, p: Expr) -> None:
        if d.dtype != p.dtype:
            raise Mismatch(f"the description has `{d}` of dtype {d.dtype}, the program `{p}` of dtype {p.dtype}")

    def fail(self, d: Node, p: Node) -> None:
        raise Mismatch(f"the description has the expression `{_text(d)}`, the program `{_text(p)}`")

    def binary(self, d: Binary, p: Binary) -> None:
        if d.op != p.op:
            self.fail(d, p)
        saved = dict(self.operands), dict(self.values), self.matched
        try:
            self.node(d.a, p.a)
            self.node(d.b, p.b)
        except Mismatch as first:
            if d.op not in COMMUTATIVE:
                raise
            reached = self.matched
            self.operands, self.values, self.matched = dict(saved[0]), dict(saved[1]), saved[2]
            try:
                self.node(d.a, p.b)
                self.node(d.b, p.a)
            except Mismatch as second:
                raise (first if reached >= self.matched else second) from None

    def fields(self, d: Node, p: Node) -> None:
        """The fields of two nodes of one type, in the order in which variables are defined."""
        if isinstance(d, (For, LetStmt, Let)):
            var = "loop_var" if isinstance(d, For) else "var"
            for name in ("min", "extent") if isinstance(d, For) else ("value",):
                self.node(getattr(d, name), getattr(p, name))
            self.var_of[getattr(d, var)] = getattr(p, var)
            self.mine.add(getattr(p, var))
            if isinstance(d, For):
                self.analyzer.bind(p.loop_var, p.min, p.extent)  # type: ignore[attr-defined]
            self.node(d.body, p.body)  # type: ignore[attr-defined]
            return
        for name in field_names(type(d)):
            self.value(getattr(d, name), getattr(p, name), d, p)

    def value(self, a: Any, b: Any, d: Node, p: Node) -> None:
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            for x, y in zip(a, b, strict=True):
                self.value(x, y, d, p)
        elif isinstance(a, Node) and isinstance(b, Node):
            self.node(a, b)
        elif a != b:
            self.fail(d, p)

    # ---- accesses

    def memory(self, d: Any, p: Any) -> None:
        if d.buffer.dtype != p.buffer.dtype:
            raise Mismatch(f"{d.buffer.name} of the description has dtype {d.buffer.dtype}, {p.buffer.name} of the "
                           f"program {p.buffer.dtype}")
        if d.buffer.scope != p.buffer.scope:
            raise Mismatch(f"{d.buffer.name} of the description is in scope {d.buffer.scope!r}, {p.buffer.name} of the "
                           f"program in scope {p.buffer.scope!r}")
        if d.buffer not in self.params or d.predicate is not None or p.predicate is not None:
            self.fail(d, p)
        if isinstance(d, Store):
            self.node(d.value, p.value)
        indices = [substitute(i, self.var_of) for i in d.indices]
        known = self.operands.get(d.buffer)
        if known is None:
            self.operands[d.buffer] = self.placed(d, indices, p)
        elif known.buffer is not p.buffer or not self.agrees(known, indices, p.indices):
            raise Mismatch(f"`{_access(d)}` of the description stands for `{_access(p)}` of the program here and for "
                           f"{known.buffer.name}[{', '.join(map(str, known.base))}, ...] elsewhere")

    def agrees(self, known: Operand, indices: Sequence[Expr], mine: Sequence[Expr]) -> bool:
        want = list(known.base)
        for index, axis, step in zip(indices, known.axes, known.steps, strict=True):
            if axis is not None:
                want[axis] = binary("add", want[axis], binary("mul", index, step))
        return all(self.analyzer.equal(w, m) for w, m in zip(want, mine, strict=True))

    def placed(self, d: Any, indices: Sequence[Expr], p: Any) -> Operand:
        """The operand whose element at indices is the one that p touches."""
        mine = [self.analyzer.simplify(i) for i in p.indices]       # (o * 16 + i) // 32 is o // 2
        spare = len(mine) - len(indices)
        axes: list[int | None] = [None] * len(indices)
        steps, base = [1] * len(indices), list(mine)
        free = set(range(len(mine)))
        for varying in (True, False):                 # a dimension of one element takes what is left
            for k, index in enumerate(indices):
                if self.varies(index) != varying:
                    continue
                for n in sorted(free, key=lambda n: (n != k + spare, n)):
                    found = self.offset(index, mine[n])
                    if found is not None:
                        axes[k], (steps[k], base[n]) = n, found
                        free.discard(n)
                        break
                else:
                    if varying or not self.analyzer.equal(index, 0):
                        raise Mismatch(f"dimension {k} of {d.buffer.name} in `{_access(d)}` of the description has no "
                                       f"counterpart in `{_access(p)}` of the program")
        moving = [n for n in free if self.varies(mine[n])]
        if moving:
            raise Mismatch(f"`{_access(p)}` of the program moves along dimension {moving[0]} of {p.buffer.name}, "
                           f"`{_access(d)}` of the description does not")
        if any(isinstance(n, Load) for e in base for n in walk(e)):
            raise Mismatch(f"where `{_access(p)}` of the program lies depends on data")
        return Operand(p.buffer, tuple(axes), tuple(steps), tuple(base))

    def varies(self, e: Expr) -> bool:
        return any(n in self.mine for n in walk(e))

    def offset(self, index: Expr, mine: Expr) -> tuple[int, Expr] | None:
        """(step, base) such that mine is base + step*index, with base the same for all axes; else None."""
        if not self.varies(index):
            return None if self.varies(mine) else (1, self.analyzer.simplify(binary("sub", mine, index)))
        terms, have = linear(index)[0], linear(mine)[0]
        first = next((v for v in terms if self.varies(v)), None)
        if first is None or not have.get(first) or have[first] % terms[first]:
            return None
        step = have[first] // terms[first]
        rest = self.analyzer.simplify(binary("sub", mine, binary("mul", index, step)))
        return None if step <= 0 or self.varies(rest) else (step, rest)


def _orders(d: Leaf, p: Leaf) -> Iterator[tuple[IterVar, ...]]:
    """The orders of p's axes in which they have the kinds and extents of d's, the given one first."""
    wanted, have = ([(iv.iter_type, extent_of(iv)) for iv in leaf.axes] for leaf in (d, p))

    def orders(start: tuple[int, ...]) -> Iterator[tuple[IterVar, ...]]:
        if len(start) == len(wanted):
            yield tuple(p.axes[n] for n in start)
            return
        for n, kind in enumerate(have):
            if n not in start and kind == wanted[len(start)]:
                yield from orders((*start, n))

    if Counter(wanted) == Counter(have) and all(extent is not None for _, extent in have):   # each start has an end
        yield from orders(())


def _axes_differ(d: Leaf, p: Leaf) -> str:
    return (f"the description has the axes {_shown(d.axes)}, block {p.realize.block.name} of the program has the "
            f"extents {_shown(p.axes)}")


def _shown(axes: Sequence[IterVar]) -> str:
    return "(" + ", ".join(f"{a.var.name}: {_KINDS.get(a.iter_type, '?')} {a.dom.extent if a.dom else '?'}"
                           for a in axes) + ")"


def _access(x: Any) -> str:
    return f"{x.buffer.name}[{', '.join(map(str, x.indices))}]"


def _text(x: Node) -> str:
    return _access(x) + f" = {x.value}" if isinstance(x, Store) else str(x)

