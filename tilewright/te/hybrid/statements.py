"""The body of a `te.hybrid.script` function, from Python's syntax tree to loops."""
from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.support.errors import TensorExpressionError, TilewrightError
from tilewright.te.definition import thread_axis
from tilewright.te.hybrid.expressions import BINARY, Expressions, Scalar
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer
from tilewright.tir.conversion import const, convert
from tilewright.tir.expr import Expr, FloatImm, IntImm
from tilewright.tir.ir_builder import BufferVar
from tilewright.tir.stmt import Stmt

LOOPS = {"range": "serial", "serial": "serial", "parallel": "parallel", "vectorize": "vectorize", "unroll": "unroll"}


class Parser(Expressions):
    """One call of a hybrid function: `run` gives the statement, then `outputs` and `returned` hold its tensors."""

    def __init__(self, name: str, line: int, captured: Mapping[str, Any]) -> None:
        super().__init__(name, line, captured)
        self.returned: list[Buffer] | None = None
        self.inputs: set[int] = set()
        self._assigned: dict[str, int] = {}
        self._outside: set[str] = set()              # names of the blocks around the innermost loop or branch

    def run(self, function: ast.FunctionDef, arguments: Mapping[str, Any]) -> Stmt:
        """The loops of the function called with these arguments; a Buffer stands for an input tensor."""
        self.env = {name: self.wrapped(value) for name, value in arguments.items()}
        for node in ast.walk(function):
            if isinstance(node, (ast.Assign, ast.AugAssign)):
                changes = isinstance(node, ast.AugAssign)
                for t in [node.target] if isinstance(node, ast.AugAssign) else node.targets:
                    for name in (n.id for n in getattr(t, "elts", [t]) if isinstance(n, ast.Name)):
                        self._assigned[name] = self._assigned.get(name, 0) + 1 + changes
        for name in [name for name in self._assigned if name in self.env]:
            self._assigned[name] += 1                # a parameter has a value before the first assignment
            if not isinstance(self.env[name], (BufferVar, tuple)):
                self.name_value(name, self.env.pop(name))
        self.inputs = {id(b.buffer) for b in _buffers(self.env.values())}
        self.body(function.body)
        if self.returned is None:
            self.fail(function, "the function returns nothing", "return what output_tensor gave")
        return self.builder.get()

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for s in statements:
            if self.returned is not None:
                self.fail(s, "nothing may follow the return")
            handler = getattr(self, f"stmt_{type(s).__name__}", None)
            if handler is None:
                self.fail(s, f"`{ast.unparse(s).splitlines()[0]}` is not part of the language",
                          "loops, if, assignments and the return of outputs are")
            try:
                handler(s)
            except TensorExpressionError:
                raise
            except (TilewrightError, TypeError, AttributeError, LookupError, ValueError, ArithmeticError) as why:
                self.fail(s, str(why).partition("\n\nhint: ")[0], str(why).partition("\n\nhint: ")[2])

    @contextmanager
    def scope(self, repeated: bool = False) -> Iterator[None]:
        """Names first assigned inside are unknown after it. repeated: what stands inside is written out each time."""
        before, outside, self.depth = set(self.env), self._outside, self.depth + 1
        self._outside = outside if repeated else before
        yield
        self._outside, self.depth = outside, self.depth - 1
        self.env = {k: v for k, v in self.env.items() if k in before}

    def stmt_Pass(self, s: ast.Pass) -> None:
        """Nothing."""

    def stmt_Expr(self, s: ast.Expr) -> None:
        if isinstance(s.value, ast.Constant):               # a docstring
            return
        value = self.expr(s.value)
        if isinstance(value, Expr):
            self.builder.emit(value)

    def stmt_Assert(self, s: ast.Assert) -> None:
        condition = self.condition(s.test)
        if isinstance(condition, Expr):
            self.fail(s, "an assertion must be about what is known before the kernel runs")
        if not condition:
            self.fail(s, f"the assertion {ast.unparse(s.test)} does not hold")

    def stmt_Return(self, s: ast.Return) -> None:
        if self.depth:
            self.fail(s, "return stands in a loop or branch", "let it be the last statement of the function")
        value = self.expr(s.value) if s.value is not None else ()
        given = value if isinstance(value, tuple) else (value,)
        for v in given:
            if not isinstance(v, BufferVar) or not any(v.buffer is b for b in self.outputs):
                self.fail(s, "the function returns something else than its outputs", "return what output_tensor gave")
        self.returned = [v.buffer for v in given]

    def stmt_Assign(self, s: ast.Assign) -> None:
        if len(s.targets) != 1:
            self.fail(s, "one target for each assignment")
        value = self.expr(s.value)
        self.assign(s, s.targets[0], self.held(value) if isinstance(value, tuple) else value)

    def held(self, value: Any) -> Any:
        """value with variables for the expressions in it, which the assignments that follow do not change."""
        if isinstance(value, tuple):
            return tuple(map(self.held, value))
        computed = isinstance(value, Expr) and not isinstance(value, (IntImm, FloatImm))
        return self.builder.let("value", value) if computed else value

    def stmt_AugAssign(self, s: ast.AugAssign) -> None:
        if isinstance(s.target, ast.Name) and s.target.id not in self.env:
            self.fail(s, f"{s.target.id} has no value here", "a name lives in the block in which it is first assigned")
        if type(s.op) not in BINARY:
            self.fail(s, f"`{ast.unparse(s)}` is not part of the language")
        old = self.expr(_as_load(s.target))
        self.assign(s, s.target, BINARY[type(s.op)](old, self.expr(s.value)))

    def assign(self, s: ast.stmt, target_: ast.expr, value: Any) -> None:
        if isinstance(target_, ast.Tuple):
            values = value if isinstance(value, tuple) else self.fail(s, "several names for one value")
            for t, v in zip(target_.elts, values, strict=True):
                self.assign(s, t, v)
        elif isinstance(target_, ast.Subscript):
            tensor = self.expr(target_.value)
            if not isinstance(tensor, BufferVar):
                self.fail(s, f"{ast.unparse(target_.value)} is not a tensor")
            if id(tensor.buffer) in self.inputs:
                self.fail(s, f"the input {ast.unparse(target_.value)} is written", "write to an output_tensor")
            tensor[self.expr(target_.slice)] = value
        elif isinstance(target_, ast.Name):
            whole = any(isinstance(x, (BufferVar, tuple)) for x in (value, self.env.get(target_.id)))
            if whole and target_.id in self._outside:
                self.fail(s, f"{target_.id} stands for a tensor or tuple, and is given another in a loop or branch",
                          "which one it is must be known before the kernel runs")
            self.name_value(target_.id, value)
        else:
            self.fail(s, f"{ast.unparse(target_)} cannot be assigned")

    def name_value(self, name: str, value: Any) -> None:
        """A name assigned once is its value; one that changes is memory of one element."""
        old = self.env.get(name)
        if isinstance(old, Scalar):
            old.memory[0] = value
        elif isinstance(value, (BufferVar, tuple)) or self._assigned.get(name, 0) < 2 and not isinstance(value, Expr):
            self.env[name] = value
        elif self._assigned.get(name, 0) < 2:
            self.env[name] = self.builder.let(name, value)
        else:
            e = _number(value)
            memory = self.builder.allocate(e.dtype, (1,), name, scope="local")
            memory[0] = e
            self.env[name] = Scalar(memory)

    def stmt_If(self, s: ast.If) -> None:
        condition = self.condition(s.test)
        if not isinstance(condition, Expr):
            self.body(s.body if condition else s.orelse)
            return
        with self.builder.if_scope(condition), self.scope():
            self.body(s.body)
        if s.orelse:
            with self.builder.else_scope(), self.scope():
                self.body(s.orelse)

    def stmt_While(self, s: ast.While) -> None:
        self.no_else(s)
        condition = self.condition(s.test)
        if not isinstance(condition, Expr):
            if condition:
                self.fail(s, f"the condition is always {condition}, and there is no `break`")
            return
        with self.builder.while_loop(condition), self.scope():
            self.body(s.body)

    def stmt_For(self, s: ast.For) -> None:
        call, var = s.iter, s.target
        self.no_else(s)
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not isinstance(var, ast.Name) \
                or call.func.id not in (*LOOPS, "const_range", "bind"):
            self.fail(s, f"`for {ast.unparse(var)} in {ast.unparse(call)}` is not a loop",
                      f"one name in {', '.join(LOOPS)}, const_range(...) or bind(tag, extent)")
        if call.keywords:
            self.fail(s, f"{call.func.id} takes no keywords")
        if var.id in self.env:
            self.fail(s, f"the loop variable {var.id} has a value already", "give the loop a name of its own")
        kind, args = call.func.id, [self.expr(a) for a in call.args]
        if kind == "bind":
            with self.builder.collected() as inside, self.scope():
                axis = thread_axis(args[0])
                self.builder.scope_attr(axis, "thread_extent", args[1])
                self.env[var.id] = axis.var
                self.body(s.body)
            self.builder.close(inside)
            return
        if not 1 <= len(args) <= 2:
            self.fail(s, f"{kind} takes the end, or the begin and the end")
        low, high = args if len(args) == 2 else (0, args[0])
        for bound in (low, high):
            if not dt.is_integer(convert(bound).dtype):
                self.fail(s, f"the bound {ast.unparse(call)} of the loop is {convert(bound).dtype}, not an integer")
        if kind == "const_range":
            for value in range(low, high):
                with self.scope(repeated=True):
                    self.env[var.id] = value
                    self.body(s.body)
            return
        with self.builder.for_range(low, high, var.id, kind=LOOPS[kind]) as i, self.scope():
            self.env[var.id] = i
            self.body(s.body)

    def no_else(self, s: ast.For | ast.While) -> None:
        if s.orelse:
            self.fail(s.orelse[0], "`else` of a loop is not part of the language")


def _number(value: Any) -> Expr:
    return const(value, "float32") if isinstance(value, float) else convert(value)


def _as_load(e: ast.expr) -> ast.expr:
    """The target of `x += 1` as an expression."""
    return ast.copy_location(ast.parse(ast.unparse(e), mode="eval").body, e)


def _buffers(values: Any) -> Iterator[BufferVar]:
    for v in values:
        if isinstance(v, BufferVar):
            yield v
        elif isinstance(v, tuple):
            yield from _buffers(v)
