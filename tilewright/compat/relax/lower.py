"""Functions of relax as functions of the graph: bindings become calls, functions that are called become part of the
caller, functions of blocks become kernels."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.compat.relax import expr as rx
from tilewright.compat.relax.kernels import extern_of, kernel
from tilewright.compat.relax.ops import CALL_DPS, CALL_PACKED, CALL_TIR, OPS, RelaxOp, row_of
from tilewright.compat.relax.sizes import Sizes
from tilewright.compat.relax.struct_info import (
    ShapeExpr,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tilewright.graph.ir.rebuild import Rebuild
from tilewright.graph.ir.regions import If
from tilewright.graph.ir.types import TensorType
from tilewright.graph.ir.values import Call, Function, Value, call, constant
from tilewright.support.errors import GraphError, described
from tilewright.support.names import NameSupply, identifier
from tilewright.tir import IRModule, PrimFunc
from tilewright.tir.functions import GlobalVar

Nested = Any                                  # a Value, a list of Nested, or the tuple of extents that a shape is


class Lowered:
    """A function of the graph with the forms of its parameters and of its result: numbers, and lists of them."""

    def __init__(self, function: Function, params: list[Nested], result: Nested) -> None:
        self.function, self.params, self.result = function, params, result

    def flat(self, args: Sequence[Any]) -> list[Any]:
        """The arguments of the graph's function. Raises GraphError where their form is another."""
        if len(args) != len(self.params):
            raise GraphError(f"{self.function.name} takes {len(self.params)} argument(s), {len(args)} are given")
        found: list[Any] = [None] * len(self.function.params)

        def take(form: Nested, given: Any) -> None:
            if not isinstance(form, list):
                found[form] = given
            elif not isinstance(given, (list, tuple)) or len(given) != len(form):
                raise GraphError(f"{self.function.name}: a tuple of {len(form)} is needed, not {described(given)}")
            else:
                for f, g in zip(form, given):
                    take(f, g)
        take(self.params, list(args))
        return found

    def result_of(self, results: Any) -> Any:
        """The result in its form, from the results of the graph's function."""
        flat = results if isinstance(results, tuple) else (results,)

        def made(form: Nested) -> Any:
            return [made(f) for f in form] if isinstance(form, list) else flat[form]
        return made(self.result)


def lower(mod: IRModule, name: str) -> Lowered:
    """The function of that name. Raises GraphError for what the graph does not have."""
    return _Lowering(mod, name).lowered()


class _Lowering:
    def __init__(self, mod: IRModule, name: str) -> None:
        self.mod, self.name, self.sizes = mod, name, Sizes()
        self.function: rx.Function = mod[name]
        self.calls: list[Call] = []
        self.names = NameSupply()
        self.constants: dict[int, Value] = {}
        self.active: list[Any] = []
        self.env: dict[Any, Nested] = {}

    def lowered(self) -> Lowered:
        flat: list[Value] = []
        forms = [self.parameter(p.struct_info_, p.name_hint, flat, p) for p in self.function.params]
        result = self.body(self.function)
        leaves: list[Value] = []

        def form(x: Nested) -> Nested:
            if isinstance(x, list):
                return [form(y) for y in x]
            if not isinstance(x, Value):
                raise GraphError(f"{self.name}: the result is a shape", "shapes are read from tensors")
            leaves.append(x)
            return len(leaves) - 1
        shape = form(result)
        attrs = {k: v for k, v in self.function.attrs.items() if isinstance(v, (str, int, float, bool))}
        return Lowered(Function(self.name, tuple(flat), tuple(self.calls), tuple(leaves), attrs=attrs), forms, shape)

    def parameter(self, info: StructInfo | None, name: str, flat: list[Value], var: Any = None) -> Nested:
        """The form of a parameter; its values go to flat, and to the environment under var."""
        if isinstance(info, TupleStructInfo):
            at = len(flat)
            forms = [self.parameter(f, f"{name}_{k}", flat) for k, f in enumerate(info.fields)]
            self.env[var] = _nested(info, iter(flat[at:]))
            return forms
        if isinstance(info, TensorStructInfo) and info.dims is None and info.ndim >= 0:
            dims = [self.sizes.fresh(f"{name}_{k}") for k in range(info.ndim)]
            t = TensorType.of(dims, info.dtype or "float32")
        else:
            t = self.sizes.type(info, f"{self.name}: the parameter {name}")
        flat.append(Value(t, self.names.fresh(identifier(name))))
        if var is not None:
            self.env[var] = flat[-1]
        return len(flat) - 1

    def body(self, f: rx.Function) -> Nested:
        if any(f is a for a in self.active):
            raise GraphError(f"{self.name}: a function calls itself", "write a loop over it in Python")
        self.active.append(f)
        result = self.sequence(f.body)
        self.active.pop()
        return result

    def sequence(self, s: Any) -> Nested:
        for block in getattr(s, "blocks", ()):
            for b in block.bindings:
                self.env[b.var] = self.value(b.value, b.var.name_hint)
                if isinstance(b, rx.MatchCast):
                    self.match(b)
        return self.value(s.body if isinstance(s, rx.SeqExpr) else s)

    def match(self, b: rx.MatchCast) -> None:
        """What is stated of a value holds for the value."""
        value, stated = self.env[b.var], b.struct_info
        if isinstance(value, Value) and isinstance(stated, TensorStructInfo) and stated.dims is not None:
            wanted = self.sizes.type(stated, f"{self.name}: {b.var.name_hint}")
            if wanted != value.type:
                raise GraphError(f"{self.name}: match_cast of {value.type} to {wanted}",
                                 "sizes are known by the parameters of a function alone")

    # expressions -------------------------------------------------------------------------------------------
    def value(self, e: Any, name: str = "lv") -> Nested:
        """What an expression is."""
        if isinstance(e, rx.Var):
            if e not in self.env:
                raise GraphError(f"{self.name}: nothing binds {e.name_hint} before it is used")
            return self.env[e]
        if isinstance(e, rx.Constant):
            return self.constants.setdefault(id(e.data), constant(e.array, self.names.fresh("const")))
        if isinstance(e, rx.Tuple):
            return [self.value(f) for f in e.fields]
        if isinstance(e, rx.TupleGetItem):
            return self.value(e.tuple_value)[e.index]
        if isinstance(e, ShapeExpr):
            return tuple(map(self.sizes.dim, e))
        if isinstance(e, rx.Call):
            return self.call(e, name)
        if isinstance(e, rx.If):
            return self.choice(e, name)
        if isinstance(e, (rx.SeqExpr, rx.Function)):
            return self.sequence(e) if isinstance(e, rx.SeqExpr) else e
        raise GraphError(f"{self.name}: {described(e)} cannot be compiled", "calls, tuples and constants can")

    def choice(self, e: rx.If, name: str) -> Nested:
        """One of two branches, as functions of what they read."""
        condition, made = self.value(e.cond), []
        for branch in (e.true_branch, e.false_branch):
            outer, self.calls, env = self.calls, [], dict(self.env)
            result = self.sequence(branch)
            made.append((self.calls, result))
            self.calls, self.env = outer, env
        read = list(dict.fromkeys(v for calls, result in made for v in outside(calls, result)))
        then, orelse = (branch_function(f"{self.name}_{word}", calls, result, read)
                        for word, (calls, result) in zip(("then", "else"), made))
        return self.emit(If(then, orelse), [condition, *read], name)

    def call(self, c: rx.Call, name: str) -> Nested:
        if c.op in (CALL_TIR, CALL_DPS):
            return self.called_with_results(c, name)
        if c.op == CALL_PACKED or isinstance(c.op, rx.ExternFunc):
            func, *rest = c.args if c.op == CALL_PACKED else [c.op, *c.args]
            return self.emit(extern_of(func.global_symbol, self.results(c), gives=True), self.tensors(rest), name)
        if isinstance(c.op, RelaxOp) and c.op in OPS:
            op, inputs = row_of(c.op).native([self.value(a) for a in c.args], c.attrs, self.sizes)
            return self.emit(op, inputs, name)
        callee = self.callee(c)
        outer, self.env = self.env, dict(zip(callee.params, [self.value(a) for a in c.args], strict=True))
        result = self.body(callee)
        self.env = outer
        return result

    def callee(self, c: rx.Call) -> rx.Function:
        found = c.op
        if isinstance(found, GlobalVar):
            found = self.mod[found]
        elif isinstance(found, rx.Var):
            found = self.env.get(found)
        if not isinstance(found, rx.Function):
            raise GraphError(f"{self.name}: the call of {described(c.op)} cannot be compiled",
                             "operators, functions of the module and packed functions can be called")
        if len(found.params) != len(c.args):
            raise GraphError(f"{self.name}: {found.name} takes {len(found.params)} argument(s), {len(c.args)} are "
                             "given")
        return found

    def called_with_results(self, c: rx.Call, name: str) -> Nested:
        func, args, *rest = c.args
        inputs, results = self.tensors(args.fields), self.results(c)
        if isinstance(func, rx.ExternFunc):
            return self.emit(extern_of(func.global_symbol, results), inputs, name)
        prim = self.mod[func]
        if not isinstance(prim, PrimFunc):
            raise GraphError(f"{self.name}: call_tir of {func}, which is no PrimFunc")
        sizes = [d for e in rest for d in self.value(e)]
        return self.emit(kernel(self.name, str(func), prim, [v.type for v in inputs], results, sizes), inputs, name)

    def tensors(self, exprs: Sequence[Any]) -> list[Value]:
        found: list[Value] = []
        for e in exprs:
            v = self.value(e)
            found += v if isinstance(v, list) else [v]
        for v in found:
            if not isinstance(v, Value):
                raise GraphError(f"{self.name}: {described(v)} is no tensor")
        return found

    def results(self, c: rx.Call) -> list[TensorType]:
        return [self.sizes.type(i, f"{self.name}: the result of a call") for i in c.sinfo_args]

    def emit(self, callee: Any, inputs: Sequence[Value], name: str) -> Nested:
        made = call(callee, inputs)
        for v in made.results:
            v.name = self.names.fresh(identifier(name))
        self.calls.append(made)
        return made.results[0] if len(made.results) == 1 else list(made.results)


def _leaves(x: Nested) -> list[Value]:
    return [v for y in x for v in _leaves(y)] if isinstance(x, list) else [x]


def outside(calls: Sequence[Call], result: Nested) -> list[Value]:
    """The values that calls and a result read, and that neither the calls nor constants are."""
    own = {v for c in calls for v in c.results}
    used = [*(v for c in calls for v in c.inputs), *_leaves(result)]
    return [v for v in dict.fromkeys(used) if v not in own and not v.is_constant]


def branch_function(name: str, calls: Sequence[Call], result: Nested, read: Sequence[Value]) -> Function:
    """The function (read) -> result of calls."""
    new = Rebuild()
    new.map.update((v, Value(v.type, v.name)) for v in read)
    for c in calls:
        made = new.emit_all(c.callee, [new[v] for v in c.inputs], [v.name for v in c.results])
        new.map.update(zip(c.results, made, strict=True))
    return Function(name, tuple(new.map[v] for v in read), tuple(new.calls), tuple(new[v] for v in _leaves(result)))


def _nested(info: StructInfo, values: Any) -> Nested:
    return [_nested(f, values) for f in info.fields] if isinstance(info, TupleStructInfo) else next(values)
