"""Stores and calls of a script."""
from __future__ import annotations

import ast
from typing import Any

from tilewright.script.frames import Around
from tilewright.script.loops import Loops
from tilewright.script.operators import OPERATORS, as_written, is_expression, is_number
from tilewright.support.errors import IRError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, load, vector_at
from tilewright.tir.conversion import cast, const, convert
from tilewright.tir.expr import Broadcast, Expr
from tilewright.tir.stmt import Evaluate, Stmt, Store


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
        given = self.bound(node, ("begin", "value", "predicate"), 2)
        begin, value = self.value(given["begin"]), self.value(given["value"])
        lanes = dt.lanes_of(value.dtype) if isinstance(value, Expr) else 1
        store = self.store_value(buffer, load(buffer, vector_at(begin, lanes)).indices, value)
        return store.replace(predicate=self.expr(given["predicate"])) if "predicate" in given else store

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
                raise IRError(with_hint(f"a value of type {e.dtype} is stored to {buffer.name}, which holds {own}",
                                        f'cast it: T.Cast("{buffer.dtype}", ...)'))
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


def _widens(narrow: str, wide: str) -> bool:
    """True when a value of the narrow type becomes one of the wide type unasked: as operands of `+` would."""
    if dt.is_bool(narrow):
        return False
    try:
        return dt.promote(narrow, wide) == wide
    except IRError:
        return False
