"""Visitors and mutators of relax functions: `PyExprVisitor`, `PyExprMutator`."""
from __future__ import annotations

from typing import Any, TypeVar

from tilewright.compat.relax import expr as rx
from tilewright.compat.relax.builder import BlockBuilder
from tilewright.compat.relax.struct_info import ShapeExpr, StructInfo
from tilewright.support.errors import ArgumentError, described
from tilewright.tir import IRModule
from tilewright.tir.functions import GlobalVar

C = TypeVar("C", bound=type)
# of each class of nodes: the method that visits it, most special first
_METHODS: dict[type, str] = {
    rx.Constant: "constant", rx.Tuple: "tuple", rx.DataflowVar: "dataflow_var", rx.Var: "var", ShapeExpr: "shape_expr",
    rx.ExternFunc: "extern_func", GlobalVar: "global_var", rx.Function: "function", rx.Call: "call",
    rx.SeqExpr: "seq_expr", rx.If: "if", rx.TupleGetItem: "tuple_getitem", rx.PrimValue: "prim_value",
    rx.DataTypeImm: "data_type_imm", rx.StringImm: "string_imm",
}


def _method(e: Any) -> str:
    for kind, name in _METHODS.items():
        if isinstance(e, kind):
            return f"visit_{name}_"
    return "visit_op_"


def visitor(cls: C) -> C:
    """Decorator of a class that visits expressions."""
    if not isinstance(cls, type):
        raise ArgumentError(f"relax.expr_functor.visitor stands on a class, not on {described(cls)}")
    return cls


mutator = visitor


class PyExprVisitor:
    """Visits every expression of a function once; methods visit_call_, visit_var_, ... may be one's own."""

    def visit_expr(self, expr: Any) -> None:
        """Visit an expression by the method of its class."""
        getattr(self, _method(expr), self.visit_op_)(expr)

    def visit_call_(self, op: Any) -> None:
        self.visit_expr(op.op)
        for a in op.args:
            self.visit_expr(a)

    def visit_tuple_(self, op: Any) -> None:
        for f in op.fields:
            self.visit_expr(f)

    def visit_tuple_getitem_(self, op: Any) -> None:
        self.visit_expr(op.tuple_value)

    def visit_function_(self, op: Any) -> None:
        for p in op.params:
            self.visit_var_def(p)
        self.visit_expr(op.body)

    def visit_seq_expr_(self, op: Any) -> None:
        for block in op.blocks:
            self.visit_binding_block(block)
        self.visit_expr(op.body)

    def visit_if_(self, op: Any) -> None:
        for e in (op.cond, op.true_branch, op.false_branch):
            self.visit_expr(e)

    def visit_op_(self, op: Any) -> None:
        """Visit what has no parts."""

    visit_var_ = visit_dataflow_var_ = visit_constant_ = visit_shape_expr_ = visit_extern_func_ = visit_op_
    visit_global_var_ = visit_prim_value_ = visit_string_imm_ = visit_data_type_imm_ = visit_op_

    def visit_binding_block(self, block: Any) -> None:
        """Visit a block by the method of its class."""
        flow = isinstance(block, rx.DataflowBlock)
        (self.visit_dataflow_block_ if flow else self.visit_binding_block_)(block)

    def visit_binding_block_(self, block: Any) -> None:
        for b in block.bindings:
            self.visit_binding(b)

    visit_dataflow_block_ = visit_binding_block_

    def visit_binding(self, binding: Any) -> None:
        """Visit a binding by the method of its class."""
        (self.visit_match_cast_ if isinstance(binding, rx.MatchCast) else self.visit_var_binding_)(binding)

    def visit_var_binding_(self, binding: Any) -> None:
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    visit_match_cast_ = visit_var_binding_

    def visit_var_def(self, var: Any) -> None:
        """Visit the place where a variable is bound."""


class PyExprMutator:
    """Rewrites functions: visit_call_, visit_var_binding_, ... may be one's own; `builder_` makes the new ones."""

    def __init__(self, mod: IRModule | None = None) -> None:
        self.builder_ = BlockBuilder(mod)
        self._renamed: dict[Any, Any] = {}

    def visit_expr(self, expr: Any) -> Any:
        """What an expression becomes, by the method of its class."""
        method = getattr(self, _method(expr), None)
        return expr if method is None else method(expr)

    def visit_expr_post_order(self, expr: Any) -> Any:
        """expr, of what its parts become."""
        if isinstance(expr, rx.Call):
            op = self.visit_expr(expr.op) if isinstance(expr.op, (rx.Var, rx.Function)) else expr.op
            args = [self.visit_expr(a) for a in expr.args]
            if op is expr.op and all(a is b for a, b in zip(args, expr.args)):
                return expr
            made = rx.Call(op, args, None, expr.sinfo_args)
            made.attrs = expr.attrs
            return made
        if isinstance(expr, rx.Tuple):
            fields = [self.visit_expr(f) for f in expr.fields]
            return expr if all(a is b for a, b in zip(fields, expr.fields)) else rx.Tuple(fields)
        if isinstance(expr, rx.TupleGetItem):
            value = self.visit_expr(expr.tuple_value)
            return expr if value is expr.tuple_value else rx.TupleGetItem(value, expr.index)
        if isinstance(expr, rx.If):
            return rx.If(self.visit_expr(expr.cond), self.visit_with_new_scope(expr.true_branch),
                         self.visit_with_new_scope(expr.false_branch))
        if isinstance(expr, rx.SeqExpr):
            return self._sequence(expr)
        if isinstance(expr, rx.Function):
            return self._function(expr)
        return self._renamed.get(expr, expr) if isinstance(expr, rx.Var) else expr

    def visit_call_(self, op: Any) -> Any:
        return self.visit_expr_post_order(op)

    def visit_var_(self, op: Any) -> Any:
        return self._renamed.get(op, op)

    def visit_dataflow_var_(self, op: Any) -> Any:
        return self._renamed.get(op, op)

    def visit_constant_(self, op: Any) -> Any:
        return op

    def visit_function_(self, op: Any) -> Any:
        return self._function(op)

    def visit_seq_expr_(self, op: Any) -> Any:
        return self._sequence(op)

    def visit_tuple_(self, op: Any) -> Any:
        return self.visit_expr_post_order(op)

    def visit_tuple_getitem_(self, op: Any) -> Any:
        return self.visit_expr_post_order(op)

    def visit_if_(self, op: Any) -> Any:
        return self.visit_expr_post_order(op)

    def _function(self, f: Any) -> Any:
        names = self.builder_.take_names({p.name_hint for p in f.params} | _names(f.body))
        params = [self.visit_var_def(p) for p in f.params]
        body = self.visit_with_new_scope(f.body, params)
        self.builder_.take_names(names)
        if body is f.body and all(a is b for a, b in zip(params, f.params)):
            return f
        return f.replace(params=params, body=body, ret_struct_info=body.struct_info_ or f.ret_struct_info)

    def visit_with_new_scope(self, expr: Any, params: Any = ()) -> Any:
        """What an expression becomes, with the bindings that this takes around it."""
        self.builder_.begin(params)
        new = self.visit_expr(expr)
        if isinstance(new, rx.SeqExpr):
            self.builder_.end()
            return new
        new = self.builder_.normalize(new)
        blocks = self.builder_.end()
        return rx.SeqExpr(blocks, new)

    def _sequence(self, s: Any) -> Any:
        self.builder_.begin(())
        for block in s.blocks:
            self.visit_binding_block(block)
        body = self.builder_.normalize(self.visit_expr(s.body))
        return rx.SeqExpr(self.builder_.end(), body)

    def visit_binding_block(self, block: Any) -> None:
        """Emit what a block becomes, by the method of its class."""
        flow = isinstance(block, rx.DataflowBlock)
        (self.visit_dataflow_block_ if flow else self.visit_binding_block_)(block)

    def visit_binding_block_(self, block: Any) -> None:
        for b in block.bindings:
            self.visit_binding(b)

    def visit_dataflow_block_(self, block: Any) -> None:
        with self.builder_.dataflow():
            for b in block.bindings:
                self.visit_binding(b)

    def visit_binding(self, binding: Any) -> None:
        """Emit what a binding becomes, by the method of its class."""
        (self.visit_match_cast_ if isinstance(binding, rx.MatchCast) else self.visit_var_binding_)(binding)

    def visit_var_binding_(self, binding: Any) -> None:
        value = self.builder_.normalize(self.visit_expr(binding.value))
        var = self._fitting(binding.var, value.struct_info_)
        self.builder_.emit_normalized(rx.VarBinding(var, value))

    def visit_match_cast_(self, binding: Any) -> None:
        value = self.builder_.normalize(self.visit_expr(binding.value))
        self.builder_.emit_normalized(rx.MatchCast(self.visit_var_def(binding.var), value, binding.struct_info))

    def visit_var_def(self, var: Any) -> Any:
        """What a variable becomes where it is bound."""
        return self._renamed.get(var, var)

    def _fitting(self, var: Any, info: StructInfo | None) -> Any:
        """The variable for a value of which this is known."""
        var = self.visit_var_def(var)
        if info is None or (var.struct_info_ is not None and var.struct_info_ == info):
            return var
        new = type(var)(var.name_hint, info)
        self._renamed[var] = new
        return new

    def lookup_binding(self, var: Any) -> Any:
        """What a variable is bound to in the new function; None for a parameter."""
        return self.builder_.lookup_binding(var)

    def set_var_remap(self, vid: Any, var: Any) -> None:
        """Let a variable become another one."""
        self._renamed[vid] = var

    def get_var_remap(self, vid: Any) -> Any:
        return self._renamed[vid]

    def with_struct_info(self, var: Any, struct_info: StructInfo) -> Any:
        """A variable like this one, of which something else is known."""
        return var if var.struct_info_ == struct_info else type(var)(var.name_hint, struct_info)


def _names(body: Any) -> set[str]:
    return {b.var.name_hint for block in getattr(body, "blocks", ()) for b in block.bindings}


def post_order_visit(expr: Any, fvisit: Any) -> None:
    """fvisit(e) of every expression in expr, parts first."""
    class Visit(PyExprVisitor):
        def visit_expr(self, expr: Any) -> None:
            super().visit_expr(expr)
            fvisit(expr)
    Visit().visit_expr(expr)


NAMES: dict[str, Any] = {"PyExprVisitor": PyExprVisitor, "PyExprMutator": PyExprMutator}
FUNCTOR: dict[str, Any] = {**NAMES, "visitor": visitor, "mutator": mutator, "ExprVisitor": PyExprVisitor,
                           "ExprMutator": PyExprMutator}
