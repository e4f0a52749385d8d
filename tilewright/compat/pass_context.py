"""`PassContext`: what old programs ask of the passes and of what looks on, and what becomes of it here."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.lowering.options import Instrument, OwnPass, Pass, PassOptions, PassScope, scopes
from tilewright.lowering.passes import own_pass
from tilewright.support.errors import ArgumentError, described, nearest
from tilewright.tir.stmt import IRModule, PrimFunc

METHODS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")
# What a key of TVM's PassContext(config=...) does here. An entry that has no effect says why it needs none.
CONFIG: dict[str, str] = {
    "tir.disable_vectorize": "True: vectorised loops run serially",
    "tir.instrument_bound_checkers": "True: the checked build, as TILEWRIGHT_CHECKED=1",
    "tir.add_lower_pass": "[(phase, pass)]: own passes; 0: before buffers are flattened, 1: after, 2, 3: at the end",
    "tir.disable_assert": "no effect: arguments and assertions are always checked",
    "tir.disable_storage_rewrite": "no effect: buffers are placed where their first user stands",
    "tir.disable_cse_tir": "no effect: LLVM removes common subexpressions",
    "tir.enable_equiv_terms_in_cse_tir": "no effect: LLVM removes common subexpressions",
    "tir.enable_debug": "no effect: TILEWRIGHT_DUMP shows every pass",
    "tir.debug_keep_trivial_loop": "no effect: a loop of one iteration becomes its body",
    "tir.detect_global_barrier": "no effect: there is no GPU back end",
    "tir.is_entry_func": "no effect: the first function of a module is its entry",
    "tir.noalias": "no effect: the function attribute of that name decides",
    "tir.usmp.enable": "no effect: the memory plan of a graph is always made",
    "tir.merge_static_smem": "no effect: there is no GPU back end",
    "tir.use_async_copy": "no effect: there is no GPU back end",
    "tir.ptx_ldg32": "no effect: there is no GPU back end",
    "tir.UnrollLoop": "no effect: loops marked unroll are unrolled, LLVM decides about the others",
    "tir.LoopPartition": "no effect: ragged loops are always split into a body and a tail",
    "tir.HoistIfThenElse": "no effect: guards are always hoisted",
    "tir.Simplify": "no effect: the simplifier has no options",
    "tir.InjectDoubleBuffer": "no effect: the schedule says what is buffered twice",
    "tir.RemoveNoOp": "no effect: empty statements always go",
    "tir.HoistExpression": '{"hoisted_conditionals": HoistedConditionals.Never}: HoistExpression leaves guards',
    "tir.ReduceBranchingThroughOvercompute": "no effect: guards of registers are always relaxed",
    "tir.experimental_dma_bypass_cache": "no effect: there is no GPU back end",
    "tir.enable_buffer_level_predication": "no effect: vector accesses under a condition carry a predicate",
    "relay.backend.use_auto_scheduler": "no effect: the rules of `compile` schedule what a graph computes",
    "relay.backend.use_meta_schedule": "no effect: the rules of `compile` schedule what a graph computes",
    "relay.FuseOps.max_depth": "no effect: kernels of a graph are fused by their reads",
}
# The arguments of tvm.build_config (0.6) and the keys above that they became.
BUILD_CONFIG: dict[str, str] = {
    "disable_vectorize": "tir.disable_vectorize", "instrument_bound_checkers": "tir.instrument_bound_checkers",
    "add_lower_pass": "tir.add_lower_pass", "disable_assert": "tir.disable_assert",
    "detect_global_barrier": "tir.detect_global_barrier", "auto_unroll_max_step": "tir.UnrollLoop",
    "auto_unroll_max_depth": "tir.UnrollLoop", "auto_unroll_max_extent": "tir.UnrollLoop",
    "unroll_explicit": "tir.UnrollLoop", "partition_const_loop": "tir.LoopPartition",
    "double_buffer_split_loop": "tir.InjectDoubleBuffer", "restricted_func": "tir.noalias",
    "data_alignment": "tir.noalias", "offset_factor": "tir.noalias", "dump_pass_ir": "tir.enable_debug",
    "disable_select_rewriting": "tir.Simplify",
}
# TVM's names of passes and ours, or None where a pass of a graph is meant, which does not exist here.
DISABLED: dict[str, str | None] = {
    "VectorizeLoop": "vectorize", "UnrollLoop": "unroll", "LoopPartition": "partition_loops",
    "HoistIfThenElse": "hoist_guards",
    **dict.fromkeys(("AlterOpLayout", "FoldConstant", "FuseOps", "SimplifyInference", "EliminateCommonSubexpr",
                     "CombineParallelConv2D", "CanonicalizeOps", "FastMath", "ToMixedPrecision", "StorageRewrite",
                     "CommonSubexprElimTIR", "InjectDoubleBuffer", "RemoveNoOp", "RewriteUnsafeSelect",
                     "BF16Legalize", "InstrumentBoundCheckers")),
}


@dataclass(frozen=True)
class PassInfo:
    """What is known of a pass."""
    opt_level: int
    name: str
    required: tuple[str, ...] = ()


def tell(instruments: Sequence[Any], method: str, *args: Any) -> list[Any]:
    """What the instruments that have a method answer."""
    return [getattr(i, method)(*args) for i in instruments if hasattr(i, method)]


def observed(info: PassInfo, module: IRModule, run: Callable[[IRModule], IRModule]) -> IRModule:
    """run(module), seen by the instruments of the context; module itself where one of them says not to run."""
    instruments = PassContext.current().instruments
    if not all(tell(instruments, "should_run", module, info)):
        return module
    tell(instruments, "run_before_pass", module, info)
    out = run(module)
    tell(instruments, "run_after_pass", out, info)
    return out


@dataclass(frozen=True)
class _Watching(Instrument):
    """Tells TVM's instruments of our passes, which rewrite a module of one function."""
    instruments: tuple[Any, ...]

    def before(self, p: Pass, func: PrimFunc | IRModule) -> bool:
        what = _as_module(func), PassInfo(0, p.name)
        wanted = all(tell(self.instruments, "should_run", *what))
        if wanted:
            tell(self.instruments, "run_before_pass", *what)
        return wanted

    def after(self, p: Pass, func: PrimFunc | IRModule, seconds: float) -> None:
        tell(self.instruments, "run_after_pass", _as_module(func), PassInfo(0, p.name))


def _as_module(func: PrimFunc | IRModule) -> IRModule:
    return func if isinstance(func, IRModule) else IRModule({func.name: func})


@dataclass(frozen=True)
class PrimFuncPass:
    """A named rewrite of functions; called with a PrimFunc or an IRModule."""
    function: Callable[[PrimFunc, IRModule, Any], PrimFunc]
    name: str = ""
    opt_level: int = 0

    @property
    def info(self) -> PassInfo:
        """Name and level."""
        return PassInfo(self.opt_level, self.name)

    def __call__(self, what: PrimFunc | IRModule) -> Any:
        if isinstance(what, IRModule):
            return observed(self.info, what, self._on_module)
        return self.run(what, IRModule({what.name: what}))

    def _on_module(self, module: IRModule) -> IRModule:
        return module.replace(functions={k: self.run(f, module) for k, f in module.functions.items()})

    def run(self, func: PrimFunc, module: IRModule) -> PrimFunc:
        """The rewritten function. Raises ArgumentError when the pass gives something else."""
        out = self.function(func, module, PassContext.current())
        if not isinstance(out, PrimFunc):
            raise ArgumentError(f"the pass {self.name or 'of the context'} gives {described(out)}, not a PrimFunc")
        return out


class PassContext(PassScope):
    """The options of every lowering inside the `with`.

    `opt_level` and `required_pass` select passes of a sequence of the program's, and none of ours. `config` takes the
    keys of CONFIG, `disabled_pass` the names of DISABLED. Raises ArgumentError for any other.
    """

    def __init__(self, opt_level: int = 2, required_pass: Sequence[str] | None = None,
                 disabled_pass: Sequence[str] | None = None, instruments: Sequence[Any] | None = None,
                 config: Mapping[str, Any] | None = None) -> None:
        if not isinstance(opt_level, int) or isinstance(opt_level, bool) or not 0 <= opt_level <= 4:
            raise ArgumentError(f"PassContext: opt_level={described(opt_level)} is not an integer from 0 to 4")
        watching = tuple(instruments or ())
        stranger = next((i for i in watching if not any(hasattr(i, name) for name in METHODS)), None)
        if stranger is not None:
            raise ArgumentError(f"PassContext: {described(stranger)} is no instrument",
                                f"an object with one of the methods {', '.join(METHODS)}")
        if config is not None and not isinstance(config, Mapping):
            raise ArgumentError(f"PassContext: config is {described(config)}, not a dict")
        for key, names in (("required_pass", required_pass), ("disabled_pass", disabled_pass)):
            if names is not None and not isinstance(names, (list, tuple, set)):
                raise ArgumentError(f"PassContext: {key} is {described(names)}, not a list of names")
        self.opt_level, self.config = opt_level, dict(config or {})
        self.required_pass, self.disabled_pass = list(required_pass or ()), list(disabled_pass or ())
        for key in self.config:
            _known("config", key, CONFIG)
        for name in self.disabled_pass:
            _known("disabled_pass", name, DISABLED, name.removeprefix("tir.") if isinstance(name, str) else name)
        super().__init__(_options(self.config, self.disabled_pass))
        self._watch(watching)

    @property
    def instruments(self) -> tuple[Any, ...]:
        """The objects that look on while passes run."""
        return tuple(x for i in self.options.instruments if isinstance(i, _Watching) for x in i.instruments)

    def _watch(self, instruments: tuple[Any, ...]) -> None:
        self.options = replace(self.options, instruments=(_Watching(instruments),) if instruments else ())

    def override_instruments(self, instruments: Sequence[Any] | None) -> None:
        """Let other objects look on from now on; those of before are told that they leave."""
        tell(self.instruments, "exit_pass_ctx")
        self._watch(tuple(instruments or ()))
        tell(self.instruments, "enter_pass_ctx")

    def __enter__(self) -> PassContext:
        super().__enter__()
        tell(self.instruments, "enter_pass_ctx")
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        tell(self.instruments, "exit_pass_ctx")

    @classmethod
    def current(cls) -> PassContext:
        """The innermost context of this thread, or one with the defaults."""
        return next((scope for scope in reversed(scopes()) if isinstance(scope, cls)), None) or cls()

    @staticmethod
    def list_configs() -> dict[str, str]:
        """The keys of `config` and what each does."""
        return dict(CONFIG)


def build_config(**arguments: Any) -> PassContext:
    """The context of TVM 0.6's `build_config`. Raises ArgumentError for an argument that it did not have."""
    for key in arguments:
        _known("build_config", key, BUILD_CONFIG)
    taken = {key: value for key, value in arguments.items() if not CONFIG[BUILD_CONFIG[key]].startswith("no effect")}
    return PassContext(config={BUILD_CONFIG[key]: value for key, value in taken.items()})


def _known(what: str, key: Any, names: Mapping[str, Any], plain: Any = None) -> None:
    if (key if plain is None else plain) in names:
        return
    raise ArgumentError(f"PassContext: {what} has no {key!r} here",
                        nearest(str(key), names, cutoff=0.7) or f"there are {', '.join(names)}")


def _options(settings: Mapping[str, Any], disabled: Sequence[str]) -> PassOptions:
    skipped = [ours for name in disabled if (ours := DISABLED[name.removeprefix("tir.")])]
    if _truth(settings, "tir.disable_vectorize"):
        skipped.append("vectorize")
    passes = settings.get("tir.add_lower_pass", ())
    if not isinstance(passes, (list, tuple)):
        raise ArgumentError(f"PassContext: tir.add_lower_pass is {described(passes)}, not a list of (phase, pass)")
    return PassOptions(_truth(settings, "tir.instrument_bound_checkers"), tuple(sorted(set(skipped))),
                       passes=tuple(map(_lower_pass, passes)))


def _truth(settings: Mapping[str, Any], key: str) -> bool:
    value = settings.get(key, False)
    if not isinstance(value, (bool, int)):
        raise ArgumentError(f"PassContext: {key} is {described(value)}, not True or False")
    return bool(value)


def _lower_pass(item: Any) -> OwnPass:
    """What an entry (phase, pass) of tir.add_lower_pass becomes. Raises ArgumentError."""
    if isinstance(item, (list, tuple)) and len(item) == 2 and item[0] in (0, 1, 2, 3) and callable(item[1]):
        phase, run = item
        place = ("before check_bounds", "after simplify", "after unroll", "after unroll")[phase]
        return own_pass(place, run, run.name if isinstance(run, PrimFuncPass) else "")
    raise ArgumentError(f"PassContext: tir.add_lower_pass has {described(item)}, not a phase and a pass",
                        "[(1, p)], where p is made by @tvm.tir.transform.prim_func_pass(opt_level=0)")
