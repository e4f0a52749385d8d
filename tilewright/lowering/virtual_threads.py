"""Replaces virtual threads by copies of their statements, interleaved."""
from __future__ import annotations

from tilewright.lowering.copying import renamed, specialize
from tilewright.lowering.walking import map_stmts
from tilewright.support.errors import LowerError
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Call, Expr, IntImm, Var
from tilewright.tir.node import Node, rewrite, statements, walk
from tilewright.tir.stmt import (
    NOP,
    SERIAL,
    THREAD_BINDING,
    UNROLLED,
    VECTORIZED,
    Allocate,
    Evaluate,
    For,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    seq,
)
from tilewright.tir.symbols import expressions, uses_any

MOST_UNROLLED = 16          # virtual threads whose copies are written out


def lower_virtual_threads(func: PrimFunc) -> PrimFunc:
    """No loops bound to virtual threads are left.

    The iterations of such a loop are independent between barriers, so that the loop may be distributed over the
    statements of its body and exchanged with the serial loops in it: it ends at the innermost statements, their
    copies side by side (TVM's "virtual threads", Chen et al., OSDI 2018). What a statement computes alike for all of
    them is computed once. Memory allocated inside that differs between them gets one more, outermost dimension.
    Barriers that only virtual threads met at are gone: one thread runs them all, up to there.
    Raises LowerError where a barrier or an allocation depends on the virtual thread.
    """
    if not any(isinstance(s, For) and _is_virtual(s) for s in statements(func.body)):
        return func
    return func.with_body(_without_barriers(_visit(func.body)))


def _without_barriers(stmt: Stmt) -> Stmt:
    """stmt without the barriers that are outside of the loops over real threads."""
    if isinstance(stmt, For) and stmt.thread_tag.startswith("threadIdx"):
        return stmt
    return NOP if isinstance(stmt, Evaluate) and _is_barrier(stmt.value) else map_stmts(stmt, _without_barriers)


def _is_virtual(s: For) -> bool:
    return s.kind == THREAD_BINDING and s.thread_tag.startswith("vthread")


def _visit(stmt: Stmt) -> Stmt:
    new = map_stmts(stmt, _visit)
    if isinstance(new, For) and _is_virtual(new):
        return _Interleaving(new).push(new.body)
    return new


class _Interleaving:
    """Moves one loop of virtual threads inwards."""

    def __init__(self, axis: For) -> None:
        self.axis = axis
        self.var = axis.loop_var
        self.tainted = self._tainted()
        self.copies: dict[Buffer, Buffer] = {}

    def _tainted(self) -> set[Buffer]:
        """The buffers allocated below the axis that hold something else in each virtual thread."""
        inside = {s.buffer for s in statements(self.axis.body) if isinstance(s, Allocate)}
        found: set[Buffer] = set()
        before = -1
        while len(found) != before:
            before = len(found)
            self._taint(self.axis.body, False, inside, found)
        return found

    def _taint(self, stmt: Stmt, differs: bool, inside: set[Buffer], found: set[Buffer]) -> None:
        """Add to found what is stored below stmt; differs: under a condition or bounds that depend on the axis."""
        differs = differs or any(self._differs(e, found) for e in expressions(stmt) if not isinstance(stmt, Store))
        if isinstance(stmt, Store) and stmt.buffer in inside:
            if differs or any(self._differs(e, found) for e in expressions(stmt)):
                found.add(stmt.buffer)
        if isinstance(stmt, Evaluate) and (differs or self._differs(stmt.value, found)):
            named = {n.buffer for n in walk(stmt.value) if isinstance(n, Load)}
            found |= {b for b in inside if b in named or uses_any(stmt.value, {b.data})}
        map_stmts(stmt, lambda s: self._taint_below(s, differs, inside, found))

    def _taint_below(self, stmt: Stmt, differs: bool, inside: set[Buffer], found: set[Buffer]) -> Stmt:
        self._taint(stmt, differs, inside, found)
        return stmt

    def _differs(self, e: Node, found: set[Buffer]) -> bool:
        return any(n is self.var or isinstance(n, Load) and n.buffer in found for n in walk(e))

    def _depends(self, stmt: Stmt) -> bool:
        for s in statements(stmt):
            if isinstance(s, Store) and s.buffer in self.tainted or isinstance(s, Evaluate):
                return True
            if any(self._differs(e, self.tainted) for e in expressions(s)):
                return True
        return False

    def push(self, stmt: Stmt) -> Stmt:
        """stmt for all virtual threads."""
        if isinstance(stmt, Allocate):
            return self._allocate(stmt)
        if isinstance(stmt, Evaluate) and _is_barrier(stmt.value) or not self._depends(stmt):
            return stmt
        if isinstance(stmt, Seq):
            return seq([self.push(s) for s in stmt.stmts])
        uniform = not any(self._differs(e, self.tainted) for e in expressions(stmt))
        if uniform and not isinstance(stmt, (Store, Evaluate)) and not (
                isinstance(stmt, For) and stmt.kind == VECTORIZED):
            return map_stmts(stmt, self.push)
        return self._copies(stmt)

    def _allocate(self, stmt: Allocate) -> Stmt:
        old = stmt.buffer
        if old not in self.tainted:
            return map_stmts(stmt, self.push)
        if old.strides or old.elem_offset is not None or any(uses_any(d, {self.var}) for d in old.shape):
            raise LowerError(
                f"the allocation {old.name} has strides, an offset or a shape that depends on {self.axis.thread_tag}",
                "allocate it outside of the virtual threads")
        new = renamed(old, shape=(self.axis.extent, *old.shape))
        self.copies[old] = new
        return stmt.replace(buffer=new, body=self.push(stmt.body))

    def _copies(self, stmt: Stmt) -> Stmt:
        """One copy of stmt per virtual thread, one after the other."""
        if any(_is_barrier(n) for n in walk(stmt)):
            raise LowerError(
                f"a barrier stands under a condition that depends on {self.axis.thread_tag} ({self.var.name})",
                "all virtual threads of a thread must reach it")
        index = Var(self.var.name, self.var.dtype)
        body = self._redirected(specialize(stmt, {self.var: index}, fresh=True), index)
        count = self.axis.extent
        unrolled = isinstance(count, IntImm) and count.value <= MOST_UNROLLED
        return For(index, self.axis.min, count, UNROLLED if unrolled else SERIAL, body)

    def _redirected(self, stmt: Stmt, index: Expr) -> Stmt:
        """stmt with accesses to the memory that all share replaced by accesses to the part of virtual thread index."""
        own = binary("sub", index, self.axis.min)

        def put(node: Node) -> Node | None:
            if isinstance(node, Load) and node.buffer in self.copies:
                return Load(self.copies[node.buffer], (own, *node.indices), node.predicate)
            if isinstance(node, Store) and node.buffer in self.copies:
                return Store(self.copies[node.buffer], node.value, (own, *node.indices), node.predicate)
            return None

        moved = {old.data: new for old, new in self.copies.items()}
        if any(n in moved for n in walk(stmt) if isinstance(n, Var)):
            raise LowerError(f"a pointer to memory of {self.axis.thread_tag} is handed to a call",
                             "bind the loop to a thread instead")
        return specialize(rewrite(stmt, put), {})


def _is_barrier(e: Node) -> bool:
    return isinstance(e, Call) and e.op == "sync"
