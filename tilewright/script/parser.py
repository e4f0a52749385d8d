"""A function of a script: parameters, body, root block."""
from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilewright.arith.axis_domains import departures
from tilewright.script.blocks import AXES, Blocks
from tilewright.script.constants import Table, filling
from tilewright.script.environment import Environment
from tilewright.script.frames import Around
from tilewright.script.source import TOO_DEEP, Source
from tilewright.script.values import BufferType, DType, Pointer
from tilewright.support.errors import ScriptError, StructuralError, described
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.node import walk
from tilewright.tir.returns import always_returns, last_returns
from tilewright.tir.stmt import BlockRealize, PrimFunc, Stmt, seq
from tilewright.tir.verify import verify


def parse_function(source: Source, node: ast.FunctionDef, outer: Environment,
                   annotations: Mapping[str, Any] | None = None, *, private: bool = False,
                   check_well_formed: bool = True) -> PrimFunc:
    """The PrimFunc that node describes, in an environment of names. Raises ScriptError.

    `annotations` are those of parameters that Python has evaluated already. The error comes without the calls of the
    parser: what is wrong is in the script.
    """
    try:
        return _Function(source, outer).function(node, annotations or {}, private, check_well_formed)
    except ScriptError as why:
        raise why.with_traceback(None) from None
    except RecursionError:
        raise source.error(node, *TOO_DEEP) from None


class _Function(Blocks):
    def function(self, node: ast.FunctionDef, annotations: Mapping[str, Any], private: bool, check: bool) -> PrimFunc:
        self.params: dict[Var, Buffer | None] = {}
        self.fillings: list[Stmt] = []
        self.pointers: dict[Var, Pointer] = {}           # parameters that state what they point to
        a = node.args
        for wrong in (a.vararg, a.kwarg, *a.kwonlyargs, *a.defaults):
            if wrong is not None:
                self.fail(wrong, "a kernel takes positional parameters without defaults")
        for arg in (*a.posonlyargs, *a.args):
            self.parameter(arg, annotations.get(arg.arg))
        body = self.suite(node.body)
        root = self.root
        top_is_root = isinstance(body, BlockRealize) and body.block.name == "root"
        blocks = any(isinstance(n, BlockRealize) for n in walk(body))
        if not top_is_root and (root.says_something or blocks):
            body = BlockRealize((), IntImm(1, "bool"), self.finished(root, body))
        attrs = ({} if private else {"global_symbol": node.name}) | self.attrs
        func = PrimFunc(tuple(self.params), body, {p: b for p, b in self.params.items() if b is not None}, attrs)
        if check:
            self.check(node, func, body)
            self.require_result(node, body, annotations.get("return"))
        return func

    def parameter(self, arg: ast.arg, known: Any) -> None:
        if arg.arg in self.names.scopes[-1]:
            self.fail(arg, f"there are two parameters {arg.arg}")
        if known is None or isinstance(known, str):
            if arg.annotation is None:
                self.fail(arg, f"the parameter {arg.arg} has no type", f'{arg.arg}: T.Buffer((16,), "float32"), '
                          f"{arg.arg}: T.int32 or {arg.arg}: T.handle")
            annotation = arg.annotation
            if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
                annotation = self.quoted(annotation, annotation.value)
            known = self.value(annotation)
        if isinstance(known, Var) and arg.annotation is not None:       # T.handle(...) says more as it is written
            known = self.value(arg.annotation)
        buffer = None
        if isinstance(known, BufferType):
            buffer = self.guard(arg, known.named, arg.arg)
            param = Var(arg.arg, "handle")
        elif isinstance(known, DType):
            param = Var(arg.arg, known.name)
        elif isinstance(known, Pointer):
            param = Var(arg.arg, "handle")
            self.pointers[param] = known
        else:
            self.fail(arg, f"the parameter {arg.arg} is annotated with no type of T",
                      'T.Buffer((16,), "float32"), T.int32, T.handle')
        self.params[param] = buffer
        self.names.define(arg.arg, param if buffer is None else buffer)

    def quoted(self, node: ast.AST, text: str) -> ast.expr:
        """The expression in an annotation that is a string; it stands where the string stands."""
        try:
            inner = ast.parse(text, mode="eval").body
        except SyntaxError:
            self.fail(node, f"{text!r} is no type")
        for n in ast.walk(inner):
            ast.copy_location(n, node)
        return inner

    def require_result(self, node: ast.FunctionDef, body: Stmt, known: Any) -> None:
        """What T.ret gives is of the dtype that the function states, if it states one."""
        if not always_returns(body):
            self.fail(node, "T.ret does not stand on every way through the function")
        found = next((r.args[0].dtype for r in last_returns(body)), None)
        if found is not None and (found == "handle" or dt.lanes_of(found) > 1):
            self.fail(node, f"T.ret gives {found}, and a function returns one number")
        if node.returns is None:
            return
        stated = self.value(node.returns) if known is None or isinstance(known, str) else known
        if isinstance(stated, DType) and stated.name != found:
            self.fail(node.returns, f"the function returns {found or 'nothing'}, not {stated.name}",
                      f'T.ret(T.Cast("{stated.name}", ...)) is the last thing that it does')

    def alias(self, node: ast.AST, kind: BufferType, name: str) -> Buffer:
        """A buffer in memory that there is. The first in that of a parameter is the parameter's buffer."""
        param = kind.data
        if isinstance(param, Table):
            buffer = self.guard(node, replace(kind, data=None).named, name)
            self.frame.allocated.append(buffer)
            self.fillings.append(self.guard(node, filling, param, buffer, self.block_names.fresh(name)))
            return buffer
        if not isinstance(param, Buffer) and not (isinstance(param, Var) and param.dtype == "handle"):
            self.fail(node, f"data={described(param)} is not the memory of a buffer",
                      f"{name} = T.Buffer(..., data=A.data)")
        if not isinstance(param, Var) or param not in self.params:
            return self.guard(node, kind.named, name)
        first = self.params[param]
        if first is not None:
            return self.guard(node, replace(kind, data=first).named, name)
        known = self.pointers.get(param, kind)
        if known.dtype != kind.dtype or known.scope != kind.scope:
            self.fail(node, f"{param.name} points to {known.dtype} in scope {known.scope}, "
                      f"not to {kind.dtype} in scope {kind.scope}")
        buffer = self.params[param] = self.guard(node, replace(kind, data=None).named, name)
        return buffer

    def filled(self, node: ast.AST) -> Around | None:
        """The block that stores the constants of the buffer that was just made, before all that follows."""
        if not self.fillings:
            return None
        block = self.at(node, self.fillings.pop())
        return Around(lambda body: seq([block, body]), node)

    def match_parameter(self, node: ast.AST, param: Any, buffer: Buffer) -> None:
        """A = T.match_buffer(a, ...) for a parameter a: T.handle."""
        if not isinstance(param, Var) or self.params.get(param, buffer) is not None or param.dtype != "handle":
            self.fail(node, "T.match_buffer takes a parameter of type T.handle that has no buffer yet, or a region")
        self.params[param] = buffer

    def block(self, node: ast.Call, body_of: Any) -> Stmt:
        first = node.args[0] if node.args else None
        if self.frame is self.root and isinstance(first, ast.Constant) and first.value == "root" and not self.origin:
            return BlockRealize((), self.root.predicate, self.finished(self.root, body_of()))
        return super().block(node, body_of)

    def check(self, node: ast.FunctionDef, func: PrimFunc, body: Stmt) -> None:
        """Raise ScriptError, at the statement in question, unless the function is well formed."""
        try:
            verify(func, "block" if isinstance(body, BlockRealize) else "loop")
        except StructuralError as why:
            where = next((self.origin[id(n)][1] for n in why.at if id(n) in self.origin), node)
            message = str(why).split("\n\n")[0].removeprefix(f"{func.name}: ")
            raise self.source.error(where, message) from None
        for left in departures(func):
            raise self.source.error(self.origin[id(left.axis.var)][1], str(left), left.hint)


_Function.rules = {
    ast.Assign: _Function.assign, ast.AnnAssign: _Function.annotated, ast.AugAssign: _Function.update,
    ast.Expr: _Function.expression, ast.For: _Function.loop, ast.While: _Function.repeat, ast.If: _Function.branch,
    ast.With: _Function.with_, ast.Pass: _Function.nothing, ast.Assert: _Function.asserted,
}
_Function.forms = {
    "reads": _Function.reads, "writes": _Function.writes, "where": _Function.where,
    "block_attr": _Function.block_attr, "func_attr": _Function.func_attr, "evaluate": _Function.evaluate,
    "vstore": _Function.vstore, "launch_thread": _Function.launched, "Assert": _Function.assertion,
    "attr": _Function.attr, "buffer_store": _Function.buffer_store,
}
_Function.definitions = {
    "alloc_buffer": _Function.alloc_buffer, "decl_buffer": _Function.allocation, "allocate": _Function.allocate,
    "allocate_const": _Function.allocate_const,
    "match_buffer": _Function.match_buffer, "launch_thread": _Function.launched, "env_thread": _Function.env_thread,
    "axis.remap": _Function.remap,
    "let": lambda p, node, target: p.let(target, p.target(target), p.let_value(node)),
    **{f"axis.{name}": lambda p, node, target, kind=kind: p.axis(node, target, kind) for name, kind in AXES.items()},
}
_Function.contexts = {
    "block": _Function.block, "init": _Function.init, "launch_thread": _Function.launch,
    "LetStmt": _Function.let_context, "let": _Function.let_context, "decl_buffer": _Function.allocation,
    "allocate": _Function.allocate, "Assert": _Function.assertion_context, "attr": _Function.attr,
}
