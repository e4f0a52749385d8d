"""`tvm.transform`: functions over functions and modules as passes, and passes in a row."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.compat.pass_context import PassContext, PassInfo, PrimFuncPass, observed
from tilewright.support.errors import ArgumentError, described
from tilewright.tir import IRModule


def prim_func_pass(pass_func: Any = None, opt_level: int = 0, name: str | None = None,
                   required: Sequence[str] | None = None, traceable: bool = False) -> Any:
    """Decorator: `f(func, mod, ctx) -> PrimFunc` (or a class with `transform_function`) as a pass.

    The pass is called with an IRModule or a PrimFunc, or stands in PassContext(config={"tir.add_lower_pass": ...}).
    Raises ArgumentError for anything else.
    """
    return _decorator("prim_func_pass", "transform_function", "func", pass_func, name,
                      lambda f, label: PrimFuncPass(f, label, opt_level))


class ModulePass:
    """A rewrite of modules: `pass_(mod)`."""

    def __init__(self, function: Callable[[IRModule, PassContext], IRModule], name: str, opt_level: int = 0) -> None:
        self.function, self.name, self.opt_level = function, name, opt_level

    @property
    def info(self) -> PassInfo:
        """Name and level."""
        return PassInfo(self.opt_level, self.name)

    def __call__(self, module: IRModule) -> IRModule:
        context = PassContext.current()
        return observed(self.info, module, lambda m: self.run(m, context))

    def run(self, module: IRModule, context: PassContext) -> IRModule:
        """The rewritten module. Raises ArgumentError when the pass gives something else."""
        out = self.function(module, context)
        if not isinstance(out, IRModule):
            raise ArgumentError(f"the pass {self.name} gives {described(out)}, not an IRModule")
        return out


def module_pass(pass_func: Any = None, opt_level: int = 0, name: str | None = None,
                required: Sequence[str] | None = None, traceable: bool = False) -> Any:
    """Decorator: `f(mod, ctx) -> IRModule` (or a class with `transform_module`) as a function of a module."""
    return _decorator("module_pass", "transform_module", "mod", pass_func, name,
                      lambda f, label: ModulePass(f, label, opt_level))


def _decorator(what: str, method: str, first: str, given: Any, name: str | None,
               make_pass: Callable[[Any, str], Any]) -> Any:
    """make_pass of a function, or of what a class makes; a decorator where nothing is given."""
    def make(f: Any) -> Any:
        label = name or str(getattr(f, "__name__", "own_pass"))
        if isinstance(f, type):
            if getattr(f, method, None) is None:
                raise ArgumentError(f"{what}: the class {f.__name__} has no {method}",
                                    f"def {method}(self, {'func, ' if first == 'func' else ''}mod, ctx)")
            return lambda *args, **keywords: make_pass(getattr(f(*args, **keywords), method), label)
        if not callable(f):
            raise ArgumentError(f"{what}: {described(f)} is not a function")
        return make_pass(f, label)

    return make if given is None else make(given)


class Sequential:
    """Passes one after the other, as one pass over a module.

    Those that the context disables, and those above its level that it does not require, are left out.
    """

    def __init__(self, passes: Sequence[Any] | None = None, opt_level: int = 0, name: str = "sequential",
                 required: Sequence[str] | None = None, traceable: bool = False) -> None:
        self.passes, self.opt_level, self.name = list(passes or ()), opt_level, name
        for p in self.passes:
            if not callable(p):
                raise ArgumentError(f"Sequential: {described(p)} is not a pass")

    @property
    def info(self) -> PassInfo:
        """Name and level."""
        return PassInfo(self.opt_level, self.name)

    def __call__(self, module: IRModule) -> IRModule:
        context = PassContext.current()
        for p in self.passes:
            if _wanted(p, context):
                module = p(module)
        return module


def _wanted(p: Any, context: PassContext) -> bool:
    plain = [n.removeprefix("tir.") for n in (*context.disabled_pass, "", *context.required_pass)]
    disabled, required = plain[:len(context.disabled_pass)], plain[len(context.disabled_pass) + 1:]
    name = str(getattr(p, "name", "")).removeprefix("tir.")
    return name not in disabled and (name in required or getattr(p, "opt_level", 0) <= context.opt_level)


def print_ir(header: str = "", show_meta_data: bool = False) -> ModulePass:
    """A pass that prints the module, below a header, and leaves it as it is."""
    def show(module: IRModule, context: PassContext) -> IRModule:
        print(f"{header}\n{module}" if header else module)
        return module
    return ModulePass(show, "PrintIR")


# ---------------------------------------------------------------------------------------------- instruments


class PassInstrument:
    """What looks on while passes run; each method may be left out."""

    def enter_pass_ctx(self) -> None:
        """The context is entered."""

    def exit_pass_ctx(self) -> None:
        """The context is left."""


def pass_instrument(pi_cls: Any = None) -> Any:
    """Decorator of a class that looks on while passes run: PassContext(instruments=[C()])."""
    def make(cls: Any) -> Any:
        if not isinstance(cls, type):
            raise ArgumentError(f"pass_instrument: {described(cls)} is not a class")
        return cls
    return make if pi_cls is None else make(pi_cls)


class PrintBeforeAll(PassInstrument):
    """Prints the module before each pass."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Print it."""
        print(f"before {info.name}:\n{mod}\n")


class PrintAfterAll(PassInstrument):
    """Prints the module after each pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Print it."""
        print(f"after {info.name}:\n{mod}\n")


def is_pass(p: Any) -> bool:
    """True for what TVM calls a Pass."""
    return isinstance(p, (PrimFuncPass, ModulePass, Sequential))


INSTRUMENTS: dict[str, Any] = {x.__name__: x for x in (PassInstrument, pass_instrument, PrintBeforeAll, PrintAfterAll)}
