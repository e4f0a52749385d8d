"""`relax.BlockBuilder`: functions of bindings, made call by call."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tilewright.compat.relax.expr import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    as_expr,
)
from tilewright.compat.relax.ops import CALL_TIR, known
from tilewright.compat.relax.struct_info import RelaxExpr, ShapeExpr, StructInfo
from tilewright.compat.relax.te_calls import Traced
from tilewright.support.errors import GraphError, described
from tilewright.support.names import identifier
from tilewright.tir import IRModule, PrimFunc, structural_equal, structural_hash
from tilewright.tir.functions import BaseFunc, GlobalVar


class _Scope:
    """The blocks of a function, or of a sequence, that is being made."""

    def __init__(self, params: Sequence[Var]) -> None:
        self.params, self.blocks, self.dataflow = list(params), list[BindingBlock](), False

    def add(self, binding: VarBinding) -> None:
        kind = DataflowBlock if self.dataflow else BindingBlock
        if not self.blocks or type(self.blocks[-1]) is not kind:
            self.blocks.append(kind([]))
        self.blocks[-1].bindings.append(binding)


class BlockBuilder:
    """Makes functions of bindings and the module that holds them.

    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_te(topi.nn.relu, x)
            out = bb.emit_output(y)
        bb.emit_func_output(out)
    mod = bb.get()
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self._functions: dict[str, Any] = dict(mod.functions) if mod is not None else {}
        self._hashes = {structural_hash(f.with_attrs(global_symbol=None)): str(name)
                        for name, f in self._functions.items() if isinstance(f, PrimFunc)}
        self._scopes: list[_Scope] = []
        self._bindings: dict[Var, Any] = {}
        self._taken: set[str] = set()
        self._done: Function | None = None

    # functions ---------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def function(self, name: str, params: Any = None, attrs: Mapping[str, Any] | None = None,
                 private: bool = False) -> Iterator[BlockBuilder]:
        """Inside of the `with`, what is emitted belongs to the function of that name."""
        given = [params] if isinstance(params, Var) else list(params or [])
        if len(self._scopes) and self._done is None:
            raise GraphError(f"function({name!r}): another function is open", "functions are made one after the other")
        self._scopes.append(_Scope(given))
        outer, self._taken, self._done = self._taken, {p.name_hint for p in given}, None
        try:
            yield self
            made = self._done
            if made is None:
                raise GraphError(f"function({name!r}) ends without a result", "call emit_func_output(value)")
            symbol = {} if private else {"global_symbol": name}
            self._functions[GlobalVar(name)] = made.with_attr({**symbol, **(attrs or {})})
        finally:
            self._scopes.pop()
            self._taken, self._done = outer, None

    @contextlib.contextmanager
    def dataflow(self) -> Iterator[BlockBuilder]:
        """Inside of the `with`, bindings belong to a dataflow block."""
        scope = self._scope("dataflow")
        outer, scope.dataflow = scope.dataflow, True
        scope.blocks.append(DataflowBlock([]))
        try:
            yield self
        finally:
            scope.dataflow = outer

    @contextlib.contextmanager
    def testing_scope(self, def_vars: Sequence[Any] = ()) -> Iterator[BlockBuilder]:
        """Inside of the `with`, expressions can be emitted and looked at, to no function."""
        self._scopes.append(_Scope(()))
        try:
            yield self
        finally:
            self._scopes.pop()

    def emit(self, expr: Any, name_hint: str = "") -> Var:
        """A new variable that is bound to an expression."""
        scope = self._scope("emit")
        value = self.normalize(expr)
        kind = DataflowVar if scope.dataflow else Var
        var = kind(self.get_unique_name(name_hint or ("lv" if scope.dataflow else "gv")), value.struct_info_)
        return self._bind(VarBinding(var, value))

    def emit_output(self, output: Any, name_hint: str = "") -> Any:
        """A variable of the dataflow block that is known outside of it."""
        scope = self._scope("emit_output")
        if not scope.dataflow:
            raise GraphError("emit_output stands in no dataflow block", "write it inside of `with bb.dataflow():`")
        if isinstance(output, (list, tuple)):
            return Tuple([self.emit_output(x) for x in output])
        value = self.normalize(output)
        var = Var(self.get_unique_name(name_hint or "gv"), value.struct_info_)
        return self._bind(VarBinding(var, value))

    def emit_normalized(self, binding: VarBinding) -> Any:
        """Add a binding as it is."""
        return self._bind(binding)

    def match_cast(self, value: Any, struct_info: StructInfo, name_hint: str = "") -> Var:
        """A variable that is bound to a value, of which more is known."""
        scope = self._scope("match_cast")
        kind = DataflowVar if scope.dataflow else Var
        var = kind(self.get_unique_name(name_hint or ("lv" if scope.dataflow else "gv")), struct_info)
        return self._bind(MatchCast(var, self.normalize(value), struct_info))

    def emit_func_output(self, output: Any, params: Any = None) -> None:
        """End the function with its result."""
        scope = self._scope("emit_func_output")
        if params is not None:
            scope.params = [params] if isinstance(params, Var) else list(params)
        body = self.normalize(output)
        if isinstance(body, Call):
            body = self.emit(body)
        self._done = Function(scope.params, SeqExpr(scope.blocks, body), body.struct_info_)

    # calls -------------------------------------------------------------------------------------------------
    def call_te(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Call:
        """A call of the function of blocks that a te rule makes of expressions, which is added to the module."""
        hint = kwargs.pop("primfunc_name_hint", None)
        attrs = dict(kwargs.pop("primfunc_attrs", None) or {})
        made = Traced(func, args, kwargs)
        name = identifier(hint or getattr(func, "__name__", "te_func").strip("<>"))
        gvar = self.add_func(made.prim_func(name).with_attrs(**attrs), name)
        rest = [ShapeExpr(made.variables)] if made.variables else []
        return known(Call(CALL_TIR, [gvar, Tuple(made.inputs), *rest], {}, made.results))

    def emit_te(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Var:
        """A variable that is bound to call_te(func, ...)."""
        hint = kwargs.pop("name_hint", "")
        return self.emit(self.call_te(func, *args, **kwargs), hint)

    def normalize(self, expr: Any) -> Any:
        """An expression whose parts are variables, constants and tuples of them, with what is known of its value."""
        e = as_expr(expr)
        if isinstance(e, Tuple):
            return Tuple([self._part(f) for f in e.fields])
        if isinstance(e, TupleGetItem):
            return TupleGetItem(self._part(e.tuple_value), e.index) if isinstance(e.tuple_value, Call) else e
        if isinstance(e, Call):
            args = [self._part(a) for a in e.args]
            if any(a is not b for a, b in zip(args, e.args)):
                e = _with_args(e, args)
            if e.struct_info_ is None and isinstance(e.op, GlobalVar):
                callee = self._functions.get(e.op)
                e.struct_info_ = getattr(callee, "ret_struct_info", None)
            elif e.struct_info_ is None and isinstance(e.op, Function):
                e.struct_info_ = e.op.ret_struct_info
            return known(e)
        if not isinstance(e, RelaxExpr):
            raise GraphError(f"{described(expr)} is no expression of relax")
        return e

    def _part(self, e: Any) -> Any:
        if isinstance(e, Tuple):
            return self.normalize(e) if any(not _atomic(f) for f in e.fields) else e
        return e if _atomic(e) else self.emit(e)

    # the module --------------------------------------------------------------------------------------------
    def add_func(self, func: BaseFunc, func_name: str) -> GlobalVar:
        """Add a function under a name that is like the one given; a PrimFunc that is there already is that one."""
        if isinstance(func, PrimFunc):
            key = structural_hash(func.with_attrs(global_symbol=None))
            known = self._hashes.get(key)
            if known is not None and known in self._functions and structural_equal(
                    self._functions[known].with_attrs(global_symbol=None), func.with_attrs(global_symbol=None)):
                return GlobalVar(known)
        name, count = func_name, 0
        while name in self._functions:
            count += 1
            name = f"{func_name}{count}"
        if isinstance(func, PrimFunc):
            self._hashes[key] = name
            func = func.with_attrs(global_symbol=name) if "global_symbol" in func.attrs else func
        self._functions[GlobalVar(name)] = func
        return GlobalVar(name)

    def update_func(self, gv: str, updated_func: BaseFunc) -> None:
        """Put a function in the place of the one of that name."""
        if not isinstance(updated_func, BaseFunc):
            raise GraphError(f"update_func({gv!r}): {described(updated_func)} is no function")
        self._functions[GlobalVar(gv)] = updated_func

    def get(self) -> IRModule:
        """The module of the functions that were made."""
        return IRModule(dict(self._functions))

    finalize = get

    def get_unique_name(self, name_prefix: str) -> str:
        """A name that no variable of the function has."""
        name, count = name_prefix, 0
        while name in self._taken:
            count += 1
            name = f"{name_prefix}{count}"
        self._taken.add(name)
        return name

    def lookup_binding(self, var: Any) -> Any:
        """What a variable is bound to; None for a parameter."""
        return self._bindings.get(var)

    @property
    def bindings(self) -> Mapping[Var, Any]:
        """What each variable is bound to."""
        return self._bindings

    def function_of(self, name: str) -> BaseFunc | None:
        """The function of that name."""
        return self._functions.get(name)

    # what visitors use ---------------------------------------------------------------------------------------
    def begin(self, params: Sequence[Var]) -> _Scope:
        """Open a sequence of blocks."""
        self._scopes.append(_Scope(params))
        self._taken |= {p.name_hint for p in params}
        return self._scopes[-1]

    def end(self) -> list[BindingBlock]:
        """Close it: the blocks that have bindings."""
        return [b for b in self._scopes.pop().blocks if b.bindings]

    def take_names(self, names: set[str]) -> set[str]:
        """Take these names for taken, and no others; gives those that were."""
        old, self._taken = self._taken, set(names)
        return old

    def _bind(self, binding: VarBinding) -> Any:
        self._scope("emit").add(binding)
        self._bindings[binding.var] = binding.value
        self._taken.add(binding.var.name_hint)
        return binding.var

    def _scope(self, what: str) -> _Scope:
        if not self._scopes:
            raise GraphError(f"{what}: no function is open", "write it inside of `with bb.function(name, params):`")
        return self._scopes[-1]


def _atomic(e: Any) -> bool:
    return not isinstance(e, (Call, TupleGetItem)) and not isinstance(e, Tuple) or isinstance(e, (Constant, Var))


def _with_args(call: Call, args: Sequence[Any]) -> Call:
    made = Call(call.op, args, call.attrs, call.sinfo_args)
    made.attrs, made.struct_info_ = call.attrs, call.struct_info_
    return made
