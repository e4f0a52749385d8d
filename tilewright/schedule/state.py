"""Handles to loops and blocks, an index of a function's statements, and the rewriting of single paths."""
from __future__ import annotations

import itertools
from collections.abc import Mapping

from tilewright import tir
from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.sampled import ExprRV as ExprRV
from tilewright.support.errors import ScheduleError
from tilewright.tir.accesses import reads_memory
from tilewright.tir.arithmetic import all_of
from tilewright.tir.node import children, sub_statements, substitute, walk
from tilewright.tir.stmt import map_sub_statements, seq
from tilewright.tir.structure import STRUCTURE

_NUMBERS = itertools.count()                       # of blocks without a name


class LoopRV:
    """A handle to one loop of a schedule; it stays valid until a primitive consumes the loop.

    `place` is "root" or "inlined" for the two places of a computation that are no loop: outside of all loops, and
    in the expressions of its consumers. `sample_compute_location` gives such handles and `compute_at` takes them.
    """
    __slots__ = ("func", "origin", "place", "var")

    def __init__(self, var: tir.Var | None = None, func: str = "", place: str = "") -> None:
        """Without a variable: a handle of no schedule, for an entry of a trace that is made by hand."""
        self.var, self.func, self.place = tir.Var("loop") if var is None else var, func, place
        self.origin: object = None                # what tells the schedule that gave it; None where none did

    @staticmethod
    def symbol(name: str) -> LoopRV:
        """A handle of no schedule."""
        return LoopRV(tir.Var(name), "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoopRV) and other.var is self.var

    def __hash__(self) -> int:
        return id(self.var)

    def __repr__(self) -> str:
        return f"loop {self.var.name}" if not self.place else f"place {self.place}"


class BlockRV:
    """A handle to one block of a schedule, by the block's name; it stays valid while the block exists."""
    __slots__ = ("func", "name", "origin")

    def __init__(self, name: str | None = None, func: str = "") -> None:
        """Without a name: a handle of no schedule, for an entry of a trace that is made by hand."""
        self.name, self.func = f"?{next(_NUMBERS)}" if name is None else name, func
        self.origin: object = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlockRV) and (other.name, other.func) == (self.name, self.func)

    def __hash__(self) -> int:
        return hash((self.name, self.func))

    def __repr__(self) -> str:
        return f"block {self.name}"


class Index:
    """Where every loop, block and statement of a function body stands."""
    __slots__ = ("_outermost", "has_lets", "loops", "outside", "parent", "realizes", "root")

    def __init__(self, root: tir.Stmt) -> None:
        self.root = root
        self.outside: object = None               # filled by `outside.outside_of`
        self.has_lets = False
        self._outermost: list[tir.BlockRealize] | None = None
        self.parent: dict[int, tir.Stmt] = {}
        self.loops: dict[tir.Var, tir.For] = {}
        self.realizes: dict[str, tir.BlockRealize] = {}
        parent, stack = self.parent, [root]
        loop, realization, store = tir.For, tir.BlockRealize, tir.Store
        while stack:
            stmt = stack.pop()
            if type(stmt) is loop:
                if stmt.loop_var in self.loops:
                    raise ScheduleError(f"two loops share the variable {stmt.loop_var.name}; "
                                        "every loop needs its own Var")
                self.loops[stmt.loop_var] = stmt
                below: tir.Stmt = stmt.body
            elif type(stmt) is realization:
                if stmt.block.name in self.realizes:
                    raise ScheduleError(f"two blocks are named {stmt.block.name!r}; "
                                        "every block needs a name of its own")
                self.realizes[stmt.block.name] = stmt
                below = stmt.block
            elif type(stmt) is store:
                continue
            else:
                self.has_lets |= type(stmt) is tir.LetStmt
                for below in reversed(sub_statements(stmt)):
                    parent[id(below)] = stmt
                    stack.append(below)
                continue
            parent[id(below)] = stmt
            stack.append(below)

    def path_to(self, stmt: tir.Stmt) -> list[tir.Stmt]:
        """The statements from the root down to stmt, both included."""
        path = [stmt]
        while path[-1] is not self.root:
            path.append(self.parent[id(path[-1])])
        return path[::-1]

    def loops_above(self, stmt: tir.Stmt) -> list[tir.For]:
        """The loops around stmt up to the block that encloses it, outermost first."""
        loops: list[tir.For] = []
        here = stmt
        while here is not self.root:
            here = self.parent[id(here)]
            if type(here) is tir.For:
                loops.append(here)
            elif type(here) is tir.Block:
                break
        return loops[::-1]

    def scope_of(self, stmt: tir.Stmt) -> tir.BlockRealize:
        """The innermost block realization strictly above stmt."""
        here = self.parent[id(stmt)]
        while type(here) is not tir.BlockRealize:
            here = self.parent[id(here)]
        return here

    def outermost(self) -> list[tir.BlockRealize]:
        """The blocks that lie in no other block but the root, in program order."""
        if self._outermost is None:
            self._outermost = [r for r in self.realizes.values() if r is not self.root
                               and self.scope_of(r) is self.root]
        return self._outermost


def with_child(parent: tir.Stmt, old: tir.Stmt, new: tir.Stmt) -> tir.Stmt:
    """parent with the statement old directly below it replaced by new (a Seq is spliced into a Seq)."""
    if type(parent) is tir.Seq:
        return seq(new if s is old else s for s in parent.stmts)
    for name in STRUCTURE[type(parent)].statements:
        if getattr(parent, name) is old:
            return parent.replace(**{name: new})
    raise AssertionError("old is not a child of parent")


def replaced(index: Index, old: tir.Stmt, new: tir.Stmt) -> tir.Stmt:
    """The root of index with old replaced by new; only the path from the root to old is rebuilt."""
    while old is not index.root:
        parent = index.parent[id(old)]
        old, new = parent, with_child(parent, old, new)
    return new


def removed(index: Index, stmt: tir.Stmt) -> tir.Stmt:
    """The root of index without stmt and without the loops and branches that this leaves empty."""
    while True:
        parent = index.parent[id(stmt)]
        if type(parent) is tir.Seq and len(parent.stmts) > 1:
            return replaced(index, parent, seq(s for s in parent.stmts if s is not stmt))
        if type(parent) is tir.Block or type(parent) is tir.IfThenElse and parent.else_case is not None:
            return replaced(index, stmt, tir.NOP)
        stmt = parent


def block_root(func: tir.PrimFunc) -> tir.BlockRealize:
    """The root block's realization. Raises ScheduleError where func is not in block form."""
    if type(func.body) is not tir.BlockRealize:
        raise ScheduleError(
            f"function {func.name} is not in block form: no block holds its statements",
            'in a script put them into `with T.block("name"):`; a function that was lowered is scheduled before')
    return func.body


def outside_buffers(scope: tir.Block) -> list[tir.Buffer]:
    """The buffers in a block that are not allocated in it, in order of appearance; views that it makes are among them,
    being memory of others."""
    blocks = [n for n in walk(scope) if isinstance(n, tir.Block)]
    own = {b for block in blocks for b in block.alloc_buffers}
    own |= {m.buffer for block in blocks if block is not scope for m in block.match_buffers}
    used = dict.fromkeys(n.buffer for n in walk(scope.body) if isinstance(n, (tir.Load, tir.Store, tir.BufferRegion)))
    return [b for b in used if b not in own]


def bind_loop(analyzer: Analyzer, var: tir.Var, low: tir.Expr, extent: tir.Expr) -> None:
    """Let analyzer know the domain of a loop, but not that a loop of one iteration has one value.

    Bindings of blocks are simplified with it: they keep naming their unit loops.
    """
    unit = isinstance(extent, tir.IntImm) and extent.value <= 1
    analyzer.bind(var, low, tir.IntImm(2, var.dtype) if unit else extent)


def simpler(e: tir.Expr, analyzer: Analyzer) -> tir.Expr:
    """e simplified, or e itself where that is shorter (remainders of symbolic digits, written out, are long)."""
    out = analyzer.simplify(e)
    return e if out is e or sum(1 for _ in walk(out)) > sum(1 for _ in walk(e)) else out


def substitute_loops(stmt: tir.Stmt, table: Mapping[tir.Var, tir.Expr], analyzer: Analyzer,
                     guard: tir.Expr | None = None) -> tir.Stmt:
    """stmt with loop variables replaced in loop bounds, block bindings and predicates, which are simplified.

    Block bodies speak of iter vars only, so they stay. guard is added to the predicate of the topmost blocks, and
    stands around what else touches memory or has an effect. analyzer knows the loops around stmt.
    """
    def put(e: tir.Expr) -> tir.Expr:
        new = substitute(e, table)
        return e if new is e else simpler(new, analyzer)

    def visit(here: tir.Stmt) -> tir.Stmt:
        if type(here) is tir.For:
            low, extent = put(here.min), put(here.extent)
            bind_loop(analyzer, here.loop_var, low, extent)
            body = visit(here.body)
            same = body is here.body and extent is here.extent and low is here.min
            return guarded(here if same else here.replace(min=low, extent=extent, body=body))
        if type(here) is tir.BlockRealize:
            parts = [put(here.predicate)] if guard is None else [put(here.predicate), guard]
            ordered = sorted(parts, key=reads_memory)
            return here.replace(iter_values=tuple(put(v) for v in here.iter_values), predicate=all_of(*ordered))
        if type(here) is tir.Seq:
            return map_sub_statements(here, apart)
        return guarded(map_sub_statements(substitute(here, table), apart))

    def guarded(here: tir.Stmt) -> tir.Stmt:
        own = [n for n in children(here) if isinstance(n, tir.Expr)]
        plain = here is tir.NOP or any(sub_statements(here)) and not any(map(reads_memory, own))
        return here if guard is None or plain else tir.IfThenElse(guard, here)

    def apart(here: tir.Stmt) -> tir.Stmt:
        with analyzer.scope():                   # what a loop that may not run tells holds of none beside it
            return visit(here)

    return apart(stmt)
