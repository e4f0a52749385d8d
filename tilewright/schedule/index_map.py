"""Maps of indices as text, so that a trace can print, store and replay them."""
from __future__ import annotations

import ast
import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.support.errors import require
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Expr, Var, convert

_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_ALLOWED = "build it from the indices and integer constants with +, -, *, // and %"


class IndexMap(str):
    """`lambda i, j: (j // 4, i, j % 4)`: new indices from old ones. It prints as this function."""

    def __repr__(self) -> str:
        return str(self)

    @property
    def parameters(self) -> list[str]:
        """The names of the old indices."""
        return [a.arg for a in _parsed(self).args.args]

    def apply(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """The new indices of the element at the old ones."""
        parsed = _parsed(self)
        table = dict(zip(self.parameters, indices, strict=True))
        elements = parsed.body.elts if isinstance(parsed.body, ast.Tuple) else [parsed.body]
        return tuple(convert(_evaluate(e, table)) for e in elements)

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
        axes = [Var(name) for name in _names(source, rank)]
        result = source(*axes)
        result = result if isinstance(result, (tuple, list)) else (result,)
        for e in result:
            require(isinstance(e, (int, Expr)), f"index_map gives {e!r}, not an index", hint=_ALLOWED)
        indices = [convert(e) for e in result]
        comma = "," if len(indices) == 1 else ""
        text = IndexMap(f"lambda {', '.join(v.name for v in axes)}: ({', '.join(map(str, indices))}{comma})")
        again = text.apply(axes)
        require(len(again) == len(indices) and all(map(structural_equal, again, indices)),
                f"index_map cannot be written down as {text}", hint=_ALLOWED)
        return text


def _names(function: Callable[..., Any], rank: int) -> list[str]:
    """The names of a function's parameters, or i0, i1, ... where it takes any number."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return [f"i{d}" for d in range(rank)]
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in plain if p.default is p.empty]
    more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    require(len(needed) <= rank and (more or rank <= len(plain)),
            f"index_map takes {len(plain)} indices, not {rank}")
    return [p.name for p in plain[:rank]] + [f"i{d}" for d in range(len(plain), rank)]


@functools.lru_cache(64)
def _parsed(text: str) -> ast.Lambda:
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        tree = None
    plain = isinstance(tree, ast.Lambda) and not (
        tree.args.vararg or tree.args.kwarg or tree.args.kwonlyargs or tree.args.defaults or tree.args.posonlyargs)
    require(plain, f"{text!r} is not the text of an index map", hint="write 'lambda i, j: (j // 4, i, j % 4)'")
    assert isinstance(tree, ast.Lambda)
    return tree


def _evaluate(e: ast.expr, table: Mapping[str, Expr]) -> Any:
    if isinstance(e, ast.Name) and e.id in table:
        return table[e.id]
    if isinstance(e, ast.Constant) and type(e.value) is int:
        return e.value
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        return -_evaluate(e.operand, table)
    known = isinstance(e, ast.BinOp) and type(e.op) in _OPERATORS
    require(known, f"an index map has no {ast.unparse(e)}", hint=_ALLOWED)
    assert isinstance(e, ast.BinOp)
    left, right = _evaluate(e.left, table), _evaluate(e.right, table)
    if isinstance(e.op, (ast.FloorDiv, ast.Mod)):
        require(not isinstance(right, int) or right > 0, f"{ast.unparse(e)} divides by {right}")
    return _OPERATORS[type(e.op)](left, right)
