"""Expressions of a script, evaluated by walking Python's syntax tree: nothing is handed to `eval`."""
from __future__ import annotations

import ast
import functools
import re
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from tilewright.script.environment import Environment
from tilewright.script.language import NAMES
from tilewright.script.module_calls import ModuleFunction, pointer
from tilewright.script.operators import (
    apply,
    as_written,
    choice,
    inverted,
    is_expression,
    is_number,
    logical,
    negation,
    refuse_of_kernel,
    truth,
)
from tilewright.script.source import Source
from tilewright.script.values import BufferSyntax, DType, Form, Fresh, Function, Group, Meta
from tilewright.support.errors import ScriptError, TilewrightError, described, nearest
from tilewright.tir import foreign
from tilewright.tir.arithmetic import negate
from tilewright.tir.buffer import Buffer, Load, load
from tilewright.tir.conversion import convert
from tilewright.tir.expr import Expr, FloatImm, IntImm, Let, Ramp, Var
from tilewright.tir.slices import extent_of

# what our constructors raise on purpose, and Python's operators on values that do not fit them
ERRORS = (TilewrightError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError)
_FOLDING: dict[str, Callable[..., Any]] = {f.__name__: f for f in (
    min, max, len, abs, int, float, bool, round, sum, tuple, list, str)}
# what Python calls while a script is parsed: helper functions of the file around it
_HELPERS = (types.FunctionType, types.MethodType, functools.partial)
_OF_TE = re.compile(r"\bte\.(\w+)")
_WORDS: dict[type, str] = {
    ast.Lambda: "a lambda", ast.ListComp: "a comprehension", ast.GeneratorExp: "a comprehension",
    ast.SetComp: "a comprehension", ast.DictComp: "a comprehension", ast.Await: "await", ast.Yield: "yield",
    ast.NamedExpr: "`:=`", ast.JoinedStr: "an f-string", ast.Set: "a set", ast.Slice: "a slice",
}


class Expressions:
    """Values of expressions under an environment; errors point into the source."""

    def __init__(self, source: Source, names: Environment) -> None:
        self.source, self.names = source, names

    def fail(self, node: ast.AST, message: str, hint: str = "") -> NoReturn:
        raise self.source.error(node, message, hint) from None

    def value(self, node: ast.AST) -> Any:
        """What node stands for: a number, an expression, a buffer, a name of T, a tuple, ..."""
        rule = _VALUES.get(type(node))
        if rule is None:
            self.fail(node, f"{_WORDS.get(type(node), type(node).__name__)} is not part of the script language",
                      "compute it outside the function and use the result by its name")
        try:
            return rule(self, node)
        except ERRORS as why:
            raise self.located(node, why) from None

    def located(self, node: ast.AST, why: Exception) -> ScriptError:
        """why as an error at node, unless it points into the source already."""
        if isinstance(why, ScriptError) and why.placed:
            return why
        text = f"there is no key {why}" if isinstance(why, KeyError) else str(why)
        return self.source.error(node, _in_names_of_T(text) or type(why).__name__)

    def guard(self, node: ast.AST, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """fn(...); what it raises on purpose, or by Python's own operators, becomes an error at node."""
        try:
            return fn(*args, **kwargs)
        except ERRORS as why:
            raise self.located(node, why) from None

    def expr(self, node: ast.AST, dtype: str | None = None) -> Expr:
        """node as an expression; a number takes dtype."""
        x = self.value(node)
        if isinstance(x, Expr):
            return x
        if not is_number(x):
            self.fail(node, f"{_kind(x)} is not an expression",
                      "expected a number, a variable or an element of a buffer")
        return self.guard(node, convert, x, dtype)

    def items(self, nodes: Sequence[ast.expr]) -> list[Any]:
        """The values of nodes; `*x` gives those of x."""
        out: list[Any] = []
        for n in nodes:
            if isinstance(n, ast.Starred):
                out += self.guard(n, list, self.value(n.value))
            else:
                out.append(self.value(n))
        return out

    def arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        """Evaluated (args, kwargs)."""
        kwargs: dict[str, Any] = {}
        for k in node.keywords:
            kwargs |= {k.arg: self.value(k.value)} if k.arg else dict(self.value(k.value))
        return self.items(node.args), kwargs

    # names -------------------------------------------------------------------------------------------------
    def name(self, node: ast.Name) -> Any:
        try:
            return self.names.find(node.id)
        except KeyError:
            if node.id in _FOLDING:
                return Function(node.id, functools.partial(_fold, node.id))
            own = f"did you mean T.{node.id}?" if node.id in NAMES else nearest(node.id, self.names.known())
            self.fail(node, f"the name {node.id!r} is not defined here", own)

    def attribute(self, node: ast.Attribute) -> Any:
        x = self.value(node.value)
        if isinstance(x, Group):
            if node.attr not in x.members:
                self.fail(node, f"T.{x.name} has no name {node.attr!r}", nearest(node.attr, x.members, f"T.{x.name}."))
            return x.members[node.attr]
        if isinstance(x, Buffer):
            return self.buffer_attribute(node, x)
        if isinstance(x, Expr):
            known = {"dtype": lambda: x.dtype, "astype": lambda: Function("astype", x.astype)}
            if node.attr not in known:
                self.fail(node, f"an expression has no attribute {node.attr!r}", nearest(node.attr, known))
            return known[node.attr]()
        if node.attr.startswith("__"):
            self.fail(node, f"the attribute {node.attr} is not part of the script language")
        return getattr(x, node.attr)

    def buffer_attribute(self, node: ast.Attribute, b: Buffer) -> Any:
        if node.attr == "elem_offset":
            return IntImm(0) if b.elem_offset is None else b.elem_offset
        if node.attr in ("data", "shape", "strides", "dtype"):
            return getattr(b, node.attr)
        methods: dict[str, Callable[..., Any]] = {
            "vload": functools.partial(_vload, b), "access_ptr": b.access_ptr,
            "scope": lambda: b.scope,
        }
        if node.attr == "vstore":
            return Form("vstore")
        if node.attr not in methods:
            self.fail(node, f"a buffer has no attribute {node.attr!r}", nearest(node.attr, methods))
        return Function(node.attr, methods[node.attr])

    # calls -------------------------------------------------------------------------------------------------
    def call(self, node: ast.Call) -> Any:
        fn = self.value(node.func)
        if isinstance(fn, Form):
            if fn.name == "Let":
                return self.let_expression(node)
            self.fail(node, f"{ast.unparse(node.func)} is a statement of its own, it has no value here")
        args, kwargs = self.arguments(node)
        if isinstance(fn, ModuleFunction):
            return fn.call(args, self.whole_memory)
        if self.names.runs_python and isinstance(fn, _HELPERS):
            return fn(*args, **kwargs)
        if isinstance(fn, DType):
            if not args and kwargs.keys() <= {"is_size_var"}:      # extents are natural numbers in any case
                return Fresh(fn.name)
            return fn.of(*args, **kwargs)
        if isinstance(fn, Function) and fn.name == "call_function":
            args = [self.whole_memory(a) for a in args]
        if isinstance(fn, (Function, BufferSyntax)):
            return fn(*args, **kwargs)
        self.not_called(node, fn)

    def not_called(self, node: ast.Call, fn: Any) -> NoReturn:
        """Refuse a call that has no value in a script."""
        name = getattr(fn, "__name__", "")
        ours = f"T.{name}" if isinstance(NAMES.get(name), Function) else _in_names_of_T(foreign.instead(name))
        self.fail(node, f"{ast.unparse(node.func)} cannot be called in a script", f"write {ours}" if ours else
                  "call functions of T, and functions of the Python around the script, which a text does not have")

    def whole_memory(self, x: Any) -> Any:
        """A buffer, or the address of one that has a name here, as the argument of a call."""
        return pointer(x, {b.data: b for b in self.names.values() if isinstance(b, Buffer)})

    def let_expression(self, node: ast.Call) -> Expr:
        """T.Let(body, where={name: value})."""
        where = next((k.value for k in node.keywords if k.arg == "where"), None)
        if len(node.args) != 1 or not isinstance(where, ast.Dict) or len(where.keys) != 1 \
                or not isinstance(where.keys[0], ast.Name):
            self.fail(node, "T.Let takes a body and one name with its value", "T.Let(x + x, where={x: A[0]})")
        value = self.expr(where.values[0])
        v = Var(where.keys[0].id, value.dtype)
        with self.names.scope():
            self.names.define(v.name, v)
            return Let(v, value, self.expr(node.args[0]))

    # elements ----------------------------------------------------------------------------------------------
    def subscript(self, node: ast.Subscript) -> Any:
        x = self.value(node.value)
        if isinstance(x, Buffer):
            return load(x, self.indices(node, x))
        if isinstance(x, BufferSyntax):
            return x[self.value(node.slice)]
        if isinstance(x, (Expr, Function, Form, DType)):
            self.fail(node, f"{_kind(x)} has no elements")
        if isinstance(node.slice, ast.Slice):
            ends = [None if n is None else self.value(n) for n in (node.slice.lower, node.slice.upper, node.slice.step)]
            return x[slice(*ends)]
        index = self.value(node.slice)
        given = index if isinstance(index, tuple) else (index,)
        if isinstance(x, np.ndarray) and any(isinstance(i, Expr) for i in given):
            self.fail(node, "an array of NumPy has no element at an index that is known only when the kernel runs",
                      "T.allocate_const keeps it in the function; or make it an argument")
        return x[index]

    def indices(self, node: ast.Subscript, b: Buffer) -> list[Expr]:
        """The indices of an access; a slice is a vector."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) != len(b.shape) and not any(isinstance(p, ast.Starred) for p in parts):
            self.fail(node, f"{b.name} has {len(b.shape)} dimension(s), {len(parts)} index(es) given")
        out: list[Expr] = []
        for p in parts:
            if isinstance(p, ast.Slice):
                out.append(self.vector(p))
            elif isinstance(p, ast.Starred):
                out += [convert(i) for i in self.value(p.value)]
            else:
                out.append(self.expr(p))
        return out

    def vector(self, node: ast.Slice) -> Ramp:
        """low:stop:stride with a constant distance, as the indices low, low + stride, ..."""
        if node.lower is None or node.upper is None:
            self.fail(node, "a vector needs both ends", "A[0:8] is the vector of A[0] to A[7]")
        low = self.expr(node.lower)
        stop = self.expr(node.upper, low.dtype)
        stride = 1 if node.step is None else self.value(node.step)
        width = self.guard(node, extent_of, low, stop)
        if not isinstance(width, IntImm) or not isinstance(stride, int) or stride < 1 or width.value < 1:
            self.fail(node, "a vector has a constant number of lanes and a positive constant stride",
                      "write the stop as the start plus a number: A[i * 8:i * 8 + 8]")
        if width.value % stride:
            self.fail(node, f"the length {width.value} is not a multiple of the stride {stride}")
        return Ramp(low, IntImm(stride, low.dtype), width.value // stride)

    # operators ---------------------------------------------------------------------------------------------
    def unary(self, node: ast.UnaryOp) -> Any:
        x = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return negation(x)
        if isinstance(node.op, ast.Invert):
            return inverted(x)
        if isinstance(node.op, ast.UAdd):
            return x
        return negate(x) if is_expression(x) else -x

    def compare(self, node: ast.Compare) -> Any:
        """a < b; a < b < c means both."""
        values = [self.value(n) for n in (node.left, *node.comparators)]
        tests = []
        for op, a, b in zip(node.ops, values, values[1:], strict=False):
            if isinstance(op, (ast.In, ast.NotIn, ast.Is, ast.IsNot)):
                tests.append(_membership(op, a, b))
            else:
                tests.append(apply(type(op), a, b))
        return tests[0] if len(tests) == 1 else logical("and", tests)

    def conditional(self, node: ast.IfExp) -> Any:
        """`a if c else b`: chosen now where c is known now."""
        c = self.value(node.test)
        if not is_expression(c):
            return self.value(node.orelse if self.guard(node.test, negation, c) else node.body)
        return choice(c, self.value(node.body), self.value(node.orelse))


def _in_names_of_T(message: str) -> str:
    """A text that names functions of te with those of T that are the same."""
    return _OF_TE.sub(lambda m: f"T.{m[1]}" if m[1] in NAMES else m[0], message)


def _membership(op: ast.cmpop, a: Any, b: Any) -> bool:
    if is_expression(a) or is_expression(b):
        raise ScriptError("`in` and `is` ask for values that are known only when the kernel runs")
    if isinstance(op, (ast.Is, ast.IsNot)):
        return (a is b) == isinstance(op, ast.Is)
    refuse_of_kernel(a, b)
    return (a in b) == isinstance(op, ast.In)


def _fold(name: str, *args: Any) -> Any:
    """Python's min, len, int, ...: of values known now; min, max and abs of expressions too."""
    if name in ("int", "float", "bool") and len(args) == 1 and isinstance(args[0], (IntImm, FloatImm)):
        return _FOLDING[name](args[0].value)
    if name == "bool" and len(args) == 1 and not is_expression(args[0]):
        return truth(args[0])
    if not any(is_expression(a) for a in args):
        return _FOLDING[name](*args)
    if name in ("min", "max") and len(args) > 1:
        return functools.reduce(lambda a, b: as_written(name, a, b), args)
    if name == "abs":
        return abs(*args)
    raise ScriptError(f"{name}() of a value that is known only when the kernel runs")


def _vload(b: Buffer, begin: Any, dtype: str | None = None, predicate: Any = None) -> Load:
    index = tuple(convert(i) for i in (begin if isinstance(begin, (list, tuple)) else (begin,)))
    element = b.vload(index, dtype) if dtype else load(b, index)
    return element if predicate is None else element.replace(predicate=convert(predicate))


def _kind(x: Any) -> str:
    if isinstance(x, (Form, Function, Group, DType)):
        return f"the name T.{x.name}"
    if isinstance(x, Buffer):
        return f"the buffer {x.name} as a whole"
    if isinstance(x, (Meta, Fresh)):
        return "a new variable without a name"
    return f"a {type(x).__name__}" if isinstance(x, types.ModuleType) else described(x)


_VALUES: dict[type, Callable[[Expressions, Any], Any]] = {
    ast.Constant: lambda p, n: n.value,
    ast.Name: Expressions.name,
    ast.Attribute: Expressions.attribute,
    ast.Call: Expressions.call,
    ast.Subscript: Expressions.subscript,
    ast.BinOp: lambda p, n: apply(type(n.op), p.value(n.left), p.value(n.right)) if type(n.op) is not ast.MatMult
    else p.fail(n, "`@` is not part of the script language"),
    ast.UnaryOp: Expressions.unary,
    ast.BoolOp: lambda p, n: logical("and" if isinstance(n.op, ast.And) else "or", [p.value(v) for v in n.values]),
    ast.Compare: Expressions.compare,
    ast.IfExp: Expressions.conditional,
    ast.Tuple: lambda p, n: tuple(p.items(n.elts)),
    ast.List: lambda p, n: p.items(n.elts),
    ast.Dict: lambda p, n: dict(pair for k, v in zip(n.keys, n.values, strict=True) for pair in (
        dict(p.value(v)).items() if k is None else [(p.value(k), p.value(v))])),
}
