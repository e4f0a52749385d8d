"""`tvm.transform` and `tvm.tir.transform`: functions over functions and modules as passes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.lowering.partition_loops import partition_loops
from tilewright.lowering.pass_context import PassContext, PrimFuncPass
from tilewright.lowering.reduction_init import lower_reduction_init
from tilewright.lowering.simplify import simplify
from tilewright.lowering.unroll import unroll
from tilewright.lowering.vectorize import vectorize
from tilewright.support.errors import ArgumentError, StructuralError, described, with_hint
from tilewright.tir import IRModule, PrimFunc
from tilewright.tir.verify import verify


def prim_func_pass(pass_func: Any = None, opt_level: int = 0, name: str | None = None,
                   required: Sequence[str] | None = None) -> Any:
    """Decorator: `f(func, mod, ctx) -> PrimFunc` (or a class with `transform_function`) as a pass.

    The pass is called with an IRModule or a PrimFunc, or stands in PassContext(config={"tir.add_lower_pass": ...}).
    Raises ArgumentError for anything else.
    """
    def make(f: Any) -> Any:
        label = name or str(getattr(f, "__name__", "own_pass"))
        if isinstance(f, type):
            transform = getattr(f, "transform_function", None)
            if transform is None:
                raise ArgumentError(with_hint(f"prim_func_pass: the class {f.__name__} has no transform_function",
                                              "def transform_function(self, func, mod, ctx)"))

            def create(*args: Any, **keywords: Any) -> PrimFuncPass:
                return PrimFuncPass(f(*args, **keywords).transform_function, label, opt_level)
            return create
        if not callable(f):
            raise ArgumentError(f"prim_func_pass: {described(f)} is not a function")
        return PrimFuncPass(f, label, opt_level)

    return make if pass_func is None else make(pass_func)


def apply(f: Callable[[PrimFunc], PrimFunc]) -> PrimFuncPass:
    """f as a pass over the functions of a module."""
    return PrimFuncPass(lambda func, module, context: f(func), str(getattr(f, "__name__", "own_pass")))


def _own(name: str, run: Callable[[PrimFunc], PrimFunc], stage: str) -> Callable[..., PrimFuncPass]:
    """The maker of one of our passes under TVM's name, for functions of that form."""
    def transform(func: PrimFunc, module: IRModule, context: Any) -> PrimFunc:
        try:
            verify(func, stage)
        except StructuralError as why:
            wanted = "a function of blocks" if stage == "block" else "what tvm.lower gives"
            raise ArgumentError(f"{name} takes {wanted}: {str(why).split(chr(10))[0]}") from None
        return run(func)

    def make(*options: object, **named: object) -> PrimFuncPass:
        return PrimFuncPass(transform, name)
    make.__name__ = name
    make.__doc__ = f"Our pass `{run.__name__}` as a pass over a module. Options are those of TVM, and change nothing."
    return make


TRANSFORMS = {"Apply": apply, **{name: _own(name, run, stage) for name, run, stage in (
    ("Simplify", simplify, "flat"), ("LoopPartition", partition_loops, "flat"), ("VectorizeLoop", vectorize, "flat"),
    ("UnrollLoop", unroll, "flat"), ("LowerInitBlock", lower_reduction_init, "block"))}}


class Sequential:
    """Passes one after the other, as one pass over a module."""

    def __init__(self, passes: Sequence[Any] | None = None, opt_level: int = 0, name: str = "sequential",
                 required: Sequence[str] | None = None) -> None:
        self.passes, self.opt_level, self.name = list(passes or ()), opt_level, name
        for p in self.passes:
            if not callable(p):
                raise ArgumentError(f"Sequential: {described(p)} is not a pass")

    def __call__(self, module: IRModule) -> IRModule:
        for p in self.passes:
            module = p(module)
        return module


def module_pass(pass_func: Any = None, opt_level: int = 0, name: str | None = None,
                required: Sequence[str] | None = None) -> Any:
    """Decorator: `f(mod, ctx) -> IRModule` (or a class with `transform_module`) as a function of a module."""
    def make(f: Any) -> Any:
        if isinstance(f, type):
            transform = getattr(f, "transform_module", None)
            if transform is None:
                raise ArgumentError(with_hint(f"module_pass: the class {f.__name__} has no transform_module",
                                              "def transform_module(self, mod, ctx)"))

            def create(*args: Any, **keywords: Any) -> Any:
                return _on_module(f(*args, **keywords).transform_module)
            return create
        if not callable(f):
            raise ArgumentError(f"module_pass: {described(f)} is not a function")
        return _on_module(f)

    return make if pass_func is None else make(pass_func)


def _on_module(f: Callable[[IRModule, PassContext], IRModule]) -> Callable[[IRModule], IRModule]:
    def run(module: IRModule) -> IRModule:
        return f(module, PassContext.current())
    return run
