"""Definitions of a script: variables, views and allocations."""
from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from tilewright.script.constants import table
from tilewright.script.environment import LET, UNBOUND
from tilewright.script.frames import Around
from tilewright.script.macros import Macros
from tilewright.script.operators import is_expression, is_number
from tilewright.script.suites import ONE_ELEMENT
from tilewright.script.values import BufferType, DType, Fresh, Meta, Pointer, buffer_type, typed
from tilewright.tir.buffer import Buffer, BufferRegion, MatchBuffer, whole_region
from tilewright.tir.conversion import convert
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.stmt import Allocate, LetStmt, Stmt


class Variables(Macros):
    def assign(self, node: ast.Assign) -> Stmt | Around | None:
        if len(node.targets) != 1:
            self.fail(node, "one assignment has one target")
        target, form = node.targets[0], self.form(node.value)
        if form:
            rule = self.definitions.get(form)
            if rule is None:
                self.fail(node.value, f"T.{form} has no value to assign", self.usage(form))
            return rule(self, node.value, target)
        if isinstance(target, ast.Subscript):
            return self.store(target, self.value(node.value))
        if isinstance(target, (ast.Tuple, ast.List)):
            return self.several(node, target)
        return self.bind(target, self.value(node.value))

    def store(self, target: ast.Subscript, value: Any) -> Stmt:
        raise NotImplementedError

    def several(self, node: ast.Assign, target: ast.Tuple | ast.List) -> Around | None:
        """a, b = x, y."""
        values = self.value(node.value)
        if not isinstance(values, (tuple, list)) or len(values) != len(target.elts):
            count = len(values) if isinstance(values, (tuple, list)) else 1
            self.fail(node, f"{len(target.elts)} names on the left, {count} value(s) on the right")
        around = [w for t, x in zip(target.elts, values, strict=True) if (w := self.bind(t, x)) is not None]

        def wrap(body: Stmt) -> Stmt:
            for w in reversed(around):
                body = self.at(node, w.wrap(body))
            return body
        return Around(wrap, node) if around else None

    def annotated(self, node: ast.AnnAssign) -> Around | None:
        """x: T.int32 = e."""
        stated = self.value(node.annotation)
        dtype = DType("handle") if isinstance(stated, Pointer) else stated
        if not isinstance(dtype, DType):
            self.fail(node.annotation, "the annotation of a variable is its type", "x: T.int32 = ...")
        if node.value is None:
            return self.bind(node.target, Fresh(dtype.name))
        value = self.expr(node.value, dtype.name)
        if value.dtype != dtype.name:
            self.fail(node.value, f"the variable is {dtype.name}, its value is {value.dtype}",
                      f'T.Cast("{dtype.name}", ...)')
        return self.bind(node.target, value)

    def target(self, node: ast.AST | None, call: ast.AST | None = None) -> str:
        """The name that a definition gives; call: what it defines, which may stand there without a name."""
        if isinstance(node, ast.Name):
            return node.id
        if node is not None or call is None:
            self.fail(node or ast.Pass(), "a definition gives one name")
        self.fail(call, f"{ast.unparse(call)[:60]} has no name", f"with {ast.unparse(call)[:60]} as x:")

    def bind(self, node: ast.AST, x: Any) -> Around | None:
        """name = x: a new variable for a value, another name for anything else."""
        name = self.target(node)
        if isinstance(x, Fresh):
            self.names.define(name, Var(name, x.dtype), UNBOUND)
        elif isinstance(x, Meta):
            self.names.define(name, x.value)
        elif isinstance(x, BufferType):
            if x.data is None:
                self.fail(node, f"nothing says where the memory of {name} is", "T.alloc_buffer(...) allocates; "
                          "T.Buffer(..., data=A.data) is another view of A")
            self.names.define(name, self.alias(node, x, name))
            return self.filled(node)
        elif is_expression(x) or is_number(x):
            if self.names.is_outer_variable(name):
                self.fail(node, f"the variable {name} is bound outside; to bind it here would not change it there",
                          ONE_ELEMENT)
            return self.let(node, name, self.guard(node, convert, x))
        else:
            self.names.define(name, x)
        return None

    def let(self, node: ast.AST, name: str, value: Expr) -> Around:
        v = Var(name, value.dtype)
        self.names.define(name, v, LET)
        return Around(lambda body: LetStmt(v, value, body), node)

    # forms -------------------------------------------------------------------------------------------------
    def let_value(self, node: ast.Call) -> Expr:
        """T.LetStmt(value)."""
        return self.expr(self.bound(node, ("value",), 1)["value"])

    def let_of_variable(self, node: ast.Call) -> tuple[ast.AST | None, Expr]:
        """(variable, value) of T.LetStmt(value), T.LetStmt(value, var=x) and T.let(x, value); x is an `x = T.int32()`
        that nothing has bound."""
        first_is_variable = self.form(node) == "let" and len(node.args) == 2
        arguments = self.bound(node, ("var", "value") if first_is_variable else ("value", "var"), 1 + first_is_variable)
        if "var" not in arguments:
            return None, self.let_value(node)
        target = arguments["var"]
        x = self.value(target)
        if not isinstance(target, ast.Name) or not isinstance(x, Var) or not self.names.is_unbound(target.id):
            self.fail(target, f"{ast.unparse(target)} is no variable that is still to be bound", "x = T.int32()")
        value = self.expr(arguments["value"], x.dtype)
        if value.dtype != x.dtype:
            self.fail(arguments["value"], f"the variable is {x.dtype}, its value is {value.dtype}",
                      f'T.Cast("{x.dtype}", ...)')
        return target, value

    def buffer_arguments(self, node: ast.Call) -> tuple[BufferType, dict[str, Any]]:
        """The type in T.alloc_buffer(...), T.decl_buffer(...), and the annotations."""
        args, kwargs = self.arguments(node)
        annotations = kwargs.pop("annotations", None) or {}
        return self.guard(node, typed, ast.unparse(node.func), args, kwargs), annotations

    def allocated(self, node: ast.AST, kind: BufferType, name: str) -> Buffer:
        """The buffer of new memory, which starts at its first element where the offset is not said."""
        if kind.data is not None:
            self.fail(node, f"{name} has memory of its own, and data= is memory that there is",
                      "T.decl_buffer(..., data=A.data) is another view of A")
        if isinstance(kind.elem_offset, Fresh):
            kind = replace(kind, elem_offset=None)
        for what, e in (*(("stride", e) for e in kind.strides), ("offset", kind.elem_offset)):
            if isinstance(e, IntImm) and e.value < 0 or isinstance(e, int) and e < 0:
                self.fail(node, f"the {what} {e} of {name} leads out of its memory")
        return self.guard(node, kind.named, name)

    def alloc_buffer(self, node: ast.Call, target: ast.AST) -> None:
        """name = T.alloc_buffer(...): memory of the block around."""
        name = self.target(target)
        kind, annotations = self.buffer_arguments(node)
        if annotations:
            self.fail(node, "T.alloc_buffer takes no annotations")
        buffer = self.allocated(node, kind, name)
        self.frame.allocated.append(buffer)
        self.names.define(name, buffer)

    def allocation(self, node: ast.Call, target: ast.AST | None) -> Around | None:
        """name = T.decl_buffer(...): memory from here on; with data=, another view of memory that there is."""
        name = self.target(target, node)
        kind, annotations = self.buffer_arguments(node)
        if kind.data is not None:
            self.names.define(name, self.alias(node, kind, name))
            return self.filled(node)
        buffer = self.allocated(node, kind, name)
        self.names.define(name, buffer)
        return Around(lambda body: Allocate(buffer, body, annotations), node)

    def allocate_const(self, node: ast.Call, target: ast.AST) -> None:
        """name = T.allocate_const(data, dtype, extents): constants; T.Buffer(shape, dtype, data=name) reads them."""
        if len(node.args) < 3 and any(k.arg == "shape" for k in node.keywords):           # its name up to 0.10
            keywords = [ast.keyword("extents", k.value) if k.arg == "shape" else k for k in node.keywords]
            node = ast.copy_location(ast.Call(node.func, node.args, keywords), node)
        arguments = self.bound(node, ("data", "dtype", "extents", "annotations"), 3)
        values = [self.value(arguments[name]) for name in ("data", "dtype", "extents")]
        self.names.define(self.target(target), self.guard(node, table, *values))

    def alias(self, node: ast.AST, kind: BufferType, name: str) -> Buffer:
        raise NotImplementedError

    def filled(self, node: ast.AST) -> Around | None:
        """The statement that fills the buffer that was put over constants last, before all that follows."""
        raise NotImplementedError

    def allocate(self, node: ast.Call, target: ast.AST | None) -> Around:
        """name = T.allocate([extents], dtype, scope): memory that T.Buffer(..., data=name) gives a shape."""
        name = self.target(target, node)
        arguments = self.bound(node, ("extents", "dtype", "scope", "condition", "annotations"), 2)
        if "condition" in arguments:
            self.fail(arguments["condition"], "T.allocate under a condition is not supported")
        scope = self.value(arguments["scope"]) if "scope" in arguments else "global"
        annotations = self.value(arguments["annotations"]) if "annotations" in arguments else {}
        kind = self.guard(node, buffer_type, self.value(arguments["extents"]),
                          self.value(arguments["dtype"]), scope=scope)
        buffer = self.guard(node, kind.named, name)
        self.names.define(name, buffer)
        return Around(lambda body: Allocate(buffer, body, annotations), node)

    def match_buffer(self, node: ast.Call, target: ast.AST) -> None:
        """name = T.match_buffer(x, shape, ...): the buffer behind a parameter, or a view of a region."""
        name = self.target(target)
        if not node.args:
            self.fail(node, "T.match_buffer starts with a parameter or a region", "A = T.match_buffer(a, (16, 16))")
        first, rest = node.args[0], ast.copy_location(ast.Call(node.func, node.args[1:], node.keywords), node)
        source = self.region(first) if isinstance(first, ast.Subscript) else self.value(first)
        buffer = self.guard(node, self.buffer_arguments(rest)[0].named, name)
        if isinstance(source, (Buffer, BufferRegion)):
            region = whole_region(source) if isinstance(source, Buffer) else source
            self.frame.matched.append(MatchBuffer(buffer, region))
        else:
            self.match_parameter(first, source, buffer)
        self.names.define(name, buffer)

    def match_parameter(self, node: ast.AST, param: Any, buffer: Buffer) -> None:
        raise NotImplementedError

    def region(self, node: ast.Subscript) -> BufferRegion:
        raise NotImplementedError
