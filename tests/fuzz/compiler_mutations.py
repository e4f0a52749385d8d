"""Defects that can be planted in the source of the compiler: one change of a few characters each.

Left out, because no result depends on them or because they are found elsewhere:
- what prints: docstrings, texts, functions and modules of printing, whatever stands in a `raise`, and the arguments of
  `require`, `legal` and the like after the condition;
- annotations of types, `assert` (our own invariants), decorators, defaults that are None;
- the rules that only choose among schedules: they call checked primitives, so that a defect there costs time alone;
- numbers that only bound the time of a search (constants in capitals such as MOST, LIMIT).
"""
from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDERS = ("arith", "tir", "schedule", "lowering", "codegen", "te", "rules", "graph")
PRINTING = ("printer", "trace_text", "handles", "reports", "html")              # modules and folders
SPEED = ("apply", "contraction", "elementwise", "facts", "inlining", "reduction", "table")              # of rules
_SHOWN = ("__repr__", "__str__", "_repr_html_", "__hash__", "show", "text", "describe", "described", "message", "hint",
          "shown", "label", "title", "picture")
_CHECKS = ("require", "legal")
_TELLING = ("require", "legal", "fail", "with_hint", "error", "print", "refuse", "described")
_BOUNDS = ("MOST", "LIMIT", "LARGEST", "SEARCH", "EFFORT", "TRIES", "DEPTH")

_TURNED = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not",
           ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}
_OTHER_SIGN = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Mod: "//"}
_WORDS = {"int32": "int64", "int64": "int32", "int8": "int16", "uint8": "int8", "bool": "int8", "sext": "zext",
          "zext": "sext", "sdiv": "udiv", "udiv": "sdiv", "srem": "urem", "slt": "ult", "sle": "slt", "ult": "slt",
          "ashr": "lshr", "lshr": "ashr", "add": "sub", "sub": "add", "mul": "add", "min": "max", "max": "min",
          "lt": "le", "le": "lt", "ge": "gt", "gt": "ge", "eq": "ne", "ne": "eq", "floordiv": "truncdiv",
          "floormod": "truncmod", "and": "or", "or": "and", "shl": "shr", "shr": "shl", "serial": "parallel",
          "trunc": "zext"}
_CALLS = {"any": "all", "all": "any", "min": "max", "max": "min", "binary": None}


@dataclass(frozen=True)
class Mutation:
    """source[start:end] of a file becomes `new`; first..last: the lines of the statement that it is part of."""
    path: str
    operator: str
    start: int
    end: int
    new: str
    first: int
    last: int
    top: bool                                          # a statement of the module or a class: run when it is imported

    def apply(self, source: str) -> str:
        return source[:self.start] + self.new + source[self.end:]


def modules(root: Path) -> list[Path]:
    """The files of the package in which defects are planted."""
    found = [p for folder in FOLDERS for p in sorted((root / "tilewright" / folder).rglob("*.py"))]
    read = [p for p in found if not {p.stem, p.parent.name} & set(PRINTING)]
    return [p for p in read if not ("rules" in p.parts and p.stem in SPEED)]


def mutations(path: str, source: str) -> Iterator[Mutation]:
    """Every mutation of a module."""
    yield from _Places(path, source).module()


class _Places:
    """Walks a module, statement by statement, and offers the changes of each."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source = path, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.lines = source.splitlines(keepends=True)
        self.statement: ast.stmt | None = None
        self.top = True

    def module(self) -> Iterator[Mutation]:
        yield from self.body(ast.parse(self.source).body, True)

    def at(self, line: int, column: int) -> int:
        """Offset of a place that ast gives in bytes of UTF-8."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        return (self.at(node.lineno, node.col_offset),  # type: ignore[attr-defined]
                self.at(node.end_lineno, node.end_col_offset))  # type: ignore[attr-defined]

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.source[start:end]

    def change(self, operator: str, node: ast.AST, new: str) -> Mutation:
        assert self.statement is not None
        start, end = self.span(node)
        return Mutation(self.path, operator, start, end, new, self.statement.lineno,
                        max(getattr(node, "end_lineno", 0), self.statement.lineno), self.top)

    # statements
    def body(self, statements: list[ast.stmt], top: bool) -> Iterator[Mutation]:
        for s in statements:
            self.statement, self.top = s, top
            yield from self.stmt(s, top)

    def stmt(self, s: ast.stmt, top: bool) -> Iterator[Mutation]:
        match s:
            case ast.FunctionDef():
                if s.name not in _SHOWN:
                    yield from self.body(s.body, False)
            case ast.ClassDef():
                yield from self.body(s.body, True)
            case ast.Import() | ast.ImportFrom() | ast.Raise() | ast.Assert() | ast.Pass():
                return
            case ast.Expr(value=ast.Constant()):
                return
            case ast.Assign() | ast.AnnAssign() if top and _bounds_a_search(s):
                return
            case _:
                yield from self.plain(s, top)

    def plain(self, s: ast.stmt, top: bool) -> Iterator[Mutation]:
        """Changes of the statement as a whole, of its expressions, and of the statements in it."""
        if isinstance(s, ast.If) and not s.orelse and isinstance(s.body[-1], (ast.Return, ast.Continue)):
            yield self.change("dropped guard", s.test, "False")
        if isinstance(s, (ast.If, ast.While)):
            yield self.change("negated condition", s.test, f"(not ({self.text(s.test)}))")
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
            name = _name(s.value)
            yield self.change("dropped check" if name in _CHECKS else "removed statement", s, "pass")
        if isinstance(s, (ast.AugAssign, ast.Delete)) and not top:
            yield self.change("removed statement", s, "pass")
        for name, value in ast.iter_fields(s):
            if name in ("body", "orelse", "finalbody", "handlers", "cases", "annotation", "decorator_list"):
                continue
            for node in value if isinstance(value, list) else [value]:
                if isinstance(node, ast.expr):
                    yield from self.expr(node)
                elif isinstance(node, ast.withitem):
                    yield from self.expr(node.context_expr)
        for inner in ("body", "orelse", "finalbody"):
            yield from self.body(getattr(s, inner, []), top)
        for part in [*getattr(s, "handlers", []), *getattr(s, "cases", [])]:
            yield from self.body(part.body, top)

    # expressions
    def expr(self, e: ast.expr) -> Iterator[Mutation]:
        yield from self.own(e)
        if isinstance(e, ast.JoinedStr):
            return                                     # a text
        if isinstance(e, ast.Call):
            yield from self.expr(e.func)
            arguments: list[ast.expr] = [*e.args, *[k.value for k in e.keywords if k.arg not in ("hint", "name")]]
            if _name(e) in _TELLING:
                arguments = arguments[:1] if _name(e) in _CHECKS else []
            for a in arguments:
                yield from self.expr(a)
            return
        for child in ast.iter_child_nodes(e):
            if isinstance(child, ast.expr):
                yield from self.expr(child)
            elif isinstance(child, ast.comprehension):
                yield from self.expr(child.iter)
                for c in child.ifs:
                    yield self.change("forgotten condition", c, "True")
                    yield from self.expr(c)

    def own(self, e: ast.expr) -> Iterator[Mutation]:
        match e:
            case ast.Compare(ops=[op]) if type(op) in _TURNED:
                sign = f"{self.text(e.left)} {_TURNED[type(op)]} {self.text(e.comparators[0])}"
                yield self.change("turned comparison", e, f"({sign})")
            case ast.BinOp(op=op) if type(op) in _OTHER_SIGN and not _is_text(e):
                yield self.change("wrong operator", e,
                                  f"({self.text(e.left)} {_OTHER_SIGN[type(op)]} {self.text(e.right)})")
            case ast.BinOp(op=ast.BitOr()):
                yield self.change("forgotten part", e, f"({self.text(e.left)})")
            case ast.BoolOp():
                for k in range(len(e.values)):
                    rest = [self.text(v) for n, v in enumerate(e.values) if n != k]
                    sign = " and " if isinstance(e.op, ast.And) else " or "
                    yield self.change("dropped guard", e, f"({sign.join(rest)})")
            case ast.IfExp():
                yield self.change("negated condition", e.test, f"(not ({self.text(e.test)}))")
            case ast.Constant(value=bool()):
                yield self.change("negated condition", e, str(not e.value))
            case ast.Constant(value=int()):
                yield self.change("off by one", e, str(e.value + 1))
                if e.value > 1:
                    yield self.change("off by one", e, str(e.value - 1))
            case ast.Constant(value=str()) if e.value in _WORDS:
                yield self.change("wrong word", e, repr(_WORDS[e.value]))
            case ast.Call(func=ast.Name(id=name)) if name in ("any", "all", "min", "max"):
                yield self.change("wrong quantifier", e.func, str(_CALLS[name]))
            case ast.Tuple(elts=elts) | ast.List(elts=elts) if len(elts) > 1:
                for k, part in enumerate(elts):
                    if isinstance(part, ast.Starred):
                        kept = ", ".join(self.text(v) for n, v in enumerate(elts) if n != k)
                        yield self.change("forgotten part", e, f"[{kept}]" if isinstance(e, ast.List) else f"({kept},)")


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _is_text(e: ast.BinOp) -> bool:
    return any(isinstance(n, ast.JoinedStr) or isinstance(n, ast.Constant) and isinstance(n.value, str)
               for n in ast.walk(e))


def _bounds_a_search(s: ast.Assign | ast.AnnAssign) -> bool:
    targets = s.targets if isinstance(s, ast.Assign) else [s.target]
    return any(isinstance(t, ast.Name) and any(b in t.id for b in _BOUNDS) or getattr(t, "id", "") == "__all__"
               for t in targets)
