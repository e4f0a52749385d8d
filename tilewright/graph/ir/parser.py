"""Graph functions in scripts: statements are bindings, which a dialect makes its nodes of.

The parser knows Python's syntax; what the names of R mean, and what a function is in the end, says the dialect.
"""
from __future__ import annotations

import ast
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.graph.ir.dialect import Annotation, Dialect, Form, Names
from tilewright.graph.ir.syntax import is_text, scalar, unquoted
from tilewright.script.decorators import source_of
from tilewright.script.environment import captured
from tilewright.script.members import Decorator, Member, Members, Place
from tilewright.script.module_calls import class_of
from tilewright.support.errors import ScriptError, TilewrightError, described
from tilewright.tir import Var
from tilewright.tir.arithmetic import ceildiv, floordiv, floormod, maximum, minimum, truncdiv, truncmod
from tilewright.tir.functions import BaseFunc

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
_INTEGERS = ("int32", "int64")
_OF_SIZES: dict[str, Callable[..., Any]] = {            # T.max(n, 1): what printed extents are made with
    f.__name__.removesuffix("imum"): f for f in (maximum, minimum, floordiv, floormod, truncdiv, truncmod, ceildiv)}


class FunctionDecorator(Decorator):
    """`@R.function` of a dialect."""

    def __init__(self, dialect: Callable[[], Dialect]) -> None:
        self.dialect = dialect

    def __call__(self, func: Any = None, *, private: bool = False, pure: bool = True,
                 check_well_formed: bool = True) -> Any:
        """The function that a Python function describes; in the class of a module it is read with the module."""
        if func is None:
            return lambda f: self(f, private=private)
        if not isinstance(func, types.FunctionType):
            raise ScriptError(f"@R.function stands on a function, not on {described(func)}")
        source, node = source_of(func)
        names, options = captured(func), {"private": private}

        def finish(module: Members) -> BaseFunc:
            return self.read(node, Place(source, names, module, True), options)
        return Member(finish) if class_of(func) else finish(Members("", {}))

    def read(self, node: ast.FunctionDef, place: Place, options: Mapping[str, Any]) -> BaseFunc:
        unknown = next((k for k in options if k not in ("private", "pure", "check_well_formed")), None)
        if unknown is not None:
            raise place.source.error(node, f"R.function has no option {unknown}", "private= there is")
        try:
            return _Function(place, self.dialect()).function(node, bool(options.get("private")))
        except ScriptError as why:
            raise why.with_traceback(None) from None


class _Module:
    """The class of the module: `cls.f` is its function f."""


_MODULE = _Module()


class _Function:
    def __init__(self, place: Place, dialect: Dialect) -> None:
        self.place, self.dialect = place, dialect
        self.env: dict[str, Any] = {}
        self.result: Any = None

    def function(self, node: ast.FunctionDef, private: bool) -> BaseFunc:
        a = node.args
        for wrong in (a.vararg, a.kwarg, *a.kwonlyargs, *a.defaults):
            if wrong is not None:
                self.fail(wrong, "a graph function takes positional parameters without defaults")
        for arg in (*a.posonlyargs, *a.args):
            if arg.annotation is None:
                self.fail(arg, f"the parameter {arg.arg} has no type", f'{arg.arg}: R.Tensor((16,), "float32")')
            else:
                known = self.value(unquoted(arg.annotation))
            self.env[arg.arg] = self.at(arg, self.dialect.parameter, arg.arg, known)
        stated = None if node.returns is None else self.value(unquoted(node.returns))
        self.dialect.reserve({n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)})
        self.suite(node.body)
        if self.result is None:
            self.fail(node, "the function has no result", "it ends with `return value`")
        return self.at(node, self.dialect.finish, node.name, self.result[0], stated, private)

    # statements --------------------------------------------------------------------------------------------
    def suite(self, body: Sequence[ast.stmt]) -> None:
        for s in body:
            if self.result is not None:
                self.fail(s, "nothing stands behind `return`")
            self.statement(s)

    def statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.Return) and s.value is not None:
            self.result = (self.value(s.value),)
        elif isinstance(s, ast.With) and len(s.items) == 1 and self.form(s.items[0].context_expr) == "dataflow":
            with self.dialect.dataflow(self.outputs(s)):
                self.suite(s.body)
        elif isinstance(s, ast.If) and s.orelse:
            self.choice(s)
        elif isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and (form := self.form(s.value)):
            args = [self.value(x) for x in s.value.args]
            if form == "func_attr":
                self.at(s, self.dialect.attrs, *args)
            elif form == "update":
                self.at(s, self.dialect.update, *args)
        elif isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
            self.assign(s, s.targets[0].id, s.value, None)
        elif isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Tuple):
            self.unpack(s, s.targets[0], s.value)
        elif isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name) and s.value is not None:
            self.assign(s, s.target.id, s.value, self.value(unquoted(s.annotation)))
        elif not isinstance(s, ast.Pass) and not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)):
            self.fail(s, "a graph function has no such statement", "name = R.operator(...), with R.dataflow():, return")

    def choice(self, s: ast.If) -> None:
        """`if condition: ... y = a` and `else: ... y = b`: y is what one of the branches gives."""
        last = [body[-1] for body in (s.body, s.orelse)]
        names = [n.id for b in last for n in (b.targets if isinstance(b, ast.Assign) else [getattr(b, "target", None)])
                 if isinstance(n, ast.Name)]
        if len(names) != 2 or names[0] != names[1]:
            self.fail(s, "both branches end with `name = value`, of one name", "y = a in one, y = b in the other")
        condition, outer = self.value(s.test), dict(self.env)

        def branch(body: Sequence[ast.stmt]) -> Any:
            self.suite(body)
            made, self.env = self.env[names[0]], dict(outer)
            return made
        self.env[names[0]] = self.at(s, self.dialect.choice, names[0], condition, lambda: branch(s.body),
                                     lambda: branch(s.orelse))

    def outputs(self, s: ast.With) -> list[str]:
        """The names that R.output gives at the end of a dataflow block."""
        calls = [x.value for x in s.body if isinstance(x, ast.Expr) and isinstance(x.value, ast.Call)]
        return [a.id for c in calls if self.form(c) == "output" for a in c.args if isinstance(a, ast.Name)]

    def assign(self, s: ast.stmt, name: str, value: ast.expr, annotation: Any) -> None:
        if isinstance(value, ast.Name) and value.id == self.place.module.name and value.id:
            self.env[name] = _MODULE
        elif scalar(value) in _INTEGERS and isinstance(value, ast.Call) and not value.args:
            if not isinstance(self.env.get(name), Var):                # else an annotation has defined it
                self.env[name] = self.at(s, self.dialect.size, name)
        else:
            found = self.value(value)
            self.env[name] = found if isinstance(found, _Module) else self.at(
                s, self.dialect.bind, name, found, annotation)

    def unpack(self, s: ast.stmt, target: ast.Tuple, value: ast.expr) -> None:
        """a, b = x, y, or the fields of a tuple."""
        names = [t.id for t in target.elts if isinstance(t, ast.Name)]
        if len(names) < len(target.elts):
            self.fail(target, "names stand before `=`")
        if isinstance(value, ast.Tuple):
            if len(value.elts) != len(names):
                self.fail(s, f"{len(names)} names stand before `=`, and {len(value.elts)} values behind it")
            for name, part in zip(names, value.elts):
                self.assign(s, name, part, None)
            return
        whole = self.at(s, self.dialect.bind, "_".join(names), self.value(value), None)
        for k, name in enumerate(names):
            self.env[name] = self.at(s, self.dialect.bind, name, self.at(s, self.dialect.item, whole, k), None)

    def form(self, node: ast.expr) -> str:
        """The name of the form that is called."""
        f = node.func if isinstance(node, ast.Call) else node
        found = self.value(f) if isinstance(f, (ast.Attribute, ast.Name)) else None
        return found.name if isinstance(found, Form) else ""

    # expressions -------------------------------------------------------------------------------------------
    def value(self, e: ast.expr) -> Any:
        """What an expression is."""
        if isinstance(e, ast.Constant):
            return e.value
        if isinstance(e, ast.Name):
            return self.name(e)
        if isinstance(e, ast.Attribute):
            return self.attribute(e)
        if isinstance(e, (ast.Tuple, ast.List)):
            items = [self.value(x) for x in e.elts]
            return tuple(items) if isinstance(e, ast.Tuple) else items
        if isinstance(e, ast.Dict) and None not in e.keys:
            return {self.value(k): self.value(v) for k, v in zip(e.keys, e.values) if k is not None}
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            return self.at(e, operator.neg, self.value(e.operand))
        if isinstance(e, ast.BinOp) and type(e.op) in _BINARY:
            return self.at(e, _BINARY[type(e.op)], self.value(e.left), self.value(e.right))
        if isinstance(e, ast.Subscript):
            base, index = self.value(e.value), self.value(e.slice)
            plain = isinstance(base, (dict, list, tuple))
            return self.constant(self.at(e, operator.getitem if plain else self.dialect.item, base, index))
        if isinstance(e, ast.Call):
            return self.call(e)
        self.fail(e, "an expression of a graph function is no such thing", "R.operator(x, y, attribute=1)")

    def name(self, e: ast.Name) -> Any:
        for names in (self.env, self.place.names):
            if e.id in names:
                return self.constant(names[e.id])
        if e.id in ("float", "None", "True", "False"):
            return float
        if e.id == self.place.module.name and e.id:
            return _MODULE
        if isinstance(self.dialect.names.get(e.id), Annotation):       # as scripts of 2022 write it
            return self.dialect.names[e.id]
        if e.id in self.place.module.given:
            return self.at(e, self.dialect.member, e.id, self.place.module)
        hint = 'from_source(text, extra_vars={"metadata": ...}) gives constants' if e.id == "metadata" else ""
        self.fail(e, f"{e.id} is not defined", hint)

    def constant(self, x: Any) -> Any:
        """x, an array as a value."""
        return self.dialect.constant(x) if isinstance(x, np.ndarray) else x

    def attribute(self, e: ast.Attribute) -> Any:
        base = self.value(e.value)
        if isinstance(base, _Module):
            return self.at(e, self.dialect.member, e.attr, self.place.module)
        if isinstance(base, Names):
            if e.attr not in base.names:
                self.fail(e, f"there is no {ast.unparse(e)}")
            return base.names[e.attr]
        if getattr(base, "__name__", "").endswith("script.relax") or self.place.runs_python:
            if e.attr in self.dialect.names and not isinstance(base, Names) and _is_names(base):
                return self.dialect.names[e.attr]
            try:
                return getattr(base, e.attr)
            except AttributeError as why:
                self.fail(e, str(why))
        self.fail(e, f"{ast.unparse(e)} is nothing that a text may use")

    def call(self, e: ast.Call) -> Any:
        dtype = scalar(e)
        if dtype and len(e.args) == 1:
            return self.value(e.args[0])                     # T.int64(4), a number
        func = _OF_SIZES.get(self.of_tir(e.func)) or self.value(e.func)
        if isinstance(func, Annotation):
            args = [self.dims(x) for x in e.args]
        else:
            args = [self.value(x) for x in e.args]
        kwargs = {str(k.arg): self.dims(k.value) if isinstance(func, Annotation) else self.value(k.value)
                  for k in e.keywords}
        if callable(func):
            return self.at(e, func, *args, **kwargs)
        if kwargs:
            self.fail(e, "a function of the module takes positional arguments")
        return self.at(e, self.dialect.call, func, args)

    def dims(self, e: ast.expr) -> Any:
        """An argument of an annotation: in a shape a text is an expression of sizes, which it defines."""
        if isinstance(e, (ast.Tuple, ast.List)):
            return tuple(self.dims(x) if not is_text(x) else self.extent(x) for x in e.elts)
        return self.value(e)

    def extent(self, e: Any) -> Any:
        inner = unquoted(e)
        functions = [n.func for n in ast.walk(inner) if isinstance(n, ast.Call) and self.of_tir(n.func) in _OF_SIZES]
        ours = {id(f.value) for f in functions if isinstance(f, ast.Attribute)}
        for n in ast.walk(inner):
            if isinstance(n, ast.Name) and n.id not in self.env and id(n) not in ours:
                self.env[n.id] = self.at(e, self.dialect.size, n.id)
        return self.value(inner)

    def of_tir(self, f: ast.expr) -> str:
        """NAME of T.NAME, where T is no name of the function; else nothing."""
        known = isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id == "T"
        return f.attr if known and isinstance(f, ast.Attribute) and "T" not in self.env else ""

    # errors ------------------------------------------------------------------------------------------------
    def at(self, node: ast.AST, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """f(*args, **kwargs), whose errors point to node."""
        try:
            return f(*args, **kwargs)
        except ScriptError as why:
            if why.placed:
                raise
            raise self.place.source.error(node, str(why)) from None
        except (TilewrightError, TypeError, ValueError, KeyError, IndexError, ZeroDivisionError) as why:
            raise self.place.source.error(node, str(why) or type(why).__name__) from why

    def fail(self, node: ast.AST, message: str, hint: str = "") -> Any:
        raise self.place.source.error(node, message, hint)


def _is_names(base: Any) -> bool:
    return getattr(base, "__name__", "").endswith("script.relax")
