"""`relax.transform`: passes over modules of relax functions."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.compat.pass_context import PassContext
from tilewright.compat.pass_objects import ModulePass, Sequential
from tilewright.compat.relax import expr as rx
from tilewright.compat.relax.analysis import all_global_vars, remove_all_unused
from tilewright.compat.relax.bind import bind_params
from tilewright.compat.relax.functor import PyExprMutator
from tilewright.compat.relax.fuse_ops import annotate_pattern, fuse_ops, fuse_ops_by_pattern
from tilewright.compat.relax.fuse_tir import fuse_tir
from tilewright.compat.relax.lower import lower
from tilewright.compat.relax.ops import OPS, RelaxOp
from tilewright.compat.relax.struct_info import ShapeExpr
from tilewright.graph.compile import build_function
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import ArgumentError, GraphError, described
from tilewright.tir import IRModule

Rewrite = Callable[[IRModule], IRModule]


def _pass(name: str, rewrite: Rewrite) -> ModulePass:
    return ModulePass(lambda mod, context: rewrite(mod), name)


def _each(mod: IRModule, f: Callable[[rx.Function], rx.Function]) -> IRModule:
    return IRModule({name: f(func) if isinstance(func, rx.Function) else func for name, func in mod.functions.items()})


class _Legalize(PyExprMutator):
    def __init__(self, mod: IRModule, own: Mapping[str, Callable[[Any, Any], Any]]) -> None:
        super().__init__(mod)
        self.own = own

    def visit_call_(self, op: Any) -> Any:
        call = self.visit_expr_post_order(op)
        if not isinstance(call.op, RelaxOp):
            return call
        if call.op in self.own:
            return self.own[call.op](self.builder_, call)
        row = OPS.get(call.op)
        if row is None:
            return call
        found = row.uses(**dict(zip(row.exprs, call.args)), **call.attrs)
        hint = call.op.rpartition(".")[2]
        return self.builder_.call_te(found.rule, *found.args, primfunc_name_hint=hint, **found.kwargs)


def LegalizeOps(customize_legalize_map: Mapping[str, Any] | None = None, enable_warning: bool = False,
                **options: Any) -> ModulePass:
    """Operators become functions of blocks: those of the map by its functions of (builder, call), others by their
    rules."""
    own = dict(customize_legalize_map or {})

    def run(mod: IRModule) -> IRModule:
        work = _Legalize(mod, own)
        for name, func in mod.functions.items():
            if isinstance(func, rx.Function):
                work.builder_.update_func(name, work.visit_expr(func))
        return work.builder_.get()
    return _pass("LegalizeOps", run)


def DeadCodeElimination(entry_functions: Sequence[str] | None = None) -> ModulePass:
    """Without bindings that nothing uses, and without functions that no entry calls."""
    def run(mod: IRModule) -> IRModule:
        clean = _each(mod, remove_all_unused)
        public = [n for n, f in clean.functions.items() if isinstance(f, rx.Function) and not f.attrs.get("Primitive")]
        entries = list(entry_functions or (["main"] if "main" in public else public))
        used, left = set(entries), list(entries)
        for name in left:
            f = clean.functions.get(name)
            for g in all_global_vars(f.body) if isinstance(f, rx.Function) else ():
                if g not in used:
                    used.add(g)
                    left.append(g)
        return IRModule({n: f for n, f in clean.functions.items() if n in used})
    return _pass("DeadCodeElimination", run)


def RemoveUnusedFunctions(entry_functions: Sequence[str] | None = None) -> ModulePass:
    """Without functions that no entry calls."""
    return DeadCodeElimination(entry_functions)


def BindParams(func_name: str, params: Mapping[Any, Any]) -> ModulePass:
    """Constants in the place of parameters of a function."""
    def run(mod: IRModule) -> IRModule:
        return IRModule({**mod.functions, func_name: bind_params(mod[func_name], params)})
    return _pass("BindParams", run)


class _Canonical(PyExprMutator):
    def visit_var_binding_(self, binding: Any) -> None:
        value = self.visit_expr(binding.value)
        if isinstance(value, rx.Var) and isinstance(binding.var, rx.DataflowVar):
            self.set_var_remap(binding.var, value)
            return
        super().visit_var_binding_(binding)


def CanonicalizeBindings() -> ModulePass:
    """Without variables of dataflow blocks that stand for other variables."""
    return _pass("CanonicalizeBindings", lambda mod: _each(mod, lambda f: _Canonical().visit_expr(f)))


class _Fold(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod

    def visit_var_(self, op: Any) -> Any:
        op = self._renamed.get(op, op)
        bound = self.lookup_binding(op)
        return bound if isinstance(bound, rx.Constant) else op

    def visit_dataflow_var_(self, op: Any) -> Any:
        return self.visit_var_(op)

    def visit_call_(self, op: Any) -> Any:
        call = self.visit_expr_post_order(op)
        tensors = [f for a in call.args for f in (a.fields if isinstance(a, rx.Tuple) else [a])
                   if not isinstance(f, (ShapeExpr, str))]
        if not tensors or not all(isinstance(t, rx.Constant) for t in tensors):
            return call
        if not isinstance(call.op, RelaxOp) or isinstance(call.args[0], rx.ExternFunc):
            return call
        value = self.builder_.normalize(call)
        var = rx.Var("value", value.struct_info_)
        alone = rx.Function([], rx.SeqExpr([rx.BindingBlock([rx.VarBinding(var, value)])], var))
        lowered = lower(IRModule({**self.mod.functions, "folded": alone}), "folded")
        result = lowered.result_of(build_function(lowered.function)())
        return call if isinstance(result, list) else rx.const(np.array(as_numpy(result)))


def FoldConstant() -> ModulePass:
    """Calls on constants become what they give."""
    def run(mod: IRModule) -> IRModule:
        return _each(mod, lambda f: remove_all_unused(_Fold(mod).visit_expr(f)))
    return _pass("FoldConstant", run)


def FuseTIR() -> ModulePass:
    """Functions with the attribute "Primitive" become functions of blocks."""
    return _pass("FuseTIR", fuse_tir)


def AnnotateTIROpPattern() -> ModulePass:
    """Functions of blocks say in "op_pattern" how they read their inputs."""
    return _pass("AnnotateTIROpPattern", annotate_pattern)


def FuseOps(fuse_opt_level: int = -1) -> ModulePass:
    """Calls of functions of blocks that fit together become functions with the attribute "Primitive"."""
    return _pass("FuseOps", fuse_ops)


def FuseOpsByPattern(patterns: Sequence[Any], bind_constants: bool = True, annotate_codegen: bool = False,
                     **options: Any) -> ModulePass:
    """What matches one of the patterns, (name, pattern) each, becomes a function with the attribute "Composite"."""
    return _pass("FuseOpsByPattern", lambda mod: fuse_ops_by_pattern(mod, patterns, bind_constants))


def AttachGlobalSymbol() -> ModulePass:
    """Public functions have their names as "global_symbol"."""
    return _pass("AttachGlobalSymbol", lambda mod: IRModule({
        n: f.with_attr("global_symbol", str(n)) if isinstance(f, rx.Function) and not f.attrs.get("Primitive") else f
        for n, f in mod.functions.items()}))


def get_pipeline(name: str = "zero", **options: Any) -> Sequential:
    """Passes from operators to fused functions of blocks."""
    return Sequential([LegalizeOps(), AnnotateTIROpPattern(), FoldConstant(), FuseOps(), FuseTIR()], name=name)


def _idle(name: str) -> Callable[..., ModulePass]:
    def make(*options: Any, **named: Any) -> ModulePass:
        return _pass(name, lambda mod: mod)
    make.__name__, make.__doc__ = name, "Changes nothing: relax.build does what is needed."
    return make


def function_pass(pass_func: Any = None, opt_level: int = 0, name: str | None = None,
                  required: Sequence[str] | None = None, traceable: bool = False) -> Any:
    """Decorator: `f(func, mod, ctx) -> func` (or a class with `transform_function`) as a pass over relax functions."""
    def make(f: Any) -> Any:
        label = name or str(getattr(f, "__name__", "own_pass"))
        if isinstance(f, type):
            if not hasattr(f, "transform_function"):
                raise ArgumentError(f"function_pass: the class {f.__name__} has no transform_function",
                                    "def transform_function(self, func, mod, ctx)")
            return lambda *args, **named: made(f(*args, **named).transform_function, label)
        return made(f, label)

    def made(f: Callable[..., Any], label: str) -> ModulePass:
        def run(mod: IRModule, context: PassContext) -> IRModule:
            return _each(mod, lambda func: _checked(f(func, mod, context), label))
        return ModulePass(run, label, opt_level)
    return make if pass_func is None else make(pass_func)


def _checked(func: Any, label: str) -> rx.Function:
    if not isinstance(func, rx.Function):
        raise GraphError(f"the pass {label} gives {described(func)}, not a relax function")
    return func


_IDLE = ("Normalize", "NormalizeGlobalVar", "ToNonDataflow", "CallTIRRewrite", "RemovePurityChecking",
         "RewriteDataflowReshape", "StaticPlanBlockMemory", "LambdaLift", "VMShapeLower", "VMBuiltinLower",
         "LowerAllocTensor", "KillAfterLastUse", "ConvertToDataflow", "TopologicalSort", "RealizeVDevice")
NAMES: dict[str, Any] = {f.__name__: f for f in (
    LegalizeOps, DeadCodeElimination, RemoveUnusedFunctions, BindParams, CanonicalizeBindings, FoldConstant, FuseTIR,
    AnnotateTIROpPattern, FuseOps, FuseOpsByPattern, AttachGlobalSymbol, function_pass)}
NAMES |= {name: _idle(name) for name in _IDLE}
