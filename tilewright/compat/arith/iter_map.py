"""`tvm.arith.detect_iter_map` and its relatives: index maps as splits and fusions of iterators."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from tilewright import arith
from tilewright.arith.iterators import IterMap, Mark
from tilewright.arith.itermap import detect_iter_map as understood
from tilewright.support.errors import ArgumentError, described
from tilewright.tir import Expr, IntImm, Range, Var, binary, convert, is_const


@dataclass(frozen=True, eq=False)
class IterMark:
    """An iterator: source, a variable or a sum of iterators, runs over [0, extent)."""
    source: Any
    extent: Expr


@dataclass(frozen=True, eq=False)
class IterSplitExpr:
    """scale * (value of source // lower_factor % extent)."""
    source: IterMark
    lower_factor: Expr
    extent: Expr
    scale: Expr


@dataclass(frozen=True, eq=False)
class IterSumExpr:
    """The sum of the splits args, plus base."""
    args: list[IterSplitExpr]
    base: Expr


class IterMapLevel(IntEnum):
    """What a map must be: onto and one to one, onto, or anything that is understood."""
    Bijective, Surjective, NoCheck = 0, 1, 3

    @staticmethod
    def from_str(name: str | None) -> IterMapLevel:
        """The level of a name; surjective for None."""
        levels = {"bijective": IterMapLevel.Bijective, "surjective": IterMapLevel.Surjective,
                  "nocheck": IterMapLevel.NoCheck}
        if name is None:
            return IterMapLevel.Surjective
        if str(name).lower() not in levels:
            raise ArgumentError(f"check_level={described(name)} is no level of an iterator map",
                                f"one of {', '.join(levels)}")
        return levels[str(name).lower()]


@dataclass(frozen=True, eq=False)
class IterMapResult:
    """indices: a sum for each index, [] where the map is not understood; errors say why then."""
    indices: list[IterSumExpr]
    errors: list[str] = field(default_factory=list)
    padding_predicate: Expr = field(default_factory=lambda: IntImm(0, "bool"))


def detect_iter_map(indices: Sequence[Any], input_iters: Mapping[Var, Range], predicate: Any = True,
                    check_level: Any = IterMapLevel.Surjective,
                    simplify_trivial_iterators: bool = True) -> IterMapResult:
    """indices as sums of splits of iterators. input_iters: what the variables range over, where predicate holds.

    A map that fills its range only with padding is not understood. Iterators of one step become constants.
    """
    exprs = [convert(e) for e in indices]
    analyzer = arith.Analyzer()
    found = _understood(exprs, input_iters, predicate, analyzer)
    reason = _objection(found, _level(check_level), exprs)
    if found is None or reason:
        return IterMapResult([], [reason])
    sums = [_fused(found, base, parts, e.dtype, analyzer)
            for (base, parts), e in zip(found.digits, exprs, strict=True)]
    if any(s is None for s in sums):
        return IterMapResult([], ["the digits of an index leave gaps between their weights"])
    return IterMapResult([s for s in sums if s is not None])


def normalize_to_iter_sum(index: Any, input_iters: Mapping[Var, Range]) -> IterSumExpr:
    """index as a sum of splits, highest scale first, not fused. Raises ArgumentError where it is not understood."""
    e = convert(index)
    found = _understood([e], input_iters, True, arith.Analyzer())
    if found is None or not found.is_exact:
        raise ArgumentError(f"normalize_to_iter_sum: {e} is no sum of splits of iterators")
    (base, parts), = found.digits
    return IterSumExpr(_splits(found, parts, e.dtype), base)


def iter_map_simplify(indices: Sequence[Any], input_iters: Mapping[Var, Range], predicate: Any = True,
                      check_level: Any = IterMapLevel.Surjective,
                      simplify_trivial_iterators: bool = True) -> list[Expr]:
    """The indices simplified under what is known of the iterators."""
    _level(check_level)
    analyzer = arith.Analyzer()
    for v, r in input_iters.items():
        analyzer.bind(v, r.min, r.extent)
    analyzer.assume(convert(predicate))
    return [analyzer.simplify(convert(e)) for e in indices]


def normalize_iter_map_to_expr(expr: Any) -> Expr:
    """The expression that a sum, a split or a mark of iterators stands for."""
    return arith.Analyzer().simplify(_value(expr))


def inverse_affine_iter_map(iter_map: Sequence[IterSumExpr], outputs: Sequence[Any]) -> dict[Var, Expr]:
    """The value of each variable where the sums of a bijective map are outputs."""
    domains: dict[Var, tuple[Expr, Expr]] = {}
    for index in iter_map:
        for split in index.args:
            _leaves(split.source, domains)
    found = understood([_value(index) for index in iter_map], domains, None, arith.Analyzer())
    if found is None or not found.is_injective:
        raise ArgumentError("inverse_affine_iter_map: two points of the iterators have the same indices")
    return found.invert([convert(o) for o in outputs])


def subspace_divide(bindings: Sequence[Any], input_iters: Mapping[Var, Range], sub_iters: Sequence[Var],
                    predicate: Any = True, check_level: Any = IterMapLevel.Surjective,
                    simplify_trivial_iterators: bool = True) -> list[list[IterMark]]:
    """[outer, inner] of each binding, where binding == outer * extent of inner + inner and inner is of sub_iters.

    The last pair has the conditions of both parts as its extents. [] where the bindings do not part so.
    """
    exprs = [convert(e) for e in bindings]
    analyzer = arith.Analyzer()
    found = _understood(exprs, input_iters, predicate, analyzer)
    if found is None or _objection(found, _level(check_level), exprs):
        return []
    out = []
    for (base, parts), e in zip(found.digits, exprs, strict=True):
        splits = _splits(found, parts, e.dtype)
        inside = [_part_of(s.source, sub_iters) for s in splits]
        count = sum(i is True for i in inside)
        if None in inside or any(inside[:len(inside) - count]):
            return []
        outer, inner = splits[:len(splits) - count], splits[len(splits) - count:]
        zero = IntImm(0, e.dtype)
        marks = _mark(outer, base if outer else zero, analyzer), _mark(inner, zero if outer else base, analyzer)
        if marks[0] is None or marks[1] is None:
            return []
        out.append([m for m in marks if m is not None])
    held = IterSumExpr([], IntImm(0))
    return [*out, [IterMark(held, IntImm(1, "bool")), IterMark(held, IntImm(1, "bool"))]]


# ---------------------------------------------------------------------------------------------- from our maps


def _level(given: Any) -> IterMapLevel:
    return given if isinstance(given, IterMapLevel) else IterMapLevel.from_str(given)


def _understood(exprs: Sequence[Expr], iters: Mapping[Var, Range], predicate: Any,
                analyzer: arith.Analyzer) -> IterMap | None:
    condition = convert(predicate)
    return understood(exprs, {v: (r.min, r.extent) for v, r in iters.items()},
                      None if is_const(condition, 1) else condition, analyzer)


def _objection(found: IterMap | None, level: IterMapLevel, exprs: Sequence[Expr]) -> str:
    """Why a map is not what the level asks for; "" if it is."""
    text = f"({', '.join(map(str, exprs))})"
    if found is None:
        return f"{text} is no map of splits and fusions of the iterators"
    if not found.is_exact:
        return f"{text}: the predicate is no bound of a fused iterator, or a split does not divide its iterator"
    if level is IterMapLevel.Bijective and not found.is_bijective:
        return f"{text} is not bijective: parts of iterators are left out, occur twice or leave gaps"
    if level is IterMapLevel.Surjective and not found.is_independent:
        return f"{text} is not surjective: a part of an iterator occurs twice"
    return ""


def _splits(found: IterMap, parts: Sequence[tuple[Mark, Expr, Expr, Expr]], dtype: str) -> list[IterSplitExpr]:
    return [IterSplitExpr(_source(found, mark, dtype), lower, extent, scale) for mark, lower, extent, scale in parts]


def _source(found: IterMap, mark: Mark, dtype: str) -> IterMark:
    """A mark of ours as TVM has it."""
    parts, extent = found.source(mark, dtype)
    leaves = [(IterMark(v if is_const(low, 0) else binary("sub", v, low), size), size, k)
              for v, low, size, k in reversed(parts)]
    if len(leaves) == 1:
        return IterMark(leaves[0][0].source, extent)
    one = IntImm(1, dtype)
    return IterMark(IterSumExpr([IterSplitExpr(m, one, size, k) for m, size, k in leaves], IntImm(0, dtype)), extent)


def _fused(found: IterMap, base: Expr, parts: Sequence[tuple[Mark, Expr, Expr, Expr]], dtype: str,
           analyzer: arith.Analyzer) -> IterSumExpr | None:
    """An index as one split of one iterator; None where its digits do not follow each other."""
    splits = _splits(found, parts, dtype)
    if len(splits) < 2:
        return IterSumExpr(splits, base)
    step = splits[-1].scale
    simplify = analyzer.simplify
    mark = _mark([IterSplitExpr(s.source, s.lower_factor, s.extent, simplify(binary("floordiv", s.scale, step)))
                  for s in splits], IntImm(0, dtype), analyzer)
    if mark is None or any(not analyzer.equal(binary("mul", a.scale, step), b.scale)
                           for a, b in zip(mark.source.args, splits, strict=True)):
        return None
    return IterSumExpr([IterSplitExpr(mark, IntImm(1, dtype), mark.extent, step)], base)


def _mark(splits: Sequence[IterSplitExpr], base: Expr, analyzer: arith.Analyzer) -> IterMark | None:
    """The iterator of splits that follow each other, shifted so that the last has scale 1; None for others."""
    done: list[IterSplitExpr] = []
    extent: Expr = IntImm(1, base.dtype)
    unit = splits[-1].scale if splits else extent
    for s in reversed(splits):
        scale = analyzer.simplify(binary("floordiv", s.scale, unit))
        if not analyzer.equal(scale, extent) or not analyzer.equal(binary("mul", scale, unit), s.scale):
            return None
        done.insert(0, IterSplitExpr(s.source, s.lower_factor, s.extent, scale))
        extent = analyzer.simplify(binary("mul", extent, s.extent))
    return IterMark(IterSumExpr(done, base), extent)


def _part_of(mark: IterMark, sub: Sequence[Var]) -> bool | None:
    """True when all variables of mark are in sub, False when none is, None otherwise."""
    domains: dict[Var, tuple[Expr, Expr]] = {}
    _leaves(mark, domains)
    inside = {any(v is s for s in sub) for v in domains}
    return inside.pop() if len(inside) == 1 else None


# ---------------------------------------------------------------------------------------------- to expressions


def _value(x: Any) -> Expr:
    if isinstance(x, IterMark):
        return _value(x.source)
    if isinstance(x, IterSumExpr):
        total = x.base
        for split in reversed(x.args):
            total = binary("add", _value(split), total)
        return total
    if isinstance(x, IterSplitExpr):
        inner = binary("floordiv", _value(x.source), x.lower_factor)
        whole = binary("mul", x.lower_factor, x.extent)
        if not arith.Analyzer().equal(whole, x.source.extent):
            inner = binary("floormod", inner, x.extent)
        return binary("mul", inner, x.scale)
    return convert(x)


def _leaves(mark: IterMark, into: dict[Var, tuple[Expr, Expr]]) -> None:
    """The variables that a mark is made of, with what they range over."""
    if isinstance(mark.source, IterSumExpr):
        for split in mark.source.args:
            _leaves(split.source, into)
        return
    source = convert(mark.source)
    v = source if isinstance(source, Var) else source.a  # type: ignore[attr-defined]  # v - min
    into[v] = arith.Analyzer().simplify(binary("sub", v, source)), mark.extent
