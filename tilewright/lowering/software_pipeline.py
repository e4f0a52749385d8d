"""Overlaps the iterations of loops that are annotated as software pipelines."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.lowering.conditions import guard
from tilewright.lowering.copying import renamed, specialize
from tilewright.lowering.scopes import analyzer_for, loop_scope
from tilewright.lowering.walking import map_stmts
from tilewright.support.errors import LowerError
from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Call, Expr, IntImm, Var
from tilewright.tir.node import Node, rewrite, statements, walk
from tilewright.tir.stmt import SERIAL, Allocate, Evaluate, For, PrimFunc, Seq, Stmt, Store, seq
from tilewright.tir.symbols import expressions, uses_any

STAGE, ORDER = "software_pipeline_stage", "software_pipeline_order"


def lower_software_pipelines(func: PrimFunc) -> PrimFunc:
    """No loop is annotated as a software pipeline: statement k of stage s runs s iterations later than its own.

    The loop `for i in range(n)` over statements S_0, S_1, ... becomes `for t in range(n + last stage)`, which runs
    S_k of iteration t - stage[k] in the given order; the ends, where only some of the statements have an iteration,
    are written out (modulo scheduling: Rau, "Iterative modulo scheduling", MICRO 1994; Huang et al., "ALCOP",
    MLSys 2023). Memory allocated inside the loop gets as many versions as stages lie between its first and last use.
    Raises LowerError where the stages would turn a dependence around.
    """
    if not any(isinstance(s, For) and STAGE in s.annotations for s in statements(func.body)):
        return func
    analyzer = analyzer_for(func)

    def visit(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For):
            with loop_scope(analyzer, stmt.loop_var, stmt.min, stmt.extent):
                new = map_stmts(stmt, visit)
            return _pipelined(new, analyzer) if isinstance(new, For) and STAGE in new.annotations else new
        return map_stmts(stmt, visit)

    return func.with_body(visit(func.body))


@dataclass(frozen=True)
class _Step:
    """A statement of the loop body, and when it runs."""
    stmt: Stmt
    stage: int
    order: int


def _pipelined(loop: For, analyzer: Analyzer) -> Stmt:
    allocations, body = [], loop.body
    while isinstance(body, Allocate):
        allocations.append(body)
        body = body.body
    steps = _steps(loop, body.stmts if isinstance(body, Seq) else (body,))
    own = {a.buffer for a in allocations}
    _check_order(loop, steps, own)
    versions = {b: _versions(b, steps) for b in own}
    copies = {b: renamed(b, shape=(IntImm(n), *b.shape)) for b, n in versions.items() if n > 1}
    out = _Rolling(loop, steps, copies, versions, analyzer).loops()
    for a in reversed(allocations):
        if any(uses_any(d, {loop.loop_var}) for d in a.buffer.shape):
            raise LowerError(f"the size of {a.buffer.name} depends on the pipelined loop {loop.loop_var.name}")
        out = a.replace(buffer=copies.get(a.buffer, a.buffer), body=out)
    return out


def _steps(loop: For, stmts: Sequence[Stmt]) -> list[_Step]:
    stages, orders = loop.annotations[STAGE], loop.annotations.get(ORDER, list(range(len(stmts))))
    name = loop.loop_var.name
    for key, values in ((STAGE, stages), (ORDER, orders)):
        if not isinstance(values, (list, tuple)) or not all(isinstance(v, int) and v >= 0 for v in values):
            raise LowerError(f"loop {name}: {key} is {values!r}, not a list of natural numbers")
        if len(values) != len(stmts):
            raise LowerError(f"loop {name}: {key} has {len(values)} entries, the body has {len(stmts)} "
                             "statements", "one entry per block or loop directly below")
    if sorted(orders) != list(range(len(orders))):
        raise LowerError(f"loop {name}: {ORDER} is {list(orders)}, not a permutation of 0 to {len(orders) - 1}")
    if loop.kind != SERIAL:
        raise LowerError(f"loop {name} is {loop.kind}; only a serial loop is a software pipeline")
    return [_Step(*row) for row in zip(stmts, stages, orders, strict=True)]


def _touched(stmt: Stmt) -> tuple[set[Buffer], set[Buffer]]:
    """The buffers that stmt (writes, reads); a pointer that is handed on may do both."""
    writes, reads = set(), set()
    for s in statements(stmt):
        if isinstance(s, Store):
            writes.add(s.buffer)
        for e in expressions(s):
            loads = {n.buffer for n in walk(e) if isinstance(n, Load)}
            reads |= loads
            if isinstance(s, Evaluate) and any(isinstance(n, Call) and n.op == "access_ptr" for n in walk(e)):
                writes |= loads
    return writes, reads


def _check_order(loop: For, steps: Sequence[_Step], own: set[Buffer]) -> None:
    """Raises LowerError unless every dependence between two statements keeps its direction.

    Within an iteration the earlier statement must stay the earlier. Where memory outlives the iteration, the later
    statement must also stay before the earlier one of the next iteration.
    """
    touched = [_touched(s.stmt) for s in steps]
    for m, first in enumerate(steps):
        for n in range(m + 1, len(steps)):
            (w1, r1), (w2, r2), then = touched[m], touched[n], steps[n]
            shared = {id(b.data): b for b in (w1 & (w2 | r2)) | (r1 & w2)}
            if not shared:
                continue
            b = next(iter(shared.values()))
            if (first.stage, first.order) >= (then.stage, then.order):
                when = f"stages {first.stage} and {then.stage}, orders {first.order} and {then.order}"
                raise LowerError(f"loop {loop.loop_var.name}: statement {n} uses {b.name} after statement {m}, and "
                                 f"would run before it: {when}")
            outliving = [b for b in shared.values() if b not in own]
            late = then.stage > first.stage + 1 or then.stage == first.stage + 1 and then.order > first.order
            if outliving and late:
                raise LowerError(
                    f"loop {loop.loop_var.name}: statement {m} of the next iteration would run before statement {n}, "
                    f"and both use {outliving[0].name}", "only memory that is allocated inside the loop gets versions")


def _versions(buffer: Buffer, steps: Sequence[_Step]) -> int:
    stages = [s.stage for s in steps if any(buffer in side for side in _touched(s.stmt))]
    return max(stages) - min(stages) + 1 if stages else 1


class _Rolling:
    """Writes the three parts of a pipeline: the start, the steady state, the end."""

    def __init__(self, loop: For, steps: Sequence[_Step], copies: Mapping[Buffer, Buffer],
                 versions: Mapping[Buffer, int], analyzer: Analyzer) -> None:
        self.loop, self.copies, self.versions, self.analyzer = loop, copies, versions, analyzer
        self.steps = sorted(steps, key=lambda s: s.order)
        self.last = max(s.stage for s in steps)
        self.dtype = loop.loop_var.dtype

    def imm(self, value: int) -> Expr:
        return IntImm(value, self.dtype)

    def loops(self) -> Stmt:
        n, last = self.loop.extent, self.imm(self.last)
        start = [self.at(self.imm(t), t, None) for t in range(self.last)]
        t = Var(self.loop.loop_var.name, self.dtype)
        annotations = {k: v for k, v in self.loop.annotations.items() if not k.startswith("software_pipeline")}
        with loop_scope(self.analyzer, t, last, binary("sub", n, last)):
            body = self.at(t, self.last, self.last)
        steady = For(t, last, self.analyzer.simplify(binary("max", binary("sub", n, last), self.imm(0))), SERIAL, body,
                     "", annotations)
        end = [self.at(binary("add", n, self.imm(e)), None, e) for e in range(self.last)]
        return seq([*start, steady, *end])

    def at(self, time: Expr, first: int | None, after_end: int | None) -> Stmt:
        """The statements of time step `time`.

        first: time itself in the start, where statements of later stages have no iteration yet; after_end: how far
        time is beyond the number of iterations in the end, where those of earlier stages have none left.
        """
        out = []
        for step in self.steps:
            if first is not None and step.stage > first:
                continue
            if first is None and after_end is not None and step.stage <= after_end:
                continue
            index = self.analyzer.simplify(binary("sub", time, self.imm(step.stage)))
            limits = []
            if first != self.last:
                limits += [binary("lt", index, self.loop.extent), binary("ge", index, self.imm(0))]
            if first is None:
                limits.append(binary("ge", time, self.imm(self.last)))
            conditions = [c for c in map(self.analyzer.simplify, limits) if not self.analyzer.prove(c)]
            if any(isinstance(c, IntImm) and not c.value for c in conditions):
                continue
            body = self.iteration(step.stmt, index)
            out.append(guard(all_of(*conditions), body) if conditions else body)
        return seq(out)

    def iteration(self, stmt: Stmt, index: Expr) -> Stmt:
        """stmt in iteration `index`, counted from 0."""
        value = self.analyzer.simplify(binary("add", index, self.loop.min))
        copy = specialize(stmt, {self.loop.loop_var: value}, fresh=True)
        slots = {b: self.analyzer.simplify(binary("floormod", index, self.imm(self.versions[b]))) for b in self.copies}

        def put(node: Node) -> Node | None:
            if isinstance(node, Load) and node.buffer in slots:
                return Load(self.copies[node.buffer], (slots[node.buffer], *node.indices), node.predicate)
            if isinstance(node, Store) and node.buffer in slots:
                return Store(self.copies[node.buffer], node.value, (slots[node.buffer], *node.indices), node.predicate)
            return None

        handed_on = {b.data for b in slots}
        if any(n in handed_on for n in walk(copy) if isinstance(n, Var)):
            raise LowerError(f"loop {self.loop.loop_var.name}: a pointer to memory with versions is handed to a call")
        return rewrite(copy, put)


def annotated_steps(stages: Sequence[int]) -> dict[str, Any]:
    """The annotations of a pipeline whose statements keep their order."""
    return {STAGE: list(stages), ORDER: list(range(len(stages)))}


def after_others(annotations: Mapping[str, Any], count: int) -> Mapping[str, Any]:
    """The annotations of a pipeline with `count` statements more at its start, of the first stage; as they are where
    they are not right.
    """
    rows = _rows(annotations)
    if rows is None:
        return annotations
    stages, orders = rows
    return {**annotations, STAGE: [0] * count + stages, ORDER: [*range(count), *(k + count for k in orders)]}


def in_parts(annotations: Mapping[str, Any], counts: Sequence[int]) -> Mapping[str, Any]:
    """The annotations of a pipeline whose statements have become `counts` of them each; as they are where they are not
    right.
    """
    rows = _rows(annotations)
    if rows is None or len(rows[0]) != len(counts):
        return annotations
    stages, orders = rows
    parts = [k for k, n in enumerate(counts) for _ in range(n)]
    turns = sorted(range(len(parts)), key=lambda n: (orders[parts[n]], n))
    return {**annotations, STAGE: [stages[k] for k in parts], ORDER: [turns.index(n) for n in range(len(parts))]}


def _rows(annotations: Mapping[str, Any]) -> tuple[list[Any], list[int]] | None:
    """The stages, and the turns of the statements in an iteration; None where these are not in order."""
    stages = annotations[STAGE]
    if not isinstance(stages, (list, tuple)):
        return None
    numbers = list(range(len(stages)))
    orders = annotations.get(ORDER, numbers)
    fits = isinstance(orders, (list, tuple)) and all(isinstance(k, int) for k in orders) and sorted(orders) == numbers
    return ([*stages], [*orders]) if fits else None


def pipelines(func: PrimFunc) -> Iterator[For]:
    """The loops of func that are annotated as software pipelines."""
    return (s for s in statements(func.body) if isinstance(s, For) and STAGE in s.annotations)
