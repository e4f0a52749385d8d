"""Replaces virtual threads by copies of their statements, interleaved."""
from __future__ import annotations

from tilewright import tir
from tilewright.lowering.copying import renamed, specialize
from tilewright.lowering.walking import map_stmts
from tilewright.support.errors import LowerError
from tilewright.tir.arithmetic import binary
from tilewright.tir.node import Node, rewrite, statements, walk
from tilewright.tir.stmt import seq
from tilewright.tir.symbols import expressions, uses_any

MOST_UNROLLED = 16          # virtual threads whose copies are written out


def lower_virtual_threads(func: tir.PrimFunc) -> tir.PrimFunc:
    """No loops bound to virtual threads are left.

    The iterations of such a loop are independent between barriers, so that the loop may be distributed over the
    statements of its body and exchanged with the serial loops in it: it ends at the innermost statements, their
    copies side by side (TVM's "virtual threads", Chen et al., OSDI 2018). What a statement computes alike for all of
    them is computed once. Memory allocated inside that differs between them gets one more, outermost dimension.
    Barriers that only virtual threads met at are gone: one thread runs them all, up to there.
    Raises LowerError where a barrier or an allocation depends on the virtual thread.
    """
    if not any(isinstance(s, tir.For) and _is_virtual(s) for s in statements(func.body)):
        return func
    return func.with_body(_without_barriers(_visit(func.body)))


def _without_barriers(stmt: tir.Stmt) -> tir.Stmt:
    """stmt without the barriers that are outside of the loops over real threads."""
    if isinstance(stmt, tir.For) and stmt.thread_tag.startswith("threadIdx"):
        return stmt
    return tir.NOP if isinstance(stmt, tir.Evaluate) and _is_barrier(stmt.value) else map_stmts(stmt, _without_barriers)


def _is_virtual(s: tir.For) -> bool:
    return s.kind == tir.THREAD_BINDING and s.thread_tag.startswith("vthread")


def _visit(stmt: tir.Stmt) -> tir.Stmt:
    new = map_stmts(stmt, _visit)
    if isinstance(new, tir.For) and _is_virtual(new):
        return _Interleaving(new).push(new.body)
    return new


class _Interleaving:
    """Moves one loop of virtual threads inwards."""

    def __init__(self, axis: tir.For) -> None:
        self.axis = axis
        self.var = axis.loop_var
        self.tainted = self._tainted()
        self.copies: dict[tir.Buffer, tir.Buffer] = {}

    def _tainted(self) -> set[tir.Buffer]:
        """The buffers allocated below the axis that hold something else in each virtual thread."""
        inside = {s.buffer for s in statements(self.axis.body) if isinstance(s, tir.Allocate)}
        found: set[tir.Buffer] = set()
        before = -1
        while len(found) != before:
            before = len(found)
            self._taint(self.axis.body, False, inside, found)
        return found

    def _taint(self, stmt: tir.Stmt, differs: bool, inside: set[tir.Buffer], found: set[tir.Buffer]) -> None:
        """Add to found what is stored below stmt; differs: under a condition or bounds that depend on the axis."""
        differs = differs or any(self._differs(e, found) for e in expressions(stmt) if not isinstance(stmt, tir.Store))
        if isinstance(stmt, tir.Store) and stmt.buffer in inside:
            if differs or any(self._differs(e, found) for e in expressions(stmt)):
                found.add(stmt.buffer)
        if isinstance(stmt, tir.Evaluate) and (differs or self._differs(stmt.value, found)):
            named = {n.buffer for n in walk(stmt.value) if isinstance(n, tir.Load)}
            found |= {b for b in inside if b in named or uses_any(stmt.value, {b.data})}
        map_stmts(stmt, lambda s: self._taint_below(s, differs, inside, found))

    def _taint_below(self, stmt: tir.Stmt, differs: bool, inside: set[tir.Buffer], found: set[tir.Buffer]) -> tir.Stmt:
        self._taint(stmt, differs, inside, found)
        return stmt

    def _differs(self, e: Node, found: set[tir.Buffer]) -> bool:
        return any(n is self.var or isinstance(n, tir.Load) and n.buffer in found for n in walk(e))

    def _depends(self, stmt: tir.Stmt) -> bool:
        for s in statements(stmt):
            if isinstance(s, tir.Store) and s.buffer in self.tainted or isinstance(s, tir.Evaluate):
                return True
            if any(self._differs(e, self.tainted) for e in expressions(s)):
                return True
        return False

    def push(self, stmt: tir.Stmt) -> tir.Stmt:
        """stmt for all virtual threads."""
        if isinstance(stmt, tir.Allocate):
            return self._allocate(stmt)
        if isinstance(stmt, tir.Evaluate) and _is_barrier(stmt.value) or not self._depends(stmt):
            return stmt
        if isinstance(stmt, tir.Seq):
            return seq([self.push(s) for s in stmt.stmts])
        uniform = not any(self._differs(e, self.tainted) for e in expressions(stmt))
        if uniform and not isinstance(stmt, (tir.Store, tir.Evaluate)) and not (
                isinstance(stmt, tir.For) and stmt.kind == tir.VECTORIZED):
            return map_stmts(stmt, self.push)
        return self._copies(stmt)

    def _allocate(self, stmt: tir.Allocate) -> tir.Stmt:
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

    def _copies(self, stmt: tir.Stmt) -> tir.Stmt:
        """One copy of stmt per virtual thread, one after the other."""
        if any(_is_barrier(n) for n in walk(stmt)):
            raise LowerError(
                f"a barrier stands under a condition that depends on {self.axis.thread_tag} ({self.var.name})",
                "all virtual threads of a thread must reach it")
        index = tir.Var(self.var.name, self.var.dtype)
        body = self._redirected(specialize(stmt, {self.var: index}, fresh=True), index)
        count = self.axis.extent
        unrolled = isinstance(count, tir.IntImm) and count.value <= MOST_UNROLLED
        return tir.For(index, self.axis.min, count, tir.UNROLLED if unrolled else tir.SERIAL, body)

    def _redirected(self, stmt: tir.Stmt, index: tir.Expr) -> tir.Stmt:
        """stmt with accesses to the memory that all share replaced by accesses to the part of virtual thread index."""
        own = binary("sub", index, self.axis.min)

        def put(node: Node) -> Node | None:
            if isinstance(node, tir.Load) and node.buffer in self.copies:
                return tir.Load(self.copies[node.buffer], (own, *node.indices), node.predicate)
            if isinstance(node, tir.Store) and node.buffer in self.copies:
                return tir.Store(self.copies[node.buffer], node.value, (own, *node.indices), node.predicate)
            return None

        moved = {old.data: new for old, new in self.copies.items()}
        if any(n in moved for n in walk(stmt) if isinstance(n, tir.Var)):
            raise LowerError(f"a pointer to memory of {self.axis.thread_tag} is handed to a call",
                             "bind the loop to a thread instead")
        return specialize(rewrite(stmt, put), {})


def _is_barrier(e: Node) -> bool:
    return isinstance(e, tir.Call) and e.op == "sync"
