"""Shared work: what the threads of a block do together, each a part of it, so that memory they share is filled once."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tilewright.support.errors import InterpreterError
from tilewright.tir.arithmetic import all_of, binary, intrinsic
from tilewright.tir.buffer import Buffer, BufferRegion, Load
from tilewright.tir.conversion import cast, is_const
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Call, Expr, IntImm, Var
from tilewright.tir.node import Node, map_children, substitute, walk
from tilewright.tir.stmt import (
    SERIAL,
    UNROLLED,
    Allocate,
    Block,
    BlockRealize,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    While,
    is_thread_axis,
    seq,
)

BARRIER = Evaluate(intrinsic("sync", "shared"))
Refuse = Callable[..., None]                     # (message, *statements, hint=...): raises


@dataclass(frozen=True)
class SharedWork:
    """A nest that the threads of a block run together, below the loops over them in `around`.

    spread: (a loop around, a loop of the same axis in the nest) whose iteration i runs on thread i. single: the loops
    around of which the first thread alone runs the nest. meets: all threads meet at a barrier before and after it.
    """
    stmt: Stmt
    around: tuple[For, ...]
    spread: tuple[tuple[For, For], ...]
    single: tuple[For, ...]
    meets: bool

    def divides(self, loop: For) -> bool:
        """True when the threads of loop, one of those around, do not each run the nest, but all of them together."""
        return any(outer is loop for outer, _ in self.spread) or any(s is loop for s in self.single)


def calls_out(n: Node) -> bool:
    """True for a statement that calls something: what it touches is not seen, and threads may meet in it."""
    return isinstance(n, Evaluate) and not (
        isinstance(n.value, Call) and n.value.op in ("prefetch", "assume", "Assert"))


def is_shared(buffer: Buffer) -> bool:
    """True for memory that the threads of a block see one copy of."""
    return buffer.scope.startswith("shared")


def share_work(func: PrimFunc) -> PrimFunc:
    """func with its shared work written out, as conditions on threads and barriers. Changes nothing in its own result.

    A nest is the largest statement, below loops over the threads of a block, that no other statement stands beside.
    For each of these loops, L:

        a loop of the nest is bound to the same axis: its iteration i runs on thread i
        the nest uses L's variable:                   each thread runs its own part
        neither, and the nest writes shared memory:   the first thread runs it

    Where the first or the last holds for some axis and the nest touches shared memory, all threads meet at a barrier
    before it and after it. Raises InterpreterError where a loop inside has more iterations than there are threads, and
    for a barrier that not all threads would reach.
    """
    def refuse(message: str, *at: Stmt, hint: str = "") -> None:
        raise InterpreterError(f"{func.name}: {message}", hint)

    return func.with_body(Sharing(func, refuse).visit(func.body)) if _has_threads(func) else func


def shared_work_of(func: PrimFunc, refuse: Refuse) -> list[SharedWork]:
    """The nests of func that threads run together; `refuse` is called for one that cannot be."""
    if not _has_threads(func):
        return []
    sharing = Sharing(func, refuse)
    sharing.visit(func.body)
    return sharing.found


def filled_together(func: PrimFunc) -> set[Buffer]:
    """The shared buffers of func that nothing but shared work writes, between two barriers, and that are not only used
    inside of one nest."""
    if not _has_threads(func):
        return set()
    nests = [work.stmt for work in shared_work_of(func, lambda *_, **__: None) if work.meets]
    home = {id(n): k for k, nest in enumerate(nests) for n in walk(nest) if isinstance(n, (Load, Store))}
    used: dict[Buffer, set[int]] = {}
    alone: set[Buffer] = set()
    for n in walk(func.body):
        if isinstance(n, (Load, Store)) and is_shared(n.buffer):
            used.setdefault(n.buffer, set()).add(home.get(id(n), -1))
            if isinstance(n, Store) and id(n) not in home:
                alone.add(n.buffer)
        elif isinstance(n, Call) and n.op == "access_ptr":
            alone |= {a.buffer for a in n.args if isinstance(a, Load)}
    return {b for b, places in used.items() if len(places) > 1 and b not in alone}


def _has_threads(func: PrimFunc) -> bool:
    return any(isinstance(n, For) and is_thread_axis(n.thread_tag) for n in walk(func.body))


class Sharing:
    """Finds the shared work of func and writes it out. `equal` compares the extents of loops."""

    def __init__(self, func: PrimFunc, refuse: Refuse,
                 equal: Callable[[Expr, Expr], bool] = structural_equal) -> None:
        self.refuse, self.equal = refuse, equal
        self.uses = _uses(func.body)
        self.seen = {b.data for b in func.buffers} | _viewed(func.body)     # memory that others may have names for
        self.found: list[SharedWork] = []
        self.around: tuple[For, ...] = ()                    # the loops over threads around
        self.follows: dict[Var | Buffer, frozenset[Var]] = {}      # a variable or view: those of threads it depends on
        self.control: frozenset[Var] = frozenset()           # those that bounds and conditions around depend on
        self.apart: For | None = None                        # a loop of one thread around, whose iterations run at once

    def visit(self, stmt: Stmt) -> Stmt:
        """stmt with the shared work in it written out. Nothing is put between a block and its bindings."""
        work = self.work(stmt) if self.around and not isinstance(stmt, Block) else None
        if work is None:
            with self.inside(stmt):
                return self.below(stmt)
        self.found.append(work)
        return self.written_out(work)

    def below(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Block) and stmt.init is not None and self.around:
            self.check_init(stmt)
            return stmt                                      # one computation
        new = map_children(stmt, lambda n: self.visit(n) if isinstance(n, Stmt) else n)
        return seq(_merged(seq(new.stmts))) if isinstance(new, Seq) and new is not stmt else new

    @contextmanager
    def inside(self, stmt: Stmt) -> Iterator[None]:
        """Within the `with`, what stmt says about what is below it is known."""
        before = self.around, self.follows, self.control, self.apart
        match stmt:
            case For(var, low, extent):
                bounds = self.threads_in((low, extent))
                self.control |= bounds
                self.follows = {**self.follows, var: bounds}
                if is_thread_axis(stmt.thread_tag):
                    self.around = (*self.around, stmt)
                    self.follows[var] = bounds if is_const(extent, 1) else bounds | {var}
                elif self.around and stmt.kind not in (SERIAL, UNROLLED):
                    self.apart = stmt
            case IfThenElse(condition) | While(condition):
                self.control |= self.threads_in((condition,))
            case LetStmt(var, value):
                self.follows = {**self.follows, var: self.threads_in((value,))}
            case BlockRealize(values, predicate, block):
                self.control |= self.threads_in((predicate,))
                self.follows = {**self.follows, **{iv.var: self.threads_in((v,)) for iv, v in
                                                   zip(block.iter_vars, values, strict=True)}}
            case Block(match_buffers=views):
                for view in views:
                    b, found = view.buffer, self.threads_in((view.source,))
                    declared = [e for e in (b.data, b.elem_offset, *b.strides) if isinstance(e, Var)]
                    self.follows = {**self.follows, **dict.fromkeys((b, *declared), found)}
        yield
        self.around, self.follows, self.control, self.apart = before

    def threads_in(self, nodes: Iterable[Node]) -> frozenset[Var]:
        """The variables of threads that the nodes use, directly or through other variables."""
        out: frozenset[Var] = frozenset()
        for node in nodes if self.follows else ():
            for n in walk(node):
                place = n.buffer if isinstance(n, (Load, Store, BufferRegion)) else n
                if isinstance(place, (Var, Buffer)) and place in self.follows:
                    out |= self.follows[place]
        return out

    # ---- what is shared work
    def outer(self, stmt: Stmt) -> For | None:
        """The loop around that is bound to the axis of stmt, a loop over real threads."""
        if not isinstance(stmt, For) or not stmt.thread_tag.startswith("threadIdx"):
            return None
        return next((loop for loop in self.around if loop.thread_tag == stmt.thread_tag), None)

    def work(self, stmt: Stmt) -> SharedWork | None:
        """What the threads around do together in stmt; None where they share nothing, or where it is in parts."""
        spread, core = self.chain(stmt)
        inner: list[tuple[For, For]] = []
        if spread:
            inner = [(outer, n) for n in walk(core) if isinstance(n, For) and (outer := self.outer(n)) is not None]
            meets = any(isinstance(n, (Load, Store)) and is_shared(n.buffer) for n in walk(stmt))
            fills = any(is_shared(b) for b in self.filled(stmt))
        else:
            if any(isinstance(n, For) and is_thread_axis(n.thread_tag) or calls_out(n) for n in walk(stmt)):
                return None
            filled = self.filled(stmt)
            meets, fills = True, bool(filled) and all(map(is_shared, filled))
        if inner and isinstance(core, Block) and core.init is not None:
            self.check_init(core)
        outers = [outer for outer, _ in (*spread, *inner)]
        used = self.threads_in((stmt,)) | self.control
        single = tuple(loop for loop in self.around if fills and loop.loop_var not in used
                       and not is_const(loop.extent, 1) and not any(loop is o for o in outers))
        if not spread and not (single and (isinstance(core, (Store, Block)) or not used or self.is_one(stmt, core))):
            return None
        self.check_axes(stmt, meets)
        self.check_whole(core, [o for o, _ in inner if not any(o is outer for outer, _ in spread)], meets)
        return SharedWork(stmt, self.around, (*spread, *inner), single, meets)

    def filled(self, stmt: Stmt) -> set[Buffer]:
        """The memory from outside that stmt writes. What it alone uses, each thread its own, is not from outside,
        wherever it is allocated."""
        own = {b for n in walk(stmt) if isinstance(n, (Allocate, Block))
               for b in ((n.buffer,) if isinstance(n, Allocate) else n.alloc_buffers)}
        out = {n.buffer for n in walk(stmt) if isinstance(n, Store)}
        for n in walk(stmt):
            if isinstance(n, Call) and n.op == "access_ptr":
                out |= {a.buffer for a in n.args if isinstance(a, Load)}
        here = _uses(stmt)
        return {b for b in out - own
                if is_shared(b) or b.data in self.seen or here[b.data] < self.uses[b.data]}

    def chain(self, stmt: Stmt) -> tuple[list[tuple[For, For]], Stmt]:
        """The loops bound to axes of the threads around on the way down to the first branch, and what is there."""
        spread: list[tuple[For, For]] = []
        while True:
            outer = self.outer(stmt)
            if outer is not None:
                assert isinstance(stmt, For)
                spread.append((outer, stmt))
            match stmt:
                case For() if outer is None and is_thread_axis(stmt.thread_tag) and not spread:
                    return [], stmt
                case Block() if stmt.init is not None:
                    return spread, stmt
                case BlockRealize():
                    stmt = stmt.block
                case For() | Block() | Allocate() | LetStmt():
                    stmt = stmt.body
                case IfThenElse(_, then, None):
                    stmt = then
                case _:
                    return spread, stmt

    def is_one(self, stmt: Stmt, core: Stmt) -> bool:
        """True for a sequence that computes one element: the start of a reduction beside its steps, say."""
        if not isinstance(core, Seq):
            return False
        accesses = [n for n in walk(stmt) if isinstance(n, (Load, Store)) and is_shared(n.buffer)]
        stored = {n.buffer: n.indices for n in accesses if isinstance(n, Store)}
        if any(n.buffer in self.follows for n in accesses):            # a view: of the same elements as another?
            return False
        return len({self.threads_in((s,)) for s in core.stmts}) == 1 and all(
            structural_equal(i, j) for n in accesses if n.buffer in stored
            for i, j in zip(n.indices, stored[n.buffer], strict=True))

    def check_init(self, block: Block) -> None:
        """Refuse a reduction whose steps are in a loop over the threads around it: each thread starts all of it."""
        for n in walk(block):
            if isinstance(n, For) and (outer := self.outer(n)) is not None:
                self.refuse(f"loop {n.loop_var.name} is bound to {n.thread_tag} inside of block {block.name}, which "
                            f"has an init, and so is loop {outer.loop_var.name} around it", outer, n,
                            hint="decompose_reduction makes the init a block of its own")

    def check_axes(self, stmt: Stmt, meets: bool) -> None:
        """Refuse a nest that threads share where a loop in it is over other threads, or blocks, than those around."""
        for n in walk(stmt) if meets else ():
            if isinstance(n, For) and n.thread_tag and self.outer(n) is None:
                self.refuse(f"loop {n.loop_var.name} is bound to {n.thread_tag} inside of what the threads of "
                            f"{self.around[-1].thread_tag} share", n, hint=f"bind a loop around it to {n.thread_tag}")

    def check_whole(self, core: Stmt, inner: Iterable[For], meets: bool) -> None:
        """Refuse statements side by side of which an axis of threads runs some in a loop of its own, and not all."""
        sequences = [n for n in walk(core) if isinstance(n, Seq)] if meets else []
        for loop in {id(o): o for o in inner}.values():
            for sequence in sequences:
                parts = [any(self.outer(n) is loop for n in walk(s) if isinstance(n, For)) for s in sequence.stmts]
                if any(parts) and not all(parts):
                    self.refuse(f"some of the statements of a nest that the threads of {loop.thread_tag} share, and "
                                "not all, are in a loop bound to it", sequence, hint="bind a loop around all of them")

    # ---- how it is written out
    def written_out(self, work: SharedWork) -> Stmt:
        new = self.unified(work.stmt)
        if work.single:
            first = [binary("eq", loop.loop_var, loop.min) for loop in work.single]
            new = IfThenElse(all_of(*first), new)
        if not work.meets:
            return new
        hint = "compute it at a place that all threads of the block reach alike"
        if self.control:
            names = ", ".join(sorted(v.name for v in self.control))
            self.refuse(f"the threads of a block would not all meet at the barriers around what they share: a loop or "
                        f"condition around it depends on {names}", work.stmt, hint=hint)
        if self.apart is not None:
            kind = self.apart.thread_tag or self.apart.kind
            self.refuse(f"the threads of a block would meet inside of the {kind} loop {self.apart.loop_var.name} of "
                        "one of them", self.apart, work.stmt, hint=hint)
        return Seq((BARRIER, new, BARRIER))

    def unified(self, stmt: Any) -> Any:
        """stmt without loops bound to an axis of the threads around: iteration i of such a loop runs on thread i."""
        outer, before = self.outer(stmt), self.around
        if outer is None and isinstance(stmt, For) and is_thread_axis(stmt.thread_tag):
            self.around = (*before, stmt)
        new = map_children(stmt, lambda n: self.unified(n) if isinstance(n, Stmt) else n)
        self.around = before
        if isinstance(new, Seq) and new is not stmt:
            new = seq(new.stmts)
        if outer is None:
            return new
        index = binary("sub", outer.loop_var, outer.min)
        body = substitute(new.body, {new.loop_var: cast(new.loop_var.dtype, binary("add", new.min, index))})
        if self.equal(new.extent, outer.extent):
            return body
        small, large = new.extent, outer.extent
        if not (isinstance(small, IntImm) and isinstance(large, IntImm) and small.value < large.value):
            self.refuse(f"loop {new.loop_var.name} is bound to {new.thread_tag} with extent {new.extent}, inside loop "
                        f"{outer.loop_var.name} which is bound to it with extent {outer.extent}", outer, stmt,
                        hint="give the outer loop the larger extent, or split the inner one by it")
        condition = binary("lt", index, new.extent)
        return IfThenElse(Call("likely", (condition,), "bool"), body)


def _uses(stmt: Stmt) -> Counter[Var]:
    """How often the statement loads or stores elements of each memory, by its pointer."""
    return Counter(n.buffer.data for n in walk(stmt) if isinstance(n, (Load, Store)))


def _viewed(stmt: Stmt) -> set[Var]:
    """The pointers to memory of which there are views."""
    return {view.source.buffer.data for n in walk(stmt) if isinstance(n, Block) for view in n.match_buffers}


def _merged(stmt: Stmt) -> Iterator[Stmt]:
    """The statements of a sequence, without a barrier of ours beside another one."""
    last: Stmt | None = None
    for s in stmt.stmts if isinstance(stmt, Seq) else (stmt,):
        if last is None or not (_is_barrier(s) and _is_barrier(last) and (s is BARRIER or last is BARRIER)):
            yield s
        last = s


def _is_barrier(stmt: Stmt) -> bool:
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op == "sync"
