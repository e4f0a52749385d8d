"""`tvm.tir.transform`: our passes under TVM's names, each a pass object over a module of the form that it takes."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntFlag
from typing import Any

from tilewright import tir
from tilewright.compat.pass_context import PassContext, PrimFuncPass
from tilewright.compat.pass_objects import ModulePass
from tilewright.lowering.link_calls import CALL, link
from tilewright.lowering.passes import SIMPLE_PASSES, list_of
from tilewright.lowering.serialize_loops import serial
from tilewright.support.errors import ArgumentError, StructuralError, described
from tilewright.support.target import Target
from tilewright.tir import map_children, rewrite, walk
from tilewright.tir.symbols import defined, fresh_copy
from tilewright.tir.verify import verify

Rewrite = Callable[[tir.PrimFunc], tir.PrimFunc]
_OURS: dict[str, Rewrite] = {p.name: p.run for p in list_of("llvm")}
_WANTED = {"block": "a function of blocks", "loop": "a function without blocks (LowerOpaqueBlock gives one)",
           "flat": "what tvm.lower gives"}


def _has_blocks(func: tir.PrimFunc) -> bool:
    return isinstance(func.body, tir.BlockRealize)


def own(name: str, run: Rewrite, stage: str) -> PrimFuncPass:
    """A pass of ours for functions of a form ("block", "loop", "flat"; "": any, "raw": not verified)."""
    def transform(func: tir.PrimFunc, module: tir.IRModule, context: Any) -> tir.PrimFunc:
        if stage == "raw":
            return run(func)
        form = stage or ("block" if _has_blocks(func) else "loop")
        try:
            verify(func, form)
        except StructuralError as why:
            raise ArgumentError(f"{name} takes {_WANTED[form]}: {str(why).split(chr(10))[0]}") from None
        return run(func)
    return PrimFuncPass(transform, name)


def _maker(name: str, run: Rewrite, stage: str) -> Callable[..., PrimFuncPass]:
    """What makes the pass. Options are those of TVM, and change nothing."""
    def make(*options: object, **named: object) -> PrimFuncPass:
        return own(name, run, stage)
    make.__name__, make.__doc__ = name, f"Our pass `{run.__name__}` as a pass over a module; options change nothing."
    return make


def _blocks(*names: str) -> Rewrite:
    """Our passes, where a function has blocks: without them there is nothing to do."""
    def run(func: tir.PrimFunc) -> tir.PrimFunc:
        for name in names if _has_blocks(func) else ():
            func = _OURS[name](func)
        return func
    run.__name__ = names[-1]
    return run


def _flat(func: tir.PrimFunc) -> tir.PrimFunc:
    """The flat form of a function of any form: the passes of simple_mode up to flatten_buffers."""
    for p in SIMPLE_PASSES if _has_blocks(func) else ():
        if p.stage != "flat":
            func = p.run(func)
    return _OURS["flatten_buffers"](func)


def convert_ssa(func: tir.PrimFunc) -> tir.PrimFunc:
    """func, in which no loop, let or allocation defines what another one, or a parameter, defines."""
    seen: set[Any] = {*func.params, *(b.data for b in func.buffers)}

    def visit(node: Any) -> Any:
        if isinstance(node, tir.Stmt):
            if not seen.isdisjoint(defined(node)):
                node = fresh_copy(node)
            seen.update(defined(node))
        return map_children(node, visit)

    return func.with_body(visit(func.body))


def _serial(func: tir.PrimFunc) -> tir.PrimFunc:
    """func with every loop that is unrolled, vectorised or parallel run in order."""
    return serial(func, tir.PARALLEL, tir.UNROLLED, tir.VECTORIZED)


def _lazy_selects(func: tir.PrimFunc) -> tir.PrimFunc:
    """func whose choices between values that read memory evaluate only what is chosen."""
    def change(node: Any) -> Any:
        reads = isinstance(node, tir.Select) and node.condition.dtype == "bool" and any(
            isinstance(n, (tir.Load, tir.Call)) for part in (node.a, node.b) for n in walk(part))
        return tir.Call("if_then_else", (node.condition, node.a, node.b), node.dtype) if reads else None
    return func.with_body(rewrite(func.body, change))


def _without_calls(op: str) -> Rewrite:
    def drop(node: Any) -> Any:
        calls = isinstance(node, tir.Evaluate) and isinstance(node.value, tir.Call) and node.value.op == op
        return tir.NOP if calls else None

    def run(func: tir.PrimFunc) -> tir.PrimFunc:
        return _OURS["remove_no_ops"](func.with_body(rewrite(func.body, drop)))
    run.__name__ = f"without_{op}"
    return run


class HoistedConditionals(IntFlag):
    """What HoistExpression takes out of loops: ifs of statements; those of expressions stay here."""
    Never, IfElseStmt, IfElseExpr, BooleanExpression, UsingBlockVar = 0, 1, 2, 4, 8
    All = 15


class HoistedLetBindings(IntFlag):
    """The let bindings that HoistExpression of TVM takes out of loops; here they stay."""
    Never, RequiredByConditional, LetStmt, LetExpr = 0, 1, 2, 4
    All = 7


def _hoist(func: tir.PrimFunc) -> tir.PrimFunc:
    settings = PassContext.current().config.get("tir.HoistExpression", {})
    wanted = settings.get("hoisted_conditionals", HoistedConditionals.All) if isinstance(settings, Mapping) else 0
    return _OURS["hoist_guards"](func) if int(wanted) & HoistedConditionals.IfElseStmt else func


def bind_target(target: Any) -> PrimFuncPass:
    """The functions with the attribute "target", those that have none."""
    resolved = Target(target)
    return PrimFuncPass(lambda func, module, context: func if "target" in func.attrs else func.with_attr(
        "target", resolved), "BindTarget")


def annotate_entry() -> PrimFuncPass:
    """The one function of a module marked as its entry. Raises ArgumentError for several."""
    def transform(func: tir.PrimFunc, module: tir.IRModule, context: Any) -> tir.PrimFunc:
        if len(module.functions) > 1:
            raise ArgumentError(f"AnnotateEntryFunc: the module has several functions: {', '.join(module.functions)}")
        return func.with_attr("tir.is_entry_func", True)
    return PrimFuncPass(transform, "AnnotateEntryFunc")


def filter_functions(fcond: Callable[[tir.PrimFunc], Any]) -> Callable[[tir.IRModule], tir.IRModule]:
    """The module of the functions for which fcond holds."""
    if not callable(fcond):
        raise ArgumentError(f"Filter: {described(fcond)} is not a function")
    return lambda module: module.replace(functions={k: f for k, f in module.functions.items() if fcond(f)})


def inline_private_functions() -> ModulePass:
    """The module in which what a function calls stands in it, without the private functions that were called."""
    def transform(module: tir.IRModule, context: PassContext) -> tir.IRModule:
        called = {str(n.args[0].value) for f in module.functions.values() for n in walk(f.body)
                  if isinstance(n, tir.Call) and n.op == CALL and isinstance(n.args[0], tir.StringImm)}
        gone = {name for name in called if name in module.functions
                and "global_symbol" not in module.functions[name].attrs}
        linked = link(module.functions)
        return module.replace(functions={name: f for name, f in linked.items() if name not in gone})
    return ModulePass(transform, "InlinePrivateFunctions")


def apply(f: Callable[[tir.PrimFunc], tir.PrimFunc]) -> PrimFuncPass:
    """f as a pass over the functions of a module."""
    return PrimFuncPass(lambda func, module, context: f(func), str(getattr(f, "__name__", "own_pass")))


# name -> (our pass, the form of the functions that it takes)
PASSES: dict[str, tuple[Rewrite, str]] = {
    "ConvertSSA": (convert_ssa, "raw"), "RewriteUnsafeSelect": (_lazy_selects, ""), "StorageFlatten": (_flat, ""),
    "ConvertForLoopsToSerial": (_serial, ""), "RemoveAssume": (_without_calls("assume"), ""),
    "SkipAssert": (_without_calls("Assert"), ""), "LowerMatchBuffer": (_blocks("lower_match_buffer"), ""),
    "ConvertBlocksToOpaque": (_blocks("lower_match_buffer", "lower_blocks"), ""),
    "LowerOpaqueBlock": (_blocks("lower_match_buffer", "lower_blocks"), ""), "HoistExpression": (_hoist, "loop"),
    **{name: (_OURS[ours], form) for form, names in {
        "": {"Simplify": "simplify", "RemoveNoOp": "remove_no_ops"},
        "block": {"LowerInitBlock": "lower_reduction_init", "InjectDoubleBuffer": "lower_double_buffers",
                  "LowerCrossThreadReduction": "lower_cross_thread_reductions",
                  "PlanAndUpdateBufferAllocationLocation": "plan_buffer_allocation"},
        "loop": {"CompactBufferAllocation": "compact_buffers", "FlattenBuffer": "flatten_buffers",
                 "InjectPrefetch": "inject_prefetches", "InjectSoftwarePipeline": "lower_software_pipelines",
                 "UnifyThreadBinding": "unify_thread_loops", "InjectVirtualThread": "lower_virtual_threads",
                 "HoistIfThenElse": "hoist_guards", "NarrowDataType": "narrow_indices",
                 "ForceNarrowIndexToInt32": "narrow_indices", "InstrumentBoundCheckers": "check_bounds"},
        "flat": {"StorageRewrite": "hoist_allocations", "LoopPartition": "partition_loops",
                 "VectorizeLoop": "vectorize", "UnrollLoop": "unroll"}}.items() for name, ours in names.items()},
}
# passes of TVM that have nothing to do here, and why
_GPU, _CODE = "there is no GPU back end", "code generation does it"
IDLE: dict[str, str] = {
    **dict.fromkeys(("LowerIntrin", "LowerTVMBuiltin", "LowerCustomDatatypes", "LowerDeviceStorageAccessInfo",
                     "MakePackedAPI", "MakeUnpackedAPI", "CombineContextCall", "PointerValueTypeRewrite",
                     "BF16Legalize", "BF16ComputeLegalize", "BF16StorageLegalize", "BF16CastElimination",
                     "FP8ComputeLegalize", "FP8StorageLegalize"), _CODE),
    **dict.fromkeys(("SplitHostDevice", "AnnotateDeviceRegions", "LowerDeviceKernelLaunch", "DecorateDeviceScope",
                     "InferFragment", "LowerWarpMemory", "LowerThreadAllreduce", "CoProcSync", "LiftAttrScope",
                     "MergeDynamicSharedMemoryAllocations", "MergeSharedMemoryAllocations", "LowerAsyncDMA",
                     "InjectPTXAsyncCopy", "TextureFlatten", "LowerVtcmAlloc"), _GPU),
    "ThreadSync": "UnifyThreadBinding puts the barriers", "CommonSubexprElimTIR": "LLVM removes common subexpressions",
    "RenormalizeSplitPattern": "the simplifier's form of divisions is one already",
    "InstallDebugSpans": "TILEWRIGHT_PERF names functions for perf",
}


def _idle(name: str, reason: str) -> Callable[..., PrimFuncPass]:
    """A pass that has nothing to do here."""
    def make(*options: object, **named: object) -> PrimFuncPass:
        return PrimFuncPass(lambda func, module, context: func, name)
    make.__name__, make.__doc__ = name, f"Changes nothing: {reason}."
    return make


TRANSFORMS: dict[str, Any] = {
    **{name: _idle(name, reason) for name, reason in IDLE.items()},
    **{name: _maker(name, run, stage) for name, (run, stage) in PASSES.items()},
    "Apply": apply, "BindTarget": bind_target, "AnnotateEntryFunc": annotate_entry, "Filter": filter_functions,
    "InlinePrivateFunctions": inline_private_functions,
    "HoistedConditionals": HoistedConditionals, "HoistedLetBindings": HoistedLetBindings,
}
