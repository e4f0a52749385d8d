"""Suites of statements: each statement by the rule of its kind, each form of T by the rule of its name."""
from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.script.environment import Environment
from tilewright.script.expressions import ERRORS, Expressions
from tilewright.script.frames import Around, BlockFrame
from tilewright.script.source import TOO_DEEP, Source
from tilewright.script.values import Form
from tilewright.support.names import NameSupply
from tilewright.tir.expr import Var
from tilewright.tir.iter_var import Range
from tilewright.tir.stmt import Seq, Stmt, seq

LOOP_FORMS = ("grid", "serial", "parallel", "vectorized", "unroll", "thread_binding")
ONE_ELEMENT = "keep what changes in a buffer of one element: acc = T.alloc_buffer((1,), \"float32\")"
_WORDS: dict[type, str] = {
    ast.Try: "`try`", ast.Raise: "`raise`", ast.Delete: "`del`", ast.Import: "`import`",
    ast.ImportFrom: "`import`", ast.FunctionDef: "a function inside a function", ast.ClassDef: "a class",
    ast.Break: "`break`", ast.Continue: "`continue`", ast.Return: "`return`", ast.Global: "`global`",
    ast.Nonlocal: "`nonlocal`", ast.Match: "`match`", ast.AsyncFor: "`async`", ast.AsyncWith: "`async`",
    ast.AsyncFunctionDef: "`async`",
}
_INSTEAD: dict[type, str] = {
    ast.Break: "put the condition of going on into a `while`", ast.Continue: "put what follows below an `if`",
    ast.Return: "a kernel writes its results to its buffers", ast.FunctionDef: "define it outside",
    ast.Import: "import outside the function", ast.ImportFrom: "import outside the function",
}


class Suites(Expressions):
    """The state of one function while it is parsed, and its suites. Subclasses fill the tables of rules."""
    rules: Mapping[type, Callable[..., Any]] = {}        # by node class
    forms: Mapping[str, Callable[..., Any]] = {}         # T.name(...) on a line of its own
    definitions: Mapping[str, Callable[..., Any]] = {}   # target = T.name(...)
    contexts: Mapping[str, Callable[..., Any]] = {}      # with T.name(...) as target:

    def __init__(self, source: Source, names: Environment) -> None:
        super().__init__(source, names)
        self.root = BlockFrame("root")
        self.frame = self.root                           # of the innermost block
        self.attrs: dict[str, Any] = {}                  # of the function
        self.block_names = NameSupply(["root"])
        self.domains: dict[Var, Range] = {}              # of the loops around
        self.origin: dict[int, tuple[Any, ast.AST]] = {} # id of a node of the IR -> that node, where it stands
        self.called_at: ast.AST | None = None            # the call of the outermost macro whose body this is

    def suite(self, nodes: Sequence[ast.stmt]) -> Stmt:
        """The statements of a suite as one; a definition encloses what follows it."""
        before: list[tuple[list[Stmt], Around]] = []
        out: list[Stmt] = []
        todo = list(reversed(nodes))
        while todo:
            node = todo.pop()
            result = self.statement(node)
            if isinstance(result, list):                 # the statements of an `if` that is decided now
                todo += reversed(result)
                continue
            if isinstance(result, Around):
                before.append((out, result))
                out = []
            elif result is not None:
                out.append(result)
        body = seq(out)
        for first, around in reversed(before):
            body = seq([*first, self.at(around.node, around.wrap(body))])
        return body

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A loop or branch of the block around: names defined inside are gone afterwards."""
        frame = self.frame
        frame.nested += 1
        try:
            with self.names.scope():
                yield
        finally:
            frame.nested -= 1

    def scoped(self, nodes: Sequence[ast.stmt]) -> Stmt:
        """The suite of a loop or branch."""
        with self.nested():
            return self.suite(nodes)

    def at(self, node: ast.AST, s: Stmt) -> Stmt:
        """s, after noting where it stands."""
        if not isinstance(s, Seq):
            self.origin.setdefault(id(s), (s, self.called_at or node))
        return s

    def statement(self, node: ast.stmt) -> Stmt | Around | list[ast.stmt] | None:
        rule = self.rules.get(type(node))
        if rule is None:
            kind = type(node)
            self.fail(node, f"{_WORDS.get(kind, kind.__name__)} is not part of the script language",
                      _INSTEAD.get(kind, ""))
        try:
            out = rule(self, node)
        except ERRORS as why:
            raise self.located(node, why) from None
        except RecursionError:
            self.fail(node, *TOO_DEEP)
        return self.at(node, out) if isinstance(out, Stmt) else out

    def form(self, node: ast.AST) -> str:
        """The name of the form of T that node calls; "" when it calls none."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Attribute, ast.Name)):
            return ""
        if isinstance(node.func, ast.Name) and not self.names.has(node.func.id):
            return ""                                    # a function of Python
        fn = self.value(node.func)
        return fn.name if isinstance(fn, Form) and fn.name != "Let" else ""

    def usage(self, form: str) -> str:
        """How a form is written, for hints."""
        if form in self.contexts:
            return f"with T.{form}(...):"
        if form in self.definitions:
            return f"name = T.{form}(...)"
        return f"for i in T.{form}(...):" if form in LOOP_FORMS else f"T.{form}(...) on a line of its own"

    def bound(self, node: ast.Call, parameters: Sequence[str], needed: int) -> dict[str, ast.expr]:
        """The arguments of a form by name, not evaluated."""
        if any(isinstance(a, ast.Starred) for a in node.args):
            self.fail(node, "`*` stands for the arguments of a function here", "write the arguments one by one")
        out = dict(zip(parameters, node.args, strict=False))
        wrong = len(node.args) > len(parameters)
        for k in node.keywords:
            wrong = wrong or k.arg is None or k.arg in out or k.arg not in parameters
            out[str(k.arg)] = k.value
        missing = [p for p in parameters[:needed] if p not in out]
        if wrong or missing:
            form = ast.unparse(node.func)
            self.fail(node, f"{form} does not take these arguments" + (f": {missing[0]} is missing" if missing else ""),
                      f"{form}({', '.join(parameters)}); the first {needed} must be given")
        return out
