"""The block of a loop: each axis of the block below is taken apart into an outer and an inner one."""
from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.linear import linear
from tilewright.arith.regions import interval_of
from tilewright.schedule.analysis.covering import covering
from tilewright.schedule.analysis.domains import Interval, axis_domains, domains_of
from tilewright.schedule.analysis.iteration import unsure_start
from tilewright.schedule.analysis.legality import require_fixed_bounds
from tilewright.schedule.analysis.mixed_radix import is_number
from tilewright.schedule.analysis.region import Region
from tilewright.schedule.analysis.shared_reductions import require_one_thread
from tilewright.schedule.outside import outside_of
from tilewright.schedule.primitives.reduction import (
    reads_with_output,
    require_runs_once,
    require_start_apart,
    start_nest,
)
from tilewright.schedule.schedule import Schedule
from tilewright.support.errors import Illegal, legal, require
from tilewright.tir.arithmetic import all_of, binary, conjuncts
from tilewright.tir.conversion import cast, is_const
from tilewright.tir.dtype import is_integer
from tilewright.tir.empty_reductions import left_by_start, speaks_of
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Binary, Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, IterVar, Range
from tilewright.tir.node import statements, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, For, Stmt


@dataclass
class _Part:
    """One axis taken apart: outer*scale + inner + offset."""
    axis: IterVar
    outer: Expr
    inner: Expr
    scale: int
    offset: int
    inner_extent: Expr
    outside: bool = False                        # no loop below has a part in it


def blockize_loop(sch: Schedule, top: For | BlockRealize, preserve_unit_iters: bool,
                  start_outside: bool = False) -> str:
    """Blockize the loop top, or a block that holds no other: the new block's name.

    start_outside: the init of a reduction moves to the new block in any case.
    """
    found = [s for s in statements(top) if isinstance(s, BlockRealize)]
    require(len(found) == 1, f"{len(found)} blocks are in the subtree: "
            f"{', '.join(s.block.name for s in found) or 'none'}", top, hint="give a list of blocks")
    realize = found[0]
    _require_nest(top, realize)
    for read in outside_of(sch.index).of(realize):
        require(not any(s is read.place for s in statements(top)), f"{read.region.buffer.name} is read on the way to "
                f"block {realize.block.name}, in what is to be the new block", read.place)
    loops = sch.index.loops_above(realize)
    for loop in loops:
        require_fixed_bounds([loop])
    require_one_thread(realize, loops, "bind after blockize, a loop outside of the new block")
    inside = loops[loops.index(top):] if isinstance(top, For) else []
    around = [loop for loop in loops if loop not in inside]
    analyzer = sch.analyzer_at(realize)
    parts = [_divide(iv, value, around, inside, analyzer) for iv, value in realize.bound]
    _require_in_domain(sch, top, realize, parts, inside)
    return _Blockized(sch, top, realize, parts, around, inside, preserve_unit_iters, start_outside).build()


def _require_in_domain(sch: Schedule, top: Stmt, realize: BlockRealize, parts: Sequence[_Part],
                       inside: Sequence[For]) -> None:
    """The axes of the new block stay in their domains where the loops inside, which are to be in it, never run."""
    inner = {a.loop_var for a in inside}
    analyzer = sch.analyzer_at(top)
    outer = [c for c in conjuncts(realize.predicate) if not any(n in inner for n in walk(c))]
    with analyzer.constraint(all_of(*outer)):
        for part in parts:
            dom = part.axis.domain
            if part.outside:
                end = binary("add", dom.min, dom.extent)
                legal(analyzer.prove(binary("ge", part.outer, dom.min)) and analyzer.prove(binary(
                    "lt", part.outer, end)), f"axis {part.axis.var.name} of block {realize.block.name} is {part.outer} "
                    f"around the loops, which is not known to be in its domain where they never run", top, realize)


def _require_nest(top: Stmt, realize: BlockRealize) -> None:
    """There is nothing but loops between top and the block."""
    for s in statements(top):
        if s is realize:
            return
        require(isinstance(s, For), f"there is a {type(s).__name__} between the loop and block {realize.block.name}", s)


def _divide(iv: IterVar, value: Expr, around: Sequence[For], inside: Sequence[For], analyzer: Analyzer) -> _Part:
    """The parts of an axis that the loops around and inside drive."""
    outer_vars, inner = {a.loop_var for a in around}, domains_of(inside)
    zero, one = IntImm(0, iv.var.dtype), IntImm(1, iv.var.dtype)
    if not any(n in inner for n in walk(value)):
        return _Part(iv, value, zero, 1, 0, one, outside=True)
    if not any(n in outer_vars for n in walk(value)):
        hull = interval_of(value, inner, analyzer)
        low = hull[0] if hull is not None else iv.domain.min
        if hull is None or _holds_domain(iv, hull, analyzer):
            low, hull = iv.domain.min, (iv.domain.min, iv.domain.extent)
        if isinstance(low, IntImm) and not any(n in inner or n in outer_vars for n in walk(hull[1])):
            return _Part(iv, zero, analyzer.simplify(binary("sub", value, low)), 1, low.value, hull[1])
        return _Part(iv, zero, value, 1, 0, binary("add", iv.domain.min, iv.domain.extent))
    terms, offset = linear(value)
    low_terms = {v: k for v, k in terms.items() if any(n in inner for n in walk(v))}
    rest = {v: k for v, k in terms.items() if v not in low_terms}
    size = 1
    for v, k in sorted(low_terms.items(), key=lambda item: item[1]):
        extent = inner[v][1] if isinstance(v, Var) and v in inner else None
        if not isinstance(extent, IntImm):
            size = 0
        elif extent.value != 1:
            size = k * extent.value
    good = size > 0 and all(v in inner for v in low_terms) and is_number(low_terms, inner) and all(
        k % size == 0 for k in rest.values())
    if not good:
        raise Illegal(f"axis {iv.var.name} is {value}, which is no outer*c + inner for the loops "
                      f"{', '.join(a.loop_var.name for a in inside)} below", (inside[0],),
                      "split so that the inner loops run through 0, 1, ... and the outer ones step by their number")
    return _Part(iv, _sum({v: k // size for v, k in rest.items()}, iv.var.dtype), _sum(low_terms, iv.var.dtype), size,
                 offset, IntImm(size, iv.var.dtype))


def _holds_domain(iv: IterVar, hull: Interval, analyzer: Analyzer) -> bool:
    end, last = binary("add", iv.domain.min, iv.domain.extent), binary("add", *hull)
    return analyzer.prove(binary("le", hull[0], iv.domain.min)) and analyzer.prove(binary("ge", last, end))


def _sum(terms: Mapping[Expr, int], dtype: str) -> Expr:
    total: Expr = IntImm(0, dtype)
    for v, k in terms.items():
        total = binary("add", total, binary("mul", cast(dtype, v), k))
    return total


class _Blockized:
    """Builds the outer and the inner block of one blockize."""

    def __init__(self, sch: Schedule, top: Stmt, realize: BlockRealize, parts: Sequence[_Part],
                 around: Sequence[For], inside: Sequence[For], keep_units: bool, start_outside: bool) -> None:
        self.sch, self.top, self.realize, self.parts = sch, top, realize, parts
        self.around, self.inside, self.keep_units = around, inside, keep_units
        self.analyzer = sch.analyzer_at(realize)
        self.outer_axes: list[tuple[IterVar, Expr]] = []
        self.inner_axes: list[tuple[IterVar, Expr]] = []
        self.value: dict[Var, Expr] = {}                     # axis of the old block -> in the new axes
        for part in parts:
            self._axis(part)
            if realize.block.init is not None and part.axis.iter_type == COMM_REDUCE:
                self._require_start(part)
        self.inside = [self._bounded_by_axes(loop) for loop in inside]
        reduces = any(iv.iter_type == COMM_REDUCE and not _unit(iv) for iv, _ in self.outer_axes)
        self.starts = realize.block.init is not None and (reduces or start_outside)
        if self.starts:
            require_start_apart(realize.block, (w.buffer for w in realize.block.writes), realize)
            why = unsure_start(realize, [*around, *inside], self.analyzer, inside)
            legal(not why, why, realize)
            self._require_one_start(inside)
        for part in parts if realize.block.init is not None else ():
            if part.axis.iter_type == COMM_REDUCE:
                self._require_first(part.axis)

    def _require_one_start(self, inside: Sequence[For]) -> None:
        """The loops inside run each point of the new block once: it starts the reduction once, ahead of them all."""
        block, hint = self.realize.block, "blockize a loop around all steps of the reduction"
        if inside:
            require_runs_once(self.realize, Region(self.sch, inside), hint)
        driving = {n for value in self.realize.iter_values for n in walk(value)}
        idle = [a for a in inside if a.loop_var not in driving and is_const(a.extent, 0)]
        legal(not idle, f"block {block.name} never runs, and the new block would start its reduction", *idle, hint=hint)

    def _axis(self, part: _Part) -> None:
        iv, zero = part.axis, IntImm(0, part.axis.var.dtype)
        outer_value: Expr = zero
        inner_value: Expr = zero
        if self.keep_units or not isinstance(part.outer, IntImm):
            axis = IterVar(self._outer_domain(part), Var(f"{iv.var.name}_o", iv.var.dtype), iv.iter_type)
            self.outer_axes.append((axis, part.outer))
            outer_value = axis.var
        else:
            outer_value = part.outer
        if self.keep_units or not isinstance(part.inner, IntImm):
            axis = IterVar(Range(zero, part.inner_extent), Var(f"{iv.var.name}_i", iv.var.dtype), iv.iter_type)
            self.inner_axes.append((axis, part.inner))
            inner_value = axis.var
        total = binary("add", binary("add", binary("mul", outer_value, part.scale), inner_value), part.offset)
        self.value[iv.var] = total
        for axis, _ in (*self.outer_axes[-1:], *self.inner_axes[-1:]):
            self.analyzer.bind(axis.var, axis.domain.min, axis.domain.extent)

    def _require_first(self, iv: IterVar) -> None:
        """The new axes of a reduction are at their first points where the old one is: there it starts."""
        points = {new.var: new.domain.min for new, _ in (*self.outer_axes, *self.inner_axes)}
        first, name = self.analyzer.simplify(substitute(self.value[iv.var], points)), self.realize.block.name
        legal(self.analyzer.equal(first, iv.domain.min), f"block {name} starts its reduction at {iv.var.name} = "
              f"{iv.domain.min}, and would start it at {first} in the new block", self.top, self.realize,
              hint="run the loops over the domain from its beginning, under a condition")

    def _require_start(self, part: _Part) -> None:
        """A reduction over no elements starts where its axes say that there are none: so must the new ones.

        The axes inside the new block do where it runs at all: no loop around may stand still that drives nothing.
        """
        iv, scope = part.axis, self.sch.index.scope_of(self.top).block
        analyzer = self.sch.analyzer_at(scope.body)            # which does not know that the loops around run
        new = [part.inner_extent]
        if not isinstance(part.outer, IntImm):
            new += [axis.domain.extent for axis, _ in self.outer_axes[-1:]]
        with analyzer.constraint(binary("gt", iv.domain.extent, 0)):
            runs = all(analyzer.prove(binary("gt", extent, 0)) for extent in new)
            legal(runs or analyzer.prove(binary("le", iv.domain.extent, 0)), f"axis {iv.var.name} of block "
                  f"{self.realize.block.name} has elements, and the axes of the new block none where its loops have no "
                  "iterations: it would start a reduction that does not start", self.top, self.realize)
        if analyzer.prove(binary("gt", iv.domain.extent, 0)):
            return
        left = left_by_start(self.realize, [*self.around, *self.inside])
        cut = [p.axis.var.name for p in self.parts if p.axis.iter_type != COMM_REDUCE and speaks_of(left, p.inner)
               and not analyzer.equal(p.inner_extent, p.axis.domain.extent)]
        legal(not cut, f"where axis {iv.var.name} of block {self.realize.block.name} has no elements, the whole domain "
              f"of axis {cut[0] if cut else ''} starts, and of the new block's axis a part would", self.top,
              self.realize, hint="decompose_reduction first")
        extents, runs = new[:1], True
        if not isinstance(part.outer, IntImm):
            extents = new[1:]
        else:
            driving = {n for p in self.parts for n in walk(p.outer)}
            runs = all(a.loop_var in driving or analyzer.prove(binary("gt", a.extent, 0)) for a in self.around)
        with analyzer.constraint(binary("le", iv.domain.extent, 0)):
            tells = any(analyzer.prove(binary("le", extent, 0)) for extent in extents)
        legal(runs and tells, f"axis {iv.var.name} of block {self.realize.block.name} has {iv.domain.extent} elements; "
              "where these are none, the new block's axes would not tell, and the reduction not start", self.top,
              self.realize, hint="blockize before the loops are split or fused")

    def _bounded_by_axes(self, loop: For) -> For:
        """A loop inside, whose bounds the axes of the new block tell in the place of the loops around."""
        axes = {value: axis.var for axis, value in self.outer_axes if isinstance(value, Var)}
        around = {a.loop_var for a in self.around}
        low, extent = (substitute(e, axes) for e in (loop.min, loop.extent))
        require(not any(n in around for e in (low, extent) for n in walk(e)), f"the bounds {low} and {extent} of loop "
                f"{loop.loop_var.name} cannot be told by the new block's axes", loop, hint="blockize a loop outside")
        return loop.replace(min=low, extent=extent)

    def _outer_domain(self, part: _Part) -> Range:
        """The values that the outer part takes."""
        iv = part.axis
        if part.outside:
            never = is_const(iv.domain.extent, 0) and isinstance(part.outer, IntImm)
            return Range(part.outer, IntImm(1, iv.var.dtype)) if never else iv.domain
        if isinstance(part.outer, IntImm):
            return Range(IntImm(0, iv.var.dtype), IntImm(1, iv.var.dtype))
        hull = interval_of(part.outer, domains_of(self.around), self.sch.analyzer_at(None))
        variables = {a.loop_var for a in self.around}
        known = hull is not None and not any(n in variables for e in hull for n in walk(e))
        if not known:
            first = binary("sub", iv.domain.min, part.offset)
            low = self.analyzer.simplify(binary("floordiv", first, part.scale))
            end = binary("floordiv", binary("add", binary("add", first, iv.domain.extent), part.scale - 1), part.scale)
            return Range(low, self.analyzer.simplify(binary("sub", end, low)))
        assert hull is not None
        return Range(*(cast(iv.var.dtype, e) for e in hull))

    def build(self) -> str:
        """Put the new block in the place of the subtree; its name."""
        old, sch = self.realize.block, self.sch
        outer_guard, inner_guard, start_guard = self._guards()
        table = {v: self.analyzer.simplify(e) for v, e in self.value.items()}
        inner_block = substitute(old.replace(iter_vars=()), table).replace(
            iter_vars=tuple(iv for iv, _ in self.inner_axes))
        init = self._start(inner_block, start_guard) if self.starts else None
        if self.starts:
            inner_block = inner_block.replace(init=None, reads=reads_with_output(inner_block))
        inner = BlockRealize(tuple(v for _, v in self.inner_axes), inner_guard, inner_block)
        body: Stmt = inner
        for loop in reversed(self.inside):
            body = loop.replace(body=body)
        name = sch.fresh_block(f"{old.name}_o")
        ranges = axis_domains(iv for iv, _ in self.inner_axes)
        hidden = inner_block.writes if old.init is not None else ()
        reads = [r for r in inner_block.reads if not any(structural_equal(r, w) for w in hidden)]
        outer = Block(name, tuple(iv for iv, _ in self.outer_axes), covering(reads, ranges, self.analyzer),
                      covering(inner_block.writes, ranges, self.analyzer), body, init)
        sch.replace(self.top, BlockRealize(tuple(v for _, v in self.outer_axes), outer_guard, outer))
        return name

    def _guards(self) -> tuple[Expr, Expr, Expr]:
        """The predicate in three: of the new block, of the old one, and what of the latter concerns no reduction."""
        inner_vars, outer_vars = {a.loop_var for a in self.inside}, {a.loop_var for a in self.around}
        outer: list[Expr] = []
        inner: list[Expr] = []
        start: list[Expr] = []
        for part in conjuncts(self.realize.predicate):
            if not any(n in inner_vars for n in walk(part)):
                outer.append(part)
                continue
            moved = self._in_new_axes(part)
            require(moved is not None and not any(n in outer_vars for n in walk(moved)),
                    f"the condition {part} of block {self.realize.block.name} cannot be told by the new block's axes",
                    self.realize)
            assert moved is not None
            inner.append(moved)
            if not self._about_reduction(moved):
                start.append(moved)
        if inner:                                  # what kept the old axes in their domains does not keep the new
            outer += [c for c in self._inside_domains if not any(structural_equal(c, o) for o in outer)]
        return all_of(*outer), all_of(*inner), all_of(*start)

    @functools.cached_property
    def _inside_domains(self) -> list[Expr]:
        """What is not known of the new block's axes: that they stay in their domains. Where one does not, neither does
        the axis that it is a part of, and the old block did not run."""
        left, around = [], self.sch.analyzer_at(self.top)
        for iv, value in self.outer_axes:
            low, extent = iv.domain.min, iv.domain.extent
            left += [c for c in (binary("ge", value, low), binary("lt", value, binary("add", low, extent)))
                     if not around.prove(c)]
        return left

    def _in_new_axes(self, condition: Expr) -> Expr | None:
        """condition with the loops around replaced by the new block's axes."""
        plain = {value: axis.var for axis, value in self.outer_axes if isinstance(value, Var)}
        direct = substitute(condition, plain)
        variables = {a.loop_var for a in self.around}
        if not any(n in variables for n in walk(direct)):
            return direct
        if not (isinstance(condition, Binary) and is_integer(condition.a.dtype)):
            return None
        terms, offset = linear(binary("sub", condition.a, condition.b))
        for part in self.parts:
            mine, start = linear(binary("add", binary("mul", part.outer, part.scale), part.inner))
            scale = {terms.get(v, 0) // k for v, k in mine.items()}
            if len(scale) == 1 and scale != {0} and all(terms.get(v, 0) % k == 0 for v, k in mine.items()):
                k = scale.pop()
                axes = {iv.var: v for iv, v in self.inner_axes}
                whole = substitute(binary("sub", self.value[part.axis.var], part.offset), axes)
                rest = _sum({v: c for v, c in terms.items() if v not in mine}, condition.a.dtype)
                left = binary("add", binary("add", binary("mul", whole, k), rest), offset - start * k)
                return self.analyzer.simplify(Binary(condition.op, left, IntImm(0, left.dtype)))
        return None

    def _about_reduction(self, moved: Expr) -> bool:
        """True where a condition, in the new axes, is one of steps: it reads an axis or a loop inside that has them."""
        steps = {axis.var for axis, _ in self.outer_axes if axis.iter_type == COMM_REDUCE}
        inside = {a.loop_var for a in self.inside}
        steps |= {n for part in self.parts if part.axis.iter_type == COMM_REDUCE for n in walk(part.inner)
                  if isinstance(n, Var) and n in inside}
        return any(n in steps for n in walk(moved))

    def _start(self, block: Block, guard: Expr) -> Stmt:
        """The start of the reduction, in loops of its own over the axes that it uses."""
        kept = [(iv, v) for iv, v in self.inner_axes if iv.iter_type != COMM_REDUCE]
        used = {n for e in (*(v for _, v in kept), guard) for n in walk(e)}
        return start_nest(self.sch, block, kept, guard, [a for a in self.inside if a.loop_var in used])


def _unit(iv: IterVar) -> bool:
    return is_const(iv.domain.extent, 1)
