"""The expressions of a `te.hybrid.script` function."""
from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from tilewright.support.errors import TensorExpressionError
from tilewright.support.target import target
from tilewright.te import math as te_math
from tilewright.te.reduction import max as te_max
from tilewright.te.reduction import min as te_min
from tilewright.te.tensor import Tensor
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import all_of, any_of, bitwise_not, ceildiv, if_then_else, logical_not, power
from tilewright.tir.buffer import Buffer, decl_buffer
from tilewright.tir.conversion import cast, convert
from tilewright.tir.expr import Expr
from tilewright.tir.ir_builder import BufferVar, IRBuilder

DTYPES = ("float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
          "uint64", "bool")
_MATH = ("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "sin", "cos", "floor", "ceil", "trunc", "popcount", "likely",
         "erf")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(te_math, name) for name in _MATH}, "power": power, "abs": te_math.abs, "round": te_math.round,
    "min": te_min, "max": te_max, "ceil_div": ceildiv, "len": len,
    **{name: (lambda kind: lambda x: cast(kind, convert(x)))(name) for name in DTYPES},
    "max_num_threads": lambda allow_none=True: target(None).num_cores,
    "print": lambda *args: te_math.call_packed("print", *args),
}
BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.Pow: lambda a, b: (
        power(convert(a), b) if isinstance(a, Expr) or isinstance(b, Expr) else a ** b),
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_MISSING = object()


class Scalar:
    """A name that is assigned more than once: memory of one element."""

    def __init__(self, memory: BufferVar) -> None:
        self.memory = memory


class Expressions:
    """What an expression of the body is: IR, or a value that is known when the body is read."""

    def __init__(self, name: str, line: int, captured: Mapping[str, Any]) -> None:
        self.name, self.line, self.captured = name, line, captured
        self.builder = IRBuilder()
        self.env: dict[str, Any] = {}
        self.outputs: list[Buffer] = []
        self.depth = 0                               # of loops and branches around the statement

    def wrapped(self, value: Any) -> Any:
        """An argument or captured value as the body sees it."""
        if isinstance(value, Buffer):
            return BufferVar(self.builder, value)
        return tuple(map(self.wrapped, value)) if isinstance(value, (list, tuple)) else value

    def fail(self, node: ast.AST, message: str, hint: str = "") -> NoReturn:
        at = self.line + getattr(node, "lineno", 1) - 1
        raise TensorExpressionError(f"hybrid {self.name}, line {at}: {message}", hint) from None

    def expr(self, e: ast.expr) -> Any:
        handler = getattr(self, f"expr_{type(e).__name__}", None)
        if handler is None:
            self.fail(e, f"`{ast.unparse(e)}` is not part of the language")
        return handler(e)

    def condition(self, e: ast.expr) -> Any:
        """The value of a condition: a bool, or what is known now. Of a tensor or a tuple, Python's truth value says
        nothing about its elements."""
        value = self.expr(e)
        if isinstance(value, Expr) and not dt.is_bool(value.dtype):
            self.fail(e, f"the condition `{ast.unparse(e)}` is {value.dtype}, not a bool", "compare: x != 0")
        if isinstance(value, (BufferVar, tuple)):
            self.fail(e, f"`{ast.unparse(e)}` is no condition", "compare an element: a[i] > 0.0")
        return value

    def expr_Constant(self, e: ast.Constant) -> Any:
        return e.value

    def expr_Tuple(self, e: ast.Tuple) -> Any:
        return tuple(map(self.expr, e.elts))

    expr_List = expr_Tuple

    def expr_Name(self, e: ast.Name) -> Any:
        found = self.env.get(e.id, _MISSING)
        if found is _MISSING:
            found = self.wrapped(self.captured.get(e.id, FUNCTIONS.get(e.id, _MISSING)))
        if found is _MISSING:
            self.fail(e, f"{e.id} has no value here", "a name lives in the block in which it is first assigned")
        if isinstance(found, Tensor):
            self.fail(e, f"the tensor {e.id} is no argument of the function", "pass it as one")
        return found.memory[0] if isinstance(found, Scalar) else found

    def expr_Attribute(self, e: ast.Attribute) -> Any:
        return getattr(self.expr(e.value), e.attr)

    def expr_Subscript(self, e: ast.Subscript) -> Any:
        return self.expr(e.value)[self.expr(e.slice)]

    def expr_BinOp(self, e: ast.BinOp) -> Any:
        if type(e.op) not in BINARY:
            self.fail(e, f"`{ast.unparse(e)}` is not part of the language")
        return BINARY[type(e.op)](self.expr(e.left), self.expr(e.right))

    def expr_UnaryOp(self, e: ast.UnaryOp) -> Any:
        x = self.condition(e.operand) if isinstance(e.op, ast.Not) else self.expr(e.operand)
        match e.op:
            case ast.USub():
                return -x
            case ast.UAdd():
                return x
            case ast.Not():
                return logical_not(x) if isinstance(x, Expr) else not x
        return bitwise_not(x) if isinstance(x, Expr) else ~x

    def expr_Compare(self, e: ast.Compare) -> Any:
        terms, left = [], self.expr(e.left)
        for op, right in zip(e.ops, map(self.expr, e.comparators), strict=True):
            if type(op) not in _COMPARE:
                self.fail(e, f"`{ast.unparse(e)}` is not part of the language")
            terms.append(_COMPARE[type(op)](left, right))
            left = right
        return self.joined(terms, all_of, all)

    def expr_BoolOp(self, e: ast.BoolOp) -> Any:
        values = [self.condition(v) for v in e.values]
        return self.joined(values, all_of, all) if isinstance(e.op, ast.And) else self.joined(values, any_of, any)

    @staticmethod
    def joined(values: list[Any], symbolic: Callable[..., Expr], plain: Callable[[list[Any]], bool]) -> Any:
        return symbolic(*values) if any(isinstance(v, Expr) for v in values) else plain(values)

    def expr_IfExp(self, e: ast.IfExp) -> Any:
        condition = self.condition(e.test)
        if not isinstance(condition, Expr):
            return self.expr(e.body if condition else e.orelse)
        return if_then_else(condition, self.expr(e.body), self.expr(e.orelse))

    def expr_Call(self, e: ast.Call) -> Any:
        if any(k.arg is None for k in e.keywords):
            self.fail(e, f"`{ast.unparse(e)}` is not part of the language")
        args, keywords = [self.expr(a) for a in e.args], {str(k.arg): self.expr(k.value) for k in e.keywords}
        if isinstance(e.func, ast.Name) and e.func.id in ("output_tensor", "allocate") and e.func.id not in self.env:
            return self.memory(e, e.func.id, *args, **keywords)
        return self.expr(e.func)(*args, **keywords)

    def memory(self, e: ast.Call, what: str, shape: Any, dtype: str = "float32", scope: str = "global") -> BufferVar:
        if what == "allocate":
            return self.builder.allocate(dtype, shape, "buffer", scope=scope)
        if self.depth:
            self.fail(e, "output_tensor stands in a loop or branch")
        self.outputs.append(decl_buffer(shape, dtype, f"{self.name}_{len(self.outputs)}"))
        return BufferVar(self.builder, self.outputs[-1])
