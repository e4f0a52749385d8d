"""Maps of indices as text, so that a trace can print, store and replay them."""
from __future__ import annotations

import ast
import functools
import inspect
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import detect_iter_map
from tilewright.arith.regions import intervals_of
from tilewright.support.errors import ArgumentError, Illegal, TilewrightError, described, legal, listed, require
from tilewright.tir import iter_var
from tilewright.tir.conversion import cast, convert
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Expr, FloatImm, IntImm, Var
from tilewright.tir.node import substitute

_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_ALLOWED = "build it from the indices and integer constants with +, -, *, // and %"


class IndexMap(str):
    """`lambda i, j: (j // 4, i, j % 4)`: new indices from old ones. It prints as this function.

    AXIS_SEPARATOR among the new indices says where a new physical dimension starts; it is no index.
    """
    AXIS_SEPARATOR = iter_var.AXIS_SEPARATOR

    def __repr__(self) -> str:
        return str(self)

    @property
    def parameters(self) -> list[str]:
        """The names of the old indices."""
        return [a.arg for a in _parsed(self).args.args]

    @property
    def rank(self) -> int:
        """The number of new indices."""
        return sum(not _is_separator(e) for e in _elements(self))

    @property
    def axis_separators(self) -> tuple[int, ...]:
        """The new axes before which a separator stands."""
        marks = [_is_separator(e) for e in _elements(self)]
        return tuple(n - sum(marks[:n]) for n, mark in enumerate(marks) if mark)

    def apply(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """The new indices of the element at the old ones."""
        table = dict(zip(self.parameters, indices, strict=True))
        return tuple(convert(_evaluate(e, table)) for e in _elements(self) if not _is_separator(e))

    def map_indices(self, indices: Sequence[Any]) -> list[Expr]:
        """The new indices of the element at the old ones, simplified."""
        given = _converted(indices, "indices")
        if len(given) != len(self.parameters):
            raise ArgumentError(f"{self} takes {len(self.parameters)} indices, not {len(given)}")
        analyzer = Analyzer()
        return [analyzer.simplify(e) for e in self.apply(given)]

    def map_shape(self, shape: Sequence[Any]) -> list[Expr]:
        """The least extents that hold the new indices of all elements of a buffer of this shape."""
        axes, domains = _axes(self, shape)
        return list(_raising(lambda: new_shape(Analyzer(), self.apply(axes), domains)))

    def inverse(self, shape: Sequence[Any]) -> IndexMap:
        """The map back, for a buffer of this shape. Raises ArgumentError where the map is not one to one onto a box."""
        axes, domains = _axes(self, shape)
        found = detect_iter_map(self.apply(axes), domains, None, Analyzer())
        if found is None or not found.is_bijective:
            raise ArgumentError(f"{self} is not one to one from ({', '.join(map(str, shape))}) onto a box")
        points = [Var(f"i{n}", e.dtype) for n, e in enumerate(self.apply(axes))]
        old = found.invert(points)
        back = [old.get(v, convert(0)) for v in axes]
        return _raising(lambda: IndexMap.of(lambda *at: [_renamed(e, points, at) for e in back], len(points)))

    def as_text(self) -> str:
        """This map as a Python function; `from_text` reads it back."""
        return str(self)

    @staticmethod
    def from_text(text: str) -> IndexMap:
        """The map that `as_text` wrote. Nothing is executed; raises ArgumentError for any other text."""
        return _raising(lambda: IndexMap.of(text, len(IndexMap(text).parameters)))

    @staticmethod
    def from_func(mapping_function: Callable[..., Any], ndim: int | None = None) -> IndexMap:
        """The map that a function of the old indices computes; ndim is needed where it takes any number of them."""
        if ndim is None:
            try:
                kinds = [p.kind for p in inspect.signature(mapping_function).parameters.values()]
            except (TypeError, ValueError):
                raise ArgumentError(f"the parameters of {described(mapping_function)} are not known",
                                    "pass a lambda of the old indices") from None
            if inspect.Parameter.VAR_POSITIONAL in kinds:
                raise ArgumentError("the function takes any number of indices", "pass ndim")
            ndim = len(kinds)
        if type(ndim) is not int or ndim < 0:
            raise ArgumentError(f"ndim is {described(ndim)}, not a number of indices")
        rank = ndim
        return _raising(lambda: IndexMap.of(mapping_function, rank))

    @staticmethod
    def of(source: Any, rank: int) -> IndexMap:
        """The map that source is: a function of `rank` indices, or the text of one.

        Refuses what takes another number of indices, or computes what the text cannot say.
        """
        if isinstance(source, str):
            found = IndexMap(source)
            require(len(found.parameters) == rank, f"index_map takes {len(found.parameters)} indices, not {rank}")
            found.apply([Var(name) for name in found.parameters])
            return found
        require(callable(source), f"index_map is {source!r}, not a function of the old indices")
        axes = [Var(name) for name in _names(source, rank, "index_map")]
        result = _result(source, axes, "index_map")
        result = list(result) if isinstance(result, (tuple, list)) else [result]
        for e in result:
            require(isinstance(e, (int, Expr)) or isinstance(e, str) and e == IndexMap.AXIS_SEPARATOR,
                    f"index_map gives {e!r}, not an index", hint=_ALLOWED)
        indices = [convert(e) for e in result if not isinstance(e, str)]
        comma = "," if len(result) == 1 else ""
        parts = [repr(e) if isinstance(e, str) else str(convert(e)) for e in result]
        text = IndexMap(f"lambda {', '.join(v.name for v in axes)}: ({', '.join(parts)}{comma})")
        again = text.apply(axes)
        require(len(again) == len(indices) and all(map(structural_equal, again, indices)),
                f"index_map cannot be written down as {text}", hint=_ALLOWED)
        return text


class PadValue(str):
    """`lambda i, j: i * 4 + j`: the value of padding from its new indices. It prints as this function."""

    def __repr__(self) -> str:
        return str(self)

    def apply(self, indices: Sequence[Expr], dtype: str) -> Expr:
        """The value at the new indices, as dtype."""
        parsed = _parsed(self)
        value = _evaluate(parsed.body, dict(zip([a.arg for a in parsed.args.args], indices, strict=True)), (int, float))
        return cast(dtype, convert(value, dtype if isinstance(value, (int, float)) else None))

    @staticmethod
    def of(source: Any, rank: int, name: str = "pad_value") -> PadValue:
        """The value that source is: a constant, a function of `rank` new indices, or the text of one."""
        if isinstance(source, str):
            found = PadValue(source)
            taken = len(_parsed(found).args.args)
            require(taken == rank, f"{name} takes {taken} indices, not {rank}")
            found.apply([Var(f"i{d}") for d in range(rank)], "float64")
            return found
        axes = [Var(v) for v in _names(source, rank, name)] if callable(source) else [Var(f"i{d}") for d in range(rank)]
        value = _result(source, axes, name) if callable(source) else source
        value = value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value
        value = value.value if isinstance(value, (IntImm, FloatImm)) else value
        value = int(value) if isinstance(value, bool) else value
        require(isinstance(value, (int, float, Expr)),
                f"{name} is {value!r}, not a number or a function of the indices")
        text = PadValue(f"lambda {', '.join(v.name for v in axes)}: {_literal(value)}")
        if isinstance(value, Expr):
            again = convert(_evaluate(_parsed(text).body, {v.name: v for v in axes}, (int, float)))
            require(structural_equal(again, value), f"{name} cannot be written down as {text}",
                    hint="build it from the indices and constants with +, -, *, // and %")
        return text


def _literal(value: Any) -> str:
    """Infinities and NaN in a form that Python reads back."""
    if isinstance(value, float) and not math.isfinite(value):
        return "1e999 - 1e999" if math.isnan(value) else "1e999" if value > 0 else "-1e999"
    return str(value)


def new_shape(analyzer: Analyzer, indices: Sequence[Expr],
              domains: Mapping[Var, tuple[Expr, Expr]]) -> tuple[Expr, ...]:
    """The least extents that hold every new index."""
    shape: list[Expr] = []
    for e, hull in zip(indices, intervals_of(indices, domains, analyzer), strict=True):
        require(hull is not None and analyzer.prove(hull[0] >= 0),
                f"the new index {e} is not known to start at 0 or later")
        assert hull is not None
        shape.append(analyzer.simplify(hull[0] + hull[1]))
    require_counted(shape, [extent for _, extent in domains.values()])
    return tuple(shape)


def require_counted(new: Sequence[Expr], old: Sequence[Expr]) -> None:
    """Refuse new extents beyond the type of the old ones, of which a map that is one to one may need more."""
    counts, sizes = ([e.value for e in extents if isinstance(e, IntImm)] for extents in (new, old))
    if len(counts) == len(new) and len(sizes) == len(old):
        points = math.prod(sizes)
        dtype = max((e.dtype for e in old), default="int32")                 # "int64" where one is
        legal(all(e.dtype <= dtype for e in new),
              f"the {points} points of the map do not fit an index of type {dtype}",
              hint="use int64 extents: T.int64(n)")


def _axes(text: IndexMap, shape: Sequence[Any]) -> tuple[list[Var], dict[Var, tuple[Expr, Expr]]]:
    extents = _converted(shape, "shape")
    names = text.parameters
    if len(extents) != len(names):
        raise ArgumentError(f"{text} takes {len(names)} indices, the shape has {len(extents)} dimensions")
    axes = [Var(name, d.dtype) for name, d in zip(names, extents)]
    return axes, {v: (IntImm(0, v.dtype), d) for v, d in zip(axes, extents)}


def _converted(values: Sequence[Any], what: str) -> list[Expr]:
    given = listed(values)
    if given is None:
        raise ArgumentError(f"{what} is {described(values)}, not a list")
    return [convert(v) for v in given]


def _raising(call: Callable[[], Any]) -> Any:
    """The result of call; what it refuses is an ArgumentError, as outside of primitives."""
    try:
        return call()
    except Illegal as why:
        raise ArgumentError(str(why), why.hint) from why.__cause__


def _renamed(e: Expr, points: Sequence[Var], at: Sequence[Any]) -> Expr:
    return substitute(e, dict(zip(points, at, strict=True)))


def _result(function: Callable[..., Any], axes: Sequence[Var], what: str) -> Any:
    """What a function of the user gives. Refuses where it raises; that error is then the cause of the refusal."""
    try:
        return function(*axes)
    except (Illegal, TilewrightError):
        raise
    except Exception as why:
        raise Illegal(f"{what} raised {type(why).__name__}: {why}",
                      hint="it is called with variables for the indices, not with numbers") from why


def _names(function: Callable[..., Any], rank: int, what: str) -> list[str]:
    """The names of a function's parameters, or i0, i1, ... where it takes any number."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return [f"i{d}" for d in range(rank)]
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in plain if p.default is p.empty]
    more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    require(len(needed) <= rank and (more or rank <= len(plain)),
            f"{what} takes {len(plain)} indices, not {rank}")
    return [p.name for p in plain[:rank]] + [f"i{d}" for d in range(len(plain), rank)]


@functools.lru_cache(64)
def _parsed(text: str) -> ast.Lambda:
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    plain = isinstance(tree, ast.Lambda) and not (
        tree.args.vararg or tree.args.kwarg or tree.args.kwonlyargs or tree.args.defaults or tree.args.posonlyargs)
    require(plain, f"{str.__repr__(text)} is not the text of an index map",
            hint="write 'lambda i, j: (j // 4, i, j % 4)'")
    assert isinstance(tree, ast.Lambda)
    return tree


def _elements(text: str) -> list[ast.expr]:
    body = _parsed(text).body
    return list(body.elts) if isinstance(body, ast.Tuple) else [body]


def _is_separator(e: ast.expr) -> bool:
    return isinstance(e, ast.Constant) and e.value == IndexMap.AXIS_SEPARATOR


def _evaluate(e: ast.expr, table: Mapping[str, Expr], numbers: tuple[type, ...] = (int,)) -> Any:
    if isinstance(e, ast.Name) and e.id in table:
        return table[e.id]
    if isinstance(e, ast.Constant) and type(e.value) in numbers:
        return e.value
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        return -_evaluate(e.operand, table, numbers)
    known = isinstance(e, ast.BinOp) and type(e.op) in _OPERATORS
    require(known, "" if known else f"an index map has no {ast.unparse(e)}", hint=_ALLOWED)
    assert isinstance(e, ast.BinOp)
    left, right = _evaluate(e.left, table, numbers), _evaluate(e.right, table, numbers)
    if isinstance(e.op, (ast.FloorDiv, ast.Mod)):
        divides = not isinstance(right, (int, float)) or right > 0
        require(divides, "" if divides else f"{ast.unparse(e)} divides by {right}")
    return _OPERATORS[type(e.op)](left, right)
