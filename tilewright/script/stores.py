"""Statements of a script that are neither loops nor blocks: stores, calls, assertions, attributes."""
from __future__ import annotations

import ast
from typing import Any

from tilewright.script.frames import Around
from tilewright.script.loops import EnvThread, Loops
from tilewright.script.operators import OPERATORS, as_written, is_expression, is_number
from tilewright.support.errors import IRError
from tilewright.tir import dtype as dt
from tilewright.tir.assertion import assertion
from tilewright.tir.buffer import Buffer, load, vector_at
from tilewright.tir.conversion import cast, const, convert
from tilewright.tir.expr import Broadcast, Expr
from tilewright.tir.stmt import Evaluate, For, Stmt, Store, seq

_THREAD_ATTRIBUTES = ("thread_extent", "virtual_thread")
_PRAGMA = "pragma_"


class Stores(Loops):
    def expression(self, node: ast.Expr) -> Stmt | None:
        call = node.value
        if isinstance(call, ast.Constant) and (isinstance(call.value, str) or call.value is ...):
            return None                                             # a docstring
        form = self.form(call)
        if form:
            rule = self.forms.get(form)
            if rule is None:
                self.fail(node, f"T.{form} does not stand alone", self.usage(form))
            return rule(self, call)
        macro = self.macro_of(call)
        if macro is not None:
            return self.expanded(call, macro)  # type: ignore[arg-type]
        x = self.value(call)
        if not isinstance(call, ast.Call) or not isinstance(x, Expr):
            self.fail(node, "the value of this expression is not used", "T.evaluate(...) keeps it")
        return Evaluate(x)

    def evaluate(self, node: ast.Call) -> Stmt:
        return Evaluate(self.expr(self.bound(node, ("value",), 1)["value"]))

    def vstore(self, node: ast.Call) -> Stmt:
        """B.vstore([index], value, predicate=...)."""
        assert isinstance(node.func, ast.Attribute)
        buffer = self.value(node.func.value)
        arguments = self.bound(node, ("begin", "value", "predicate"), 2)
        begin, value = self.value(arguments["begin"]), self.value(arguments["value"])
        lanes = dt.lanes_of(value.dtype) if isinstance(value, Expr) else 1
        store = self.store_value(buffer, load(buffer, vector_at(begin, lanes)).indices, value)
        return store.replace(predicate=self.expr(arguments["predicate"])) if "predicate" in arguments else store

    def store(self, target: ast.Subscript, value: Any) -> Stmt:
        buffer = self.value(target.value)
        if not isinstance(buffer, Buffer):
            self.fail(target, "only elements of buffers are assigned to")
        return self.guard(target, self.store_value, buffer, load(buffer, self.indices(target, buffer)).indices, value)

    def store_value(self, buffer: Buffer, index: tuple[Expr, ...], value: Any) -> Store:
        """buffer[index] = value: numbers take the buffer's type, narrower values are widened, scalars repeated."""
        if is_number(value):
            value = const(value, buffer.dtype)
        elif not is_expression(value):
            raise IRError(f"what is stored to {buffer.name} is no expression")
        e = convert(value)
        lanes = dt.lanes_of(index[-1].dtype) if index else 1
        own = dt.with_lanes(buffer.dtype, dt.lanes_of(e.dtype))
        if e.dtype != own:
            if not _widens(e.dtype, own):
                raise IRError(f"a value of type {e.dtype} is stored to {buffer.name}, which holds {own}",
                              f'cast it: T.Cast("{buffer.dtype}", ...)')
            e = cast(own, e)
        if lanes > 1 and dt.lanes_of(e.dtype) == 1:
            e = Broadcast(e, lanes)
        if dt.lanes_of(e.dtype) != lanes:
            raise IRError(f"{dt.lanes_of(e.dtype)} lanes are stored to {lanes} element(s) of {buffer.name}")
        return Store(buffer, e, index)

    def update(self, node: ast.AugAssign) -> Stmt:
        """A[i] += e."""
        if not isinstance(node.target, ast.Subscript):
            self.fail(node, "a variable keeps its value", "only elements of buffers are updated: A[i] += ...")
        if type(node.op) not in OPERATORS or isinstance(node.op, ast.Pow):
            self.fail(node, "this operator is not part of the script language")
        element = ast.copy_location(ast.Subscript(node.target.value, node.target.slice, ast.Load()), node.target)
        value = as_written(OPERATORS[type(node.op)][0], self.value(element), self.value(node.value))
        return self.store(node.target, value)

    def launched(self, node: ast.Call, target: ast.AST | None = None) -> Around:
        """T.launch_thread(...) without `with`: all that follows runs on the threads."""
        return self.launch(node, target)

    def asserted(self, node: ast.Assert) -> Stmt | None:
        """assert condition, "message": now where the condition is known now, else when the kernel runs."""
        return self.checked(node, node.test, node.msg)

    def assertion(self, node: ast.Call) -> Stmt | None:
        """T.Assert(condition, "message") on a line of its own."""
        arguments = self.bound(node, ("condition", "message"), 1)
        return self.checked(node, arguments["condition"], arguments.get("message"))

    def assertion_context(self, node: ast.Call, target: ast.AST | None) -> Around:
        """with T.Assert(condition, "message"): the assertion comes before the body."""
        if target is not None:
            self.fail(target, "T.Assert gives no value")
        check = self.assertion(node)
        return Around(lambda body: body if check is None else seq([check, body]), node)

    def checked(self, node: ast.AST, test: ast.expr, text: ast.expr | None) -> Evaluate | None:
        message = "" if text is None else self.value(text)
        condition = self.condition(test)
        if isinstance(condition, Expr):
            return self.guard(node, assertion, condition, message)
        if not condition:
            self.fail(node, f"the assertion {ast.unparse(test)} does not hold" + (f": {message}" if message else ""))
        return None

    def buffer_store(self, node: ast.Call) -> Stmt:
        """T.buffer_store(B, value, [index, ...])."""
        arguments = self.bound(node, ("buffer", "value", "indices", "predicate"), 3)
        buffer, indices = self.value(arguments["buffer"]), self.value(arguments["indices"])
        if not isinstance(buffer, Buffer):
            self.fail(arguments["buffer"], "T.buffer_store starts with a buffer", "T.buffer_store(B, value, [i, j])")
        at = self.guard(node, load, buffer, indices if isinstance(indices, (list, tuple)) else [indices])
        store = self.guard(node, self.store_value, buffer, at.indices, self.value(arguments["value"]))
        return store.replace(predicate=self.expr(arguments["predicate"])) if "predicate" in arguments else store

    def attr(self, node: ast.Call, target: ast.AST | None = None) -> Around:
        """T.attr(thread, "thread_extent", n): a loop bound to the thread; T.attr(0, "pragma_x", v): of a loop."""
        arguments = self.bound(node, ("node", "attr_key", "value"), 3)
        key = self.value(arguments["attr_key"])
        if key in _THREAD_ATTRIBUTES and isinstance(self.value(arguments["node"]), EnvThread):
            loop = ast.Call(node.func, [arguments["node"], arguments["value"]], [])
            return self.launch(ast.copy_location(loop, node), target)
        if not isinstance(key, str) or not key.startswith(_PRAGMA):
            self.fail(arguments["attr_key"], f"the attribute {key!r} has no meaning here",
                      'T.attr(T.env_thread("threadIdx.x"), "thread_extent", 32); "pragma_..." of a loop')
        value = self.value(arguments["value"])

        def wrap(body: Stmt) -> Any:
            if not isinstance(body, For):
                self.fail(node, f"the attribute {key!r} belongs to a loop", "with T.attr(...): for ...:")
            return body.replace(annotations={**body.annotations, key: value})
        return Around(wrap, node)


def _widens(narrow: str, wide: str) -> bool:
    """True when a value of the narrow type becomes one of the wide type unasked: as operands of `+` would."""
    if dt.is_bool(narrow):
        return False
    try:
        return dt.promote(narrow, wide) == wide
    except IRError:
        return False
