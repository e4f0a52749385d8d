"""Keeps values alive that an iteration of a serial loop leaves in a buffer for the next one."""
from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import detect_iter_map
from tilewright.arith.regions import covers
from tilewright.lowering.conditions import is_likely, terms_of
from tilewright.lowering.hulls import Hull, hull_of, is_dense, join_hulls
from tilewright.lowering.scopes import analyzer_for, loop_scope
from tilewright.lowering.walking import map_stmts
from tilewright.tir.accesses import reads_memory
from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Expr, Let, Var
from tilewright.tir.node import substitute, walk
from tilewright.tir.stmt import SERIAL, UNROLLED, Allocate, For, IfThenElse, LetStmt, PrimFunc, Seq, Stmt, Store
from tilewright.tir.symbols import expressions, free_vars, uses_any

Box = list[Hull]                                       # by dimension
MOST_BOXES = 16


def lift_carried_buffers(func: PrimFunc) -> PrimFunc:
    """An allocation inside a serial loop is written, in each iteration, before and wherever it is read.

    Where that is not shown, the allocation moves out of the loop, unless the loop decides its size: then each iteration
    has always had its own. It never leaves a parallel or bound loop:
    its iterations have no order, so nothing is carried from one to the next. Expects loops with N-dimensional
    allocations (after lower_blocks).
    """
    return func.with_body(_visit(func.body, analyzer_for(func)))


def _visit(stmt: Stmt, analyzer: Analyzer) -> Stmt:
    if not isinstance(stmt, For):
        return map_stmts(stmt, lambda s: _visit(s, analyzer))
    with loop_scope(analyzer, stmt.loop_var, stmt.min, stmt.extent):
        new = map_stmts(stmt, lambda s: _visit(s, analyzer))
        return _lift(new, analyzer) if isinstance(new, For) else new


def _lift(new: For, analyzer: Analyzer) -> Stmt:
    if new.kind not in (SERIAL, UNROLLED):
        return new
    lifted: list[Allocate] = []
    out: Stmt = new.replace(body=_take(new.body, new.loop_var, lifted, analyzer))
    for a in reversed(lifted):
        out = a.replace(body=out)
    return out if lifted else new


def _take(stmt: Stmt, var: Var, lifted: list[Allocate], analyzer: Analyzer) -> Stmt:
    """stmt without the allocations that belong outside of the loop over var around it; inner loops have given up
    theirs."""
    if isinstance(stmt, Allocate) and not any(uses_any(d, {var}) for d in stmt.buffer.shape) and not _is_fresh(
            stmt, var, analyzer):
        lifted.append(stmt)
        return _take(stmt.body, var, lifted, analyzer)
    if isinstance(stmt, (Seq, Allocate, IfThenElse)):
        return map_stmts(stmt, lambda s: _take(s, var, lifted, analyzer))
    return stmt


@dataclass
class _Write:
    """A store ahead of the first read, with the conditions and the loops around it."""
    indices: tuple[Expr, ...]
    around: tuple[Expr, ...]
    loops: tuple[Var, ...]


@dataclass
class _Given:
    """The conditions and the loops around a read."""
    around: tuple[Expr, ...]
    loops: tuple[Var, ...]


@dataclass
class _Accesses:
    """The reads of one buffer in an iteration of the loop outside, and what is surely written ahead of the first."""
    buffer: Buffer
    outer: Var
    domains: dict[Var, Hull] = field(default_factory=dict)
    lets: set[Var] = field(default_factory=set)
    written: list[_Write] = field(default_factory=list)
    read: list[tuple[Expr, ...]] = field(default_factory=list)
    given: list[_Given] = field(default_factory=list)                # for each read
    escapes: bool = False

    def visit(self, stmt: Stmt, sure: bool, around: tuple[Expr, ...] = (), loops: tuple[Var, ...] = ()) -> None:
        """`sure`: the statement runs in every iteration of the loops around it, but for conditions (`around`) that are
        likely or on inner loops alone, and read no memory."""
        for e in expressions(stmt):
            for node in walk(e):
                if isinstance(node, Load) and node.buffer is self.buffer:
                    self.read.append(node.indices)
                    self.given.append(_Given(around, loops))
                elif isinstance(node, Let):
                    self.lets.add(node.var)
                elif node is self.buffer.data:
                    self.escapes = True
        match stmt:
            case Store(buffer, _, indices):
                if buffer is self.buffer and sure and not self.read:
                    self.written.append(_Write(indices, around, loops))
            case For(var, low, extent):
                self.domains[var] = (low, extent)
                self.visit(stmt.body, sure, around, (*loops, var))
            case LetStmt(var):
                self.lets.add(var)
                self.visit(stmt.body, sure, around, loops)
            case IfThenElse(cond, then, other):
                known = not reads_memory(cond) and (is_likely(cond) or self.is_inner(cond))
                self.visit(then, sure and known, (*around, *terms_of(cond)), loops)
                if other is not None:
                    self.visit(other, False, around, loops)
            case Seq(stmts):
                for s in stmts:
                    self.visit(s, sure, around, loops)
            case Allocate():
                self.visit(stmt.body, sure, around, loops)
            case _ if hasattr(stmt, "body"):
                self.visit(stmt.body, False, around, loops)

    def is_inner(self, cond: Expr) -> bool:
        """True for a condition on inner loops alone, such as `k == 0` around the start of a reduction."""
        return all(v in self.domains for t in terms_of(cond) for v in free_vars(t))

    def happens(self, w: _Write, analyzer: Analyzer) -> bool:
        """False when a read may run in an iteration in which a condition keeps all of a write from running.

        A condition lets some of it run when it holds where the inner loops begin: that is how tiles are ragged, and
        reductions start. What one on inner loops alone cuts from the elements, box_of knows.
        """
        starts = [self.at_begin(c, analyzer) for c in w.around if not self.cuts(w, c)]
        return all(analyzer.prove(c) or all(self.tells(g, c, analyzer) for g in self.given) for c in starts)

    def cuts(self, w: _Write, cond: Expr) -> bool:
        """True for a condition on inner loops alone, some of which tell the element that is written."""
        telling = {v for i in w.indices for v in free_vars(i)}
        return self.is_inner(cond) and uses_any(cond, telling)

    def tells(self, given: _Given, cond: Expr, analyzer: Analyzer) -> bool:
        """True when a read runs only where the condition holds: under it, or in loops that have iterations only there.
        """
        if any(structural_equal(cond, self.at_begin(g, analyzer)) for g in given.around):
            return True
        with analyzer.scope():
            for v in given.loops:
                analyzer.bind(v, *self.domains[v])
            return analyzer.prove(cond)

    def runs(self, w: _Write, analyzer: Analyzer) -> bool:
        """True when the loops around a write have iterations. Those that tell the element may have none as long as they
        have as many in each iteration of the loop outside."""
        telling = {v for i in w.indices for v in free_vars(i)}
        varying = {self.outer, *self.domains, *self.lets}
        with analyzer.scope():
            for v in w.loops:
                low, extent = self.domains[v]
                alike = v in telling and not uses_any(extent, varying) and not reads_memory(extent)
                if not alike and not analyzer.prove(binary("gt", extent, 0)):
                    return False
                analyzer.bind(v, low, extent)
        return True

    def at_begin(self, cond: Expr, analyzer: Analyzer) -> Expr:
        """The condition in the first iteration of the inner loops."""
        lows = {v: self.domains[v][0] for v in free_vars(cond) if v in self.domains}
        return analyzer.simplify(substitute(cond, lows))

    def box_of(self, w: _Write, analyzer: Analyzer) -> Box | None:
        """A box of which the inner loops write every element, conditions on outer loops aside; None: not known."""
        if not self.runs(w, analyzer) or any(uses_any(i, self.lets) for i in w.indices):
            return None
        used = {v: self.domains[v] for i in w.indices for v in free_vars(i) if v in self.domains}
        cuts = [c for c in w.around if self.cuts(w, c)]
        mapping = detect_iter_map(w.indices, used, all_of(*cuts), analyzer)
        if mapping is not None and mapping.is_bijective:
            return list(mapping.outputs)
        hulls = [hull_of(i, self.domains, analyzer) for i in w.indices]
        apart = sum(len(used.keys() & set(free_vars(i))) for i in w.indices) == len(used)
        known = [h for h in hulls if h is not None]
        return known if apart and not cuts and len(known) == len(hulls) and all(
            is_dense(i, used) for i in w.indices) else None


def _is_fresh(s: Allocate, loop: Var, analyzer: Analyzer) -> bool:
    """True when each element read in an iteration was written in the same iteration."""
    found = _Accesses(s.buffer, loop)
    found.visit(s.body, True)
    if found.escapes:
        return False
    boxes = [found.box_of(w, analyzer) for w in found.written if found.happens(w, analyzer)]
    whole = _merged([b for b in boxes if b is not None], analyzer)
    for indices in found.read:
        hulls = [None if uses_any(i, found.lets) else hull_of(i, found.domains, analyzer) for i in indices]
        read = [_inside(h, extent, analyzer) for h, extent in zip(hulls, s.buffer.shape, strict=True) if h is not None]
        if len(read) < len(hulls) or not any(covers(b, read, analyzer) for b in whole):
            return False
    return True


def _inside(hull: Hull, extent: Expr, analyzer: Analyzer) -> Hull:
    """The part of a hull that lies before the end of a dimension: nothing behind it is read."""
    low, length = hull
    beyond = analyzer.prove(binary("ge", binary("add", low, length), extent))
    return (low, analyzer.simplify(binary("sub", extent, low))) if beyond else hull


def _merged(boxes: list[Box], analyzer: Analyzer) -> list[Box]:
    """The boxes, and those that two of them make where they meet along one dimension and agree in the others."""
    out = list(boxes)
    for k, a in enumerate(out):                        # grows while it runs
        for b in out[:k] if len(out) < MOST_BOXES else ():
            apart = [d for d in range(len(a)) if not _same(a[d], b[d], analyzer)]
            d = apart[0] if apart else 0
            if len(apart) == 1 and _meet(a[d], b[d], analyzer):
                out.append([*a[:d], join_hulls([a[d], b[d]], analyzer), *a[d + 1:]])
    return out


def _same(a: Hull, b: Hull, analyzer: Analyzer) -> bool:
    return covers([a], [b], analyzer) and covers([b], [a], analyzer)


def _meet(a: Hull, b: Hull, analyzer: Analyzer) -> bool:
    """True when no point lies between two intervals."""
    return all(analyzer.prove(binary("le", x[0], binary("add", *y))) for x, y in ((a, b), (b, a)))
