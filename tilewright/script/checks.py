"""Assertions and attributes of a script, and T.buffer_store."""
from __future__ import annotations

import ast
from typing import Any

from tilewright.script.frames import Around
from tilewright.script.loops import EnvThread
from tilewright.script.stores import Stores
from tilewright.tir.assertion import assertion
from tilewright.tir.buffer import Buffer, load
from tilewright.tir.expr import Expr
from tilewright.tir.stmt import Evaluate, For, Stmt, seq

_THREAD_ATTRIBUTES = ("thread_extent", "virtual_thread")
_PRAGMA = "pragma_"


class Checks(Stores):
    def asserted(self, node: ast.Assert) -> Stmt | None:
        """assert condition, "message": now where the condition is known now, else when the kernel runs."""
        return self.checked(node, node.test, node.msg)

    def assertion(self, node: ast.Call) -> Stmt | None:
        """T.Assert(condition, "message") on a line of its own."""
        given = self.bound(node, ("condition", "message"), 1)
        return self.checked(node, given["condition"], given.get("message"))

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
        given = self.bound(node, ("buffer", "value", "indices", "predicate"), 3)
        buffer, indices = self.value(given["buffer"]), self.value(given["indices"])
        if not isinstance(buffer, Buffer):
            self.fail(given["buffer"], "T.buffer_store starts with a buffer", "T.buffer_store(B, value, [i, j])")
        at = self.guard(node, load, buffer, indices if isinstance(indices, (list, tuple)) else [indices])
        store = self.guard(node, self.store_value, buffer, at.indices, self.value(given["value"]))
        return store.replace(predicate=self.expr(given["predicate"])) if "predicate" in given else store

    def attr(self, node: ast.Call, target: ast.AST | None = None) -> Around:
        """T.attr(thread, "thread_extent", n): a loop bound to the thread; T.attr(0, "pragma_x", v): of a loop."""
        given = self.bound(node, ("node", "attr_key", "value"), 3)
        key = self.value(given["attr_key"])
        if key in _THREAD_ATTRIBUTES and isinstance(self.value(given["node"]), EnvThread):
            loop = ast.Call(node.func, [given["node"], given["value"]], [])
            return self.launch(ast.copy_location(loop, node), target)
        if not isinstance(key, str) or not key.startswith(_PRAGMA):
            self.fail(given["attr_key"], f"the attribute {key!r} has no meaning here",
                      'T.attr(T.env_thread("threadIdx.x"), "thread_extent", 32); "pragma_..." of a loop')
        value = self.value(given["value"])

        def wrap(body: Stmt) -> Any:
            if not isinstance(body, For):
                self.fail(node, f"the attribute {key!r} belongs to a loop", "with T.attr(...): for ...:")
            return body.replace(annotations={**body.annotations, key: value})
        return Around(wrap, node)
