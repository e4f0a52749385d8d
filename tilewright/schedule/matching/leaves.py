"""The innermost blocks below a statement, as tensorize compares them."""
from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.analysis.iteration import runs_once, unsure_start
from tilewright.tir.arithmetic import conjuncts
from tilewright.tir.expr import Expr, IntImm
from tilewright.tir.iter_var import IterVar
from tilewright.tir.node import statements, substitute, walk
from tilewright.tir.stmt import BlockRealize, For, Stmt


@dataclass
class Leaf:
    """A block that holds no other, with the axes put in that have one value below the loops looked at."""
    realize: BlockRealize
    axes: list[IterVar]
    init: Stmt | None
    body: Stmt


def leaves(body: Stmt) -> list[Leaf]:
    """The innermost blocks below a statement, in program order."""
    found = [s for s in statements(body) if isinstance(s, BlockRealize)]
    inside = {s.loop_var for s in statements(body) if isinstance(s, For)}
    out = []
    for realize in found:
        block = realize.block
        if any(isinstance(s, BlockRealize) for part in (block.init, block.body) if part for s in statements(part)):
            continue
        fixed = {iv.var: iv.domain.min if extent_of(iv) == 1 else value
                 for iv, value in realize.bound if extent_of(iv) == 1 or not any(n in inside for n in walk(value))}
        axes = [iv for iv in block.iter_vars if iv.var not in fixed]
        init = None if block.init is None else substitute(block.init, fixed)
        out.append(Leaf(realize, axes, init, substitute(block.body, fixed)))
    return out


def extent_of(iv: IterVar) -> int | None:
    return iv.domain.extent.value if isinstance(iv.domain.extent, IntImm) else None


def unproven(body: Stmt, leaf: Leaf, analyzer: Analyzer) -> Expr | None:
    """A condition under which the block runs that is not shown to hold always; None when there is none."""
    with analyzer.scope():
        for loop in _loops_to(body, leaf.realize):
            analyzer.bind(loop.loop_var, loop.min, loop.extent)
        return next((c for c in conjuncts(leaf.realize.predicate) if not analyzer.prove(c)), None)


def runs_whole_domain(body: Stmt, leaf: Leaf, analyzer: Analyzer) -> bool:
    """True when the loops of body run each point of the block's domain exactly once."""
    realize = leaf.realize
    loops = _loops_to(body, realize)
    values = [(iv, v) for iv, v in realize.bound if any(iv is a for a in leaf.axes)]
    used = {n for _, v in values for n in walk(v)}
    idle = [loop for loop in loops if loop.loop_var not in used
            and not (isinstance(loop.extent, IntImm) and loop.extent.value == 1)]
    return not idle and runs_once(values, loops, IntImm(1, "bool"), analyzer)


def late_start(body: Stmt, leaf: Leaf, analyzer: Analyzer) -> str:
    """Why the first step that the loops of body run may not be the one that starts the block's reduction, or ""."""
    return "" if leaf.init is None else unsure_start(leaf.realize, _loops_to(body, leaf.realize), analyzer)


def _loops_to(body: Stmt, target: Stmt) -> list[For]:
    if body is target:
        return []
    for part in getattr(body, "stmts", ()) or ([body.body] if isinstance(body, For) else []):
        if any(s is target for s in statements(part)):
            return ([body] if isinstance(body, For) else []) + _loops_to(part, target)
    return []
