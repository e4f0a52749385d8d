"""Flat PrimFuncs to an object file."""
from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import llvmlite.binding as llvm

from tilewright.codegen.llvm.builder import CHOSEN
from tilewright.codegen.llvm.emit import emit_module
from tilewright.codegen.llvm.half_overflow import widens_integers_by_half, with_infinite_halves
from tilewright.codegen.llvm.imports import imports_of, link
from tilewright.codegen.llvm.mask_moves import has_wrong_mask_move
from tilewright.codegen.llvm.masked_stores import has_narrow_masked_stores, with_opaque_masks
from tilewright.codegen.llvm.recovery import Fault, emit, parse, run_passes
from tilewright.codegen.llvm.target import forget_machines, target_machine
from tilewright.codegen.llvm.trial import require_compilable
from tilewright.codegen.llvm.wide_products import has_wide_products, with_opaque_products
from tilewright.lowering.keep_imports import ANNOTATION
from tilewright.support import config
from tilewright.support.errors import CodegenError, CodegenWarning, with_hint
from tilewright.support.target import Target
from tilewright.tir.stmt import PrimFunc

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Effort:
    """How far LLVM goes: with its vectorizers, without them, or not beyond level 0."""
    vectorizers: bool
    passes: bool
    name: str


# what it does not end the process in one way, it may compile in another
EFFORTS = (Effort(True, True, "as asked"), Effort(False, True, "without LLVM's vectorizers"),
           Effort(False, False, "without LLVM's optimizations"))


def compile_object(funcs: Sequence[PrimFunc], target: Target, extra: str = "") -> bytes:
    """The functions as one relocatable object file for the target.

    TILEWRIGHT_DUMP=folder writes NAME.ll, NAME.opt.ll and NAME.s there. Where LLVM fails, it is asked for less, with a
    CodegenWarning. Raises CodegenError and TargetError.
    """
    text, name = llvm_ir(funcs, target, extra), funcs[0].name

    def emitted(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> bytes:
        if config.get("DUMP"):
            config.dump(f"{name}.opt.ll", str(module))
            config.dump(f"{name}.s", emit(module, machine, assembly=True).decode())
        code = emit(module, machine)
        if "avx512f" in target.feature_set and has_wrong_mask_move(code):
            raise Fault("LLVM moves a mask out of another register than the one that holds it (a bug in LLVM)")
        return code

    if config.get("DUMP"):
        config.dump(f"{name}.ll", text)
    return _compiled(name, text, target, imports_of(funcs), emitted)


def llvm_ir(funcs: Sequence[PrimFunc], target: Target, extra: str = "") -> str:
    """The LLVM IR before optimisation."""
    return emit_module(funcs, target.feature_set, not config.get("STRICT_MATH"), extra)


def _compiled(name: str, text: str, target: Target, imports: Sequence[str],
              use: Callable[[llvm.ModuleRef, llvm.TargetMachine], _Result]) -> _Result:
    """What use makes of the module, linked with its imports, after the pipeline of the target's opt_level.

    Where LLVM fails, the module is made again with less effort, and a CodegenWarning says so. What the user wrote is
    compiled in another process first, and in one way only. Raises CodegenError.
    """
    if imports:
        require_compilable(ANNOTATION, text, tuple(imports), str(target))
        return _attempt(text, target, imports, EFFORTS[0], use)
    faults: list[Fault] = []
    for effort in EFFORTS:
        try:
            result = _attempt(text, target, imports, effort, use)
        except Fault as fault:
            faults.append(fault)
            forget_machines()
            continue
        if faults:
            warnings.warn(with_hint(f"{name} is compiled {effort.name}, since {faults[0]}; its code may be slower",
                                    f"TILEWRIGHT_DUMP=folder keeps {name}.ll, which LLVM's developers can look at"),
                          CodegenWarning, stacklevel=2)
        return result
    raise CodegenError(with_hint(f"{name} cannot be compiled for {target}: {faults[-1]}, whatever it is asked for",
                                 "another schedule or target gives LLVM other code"))


def compile_linked(text: str, imports: Sequence[str], target: str) -> bytes:
    """text with the imports as an object file. Raises CodegenError, or ends the process."""
    return _attempt(text, Target(target), imports, EFFORTS[0], emit)


def _attempt(text: str, target: Target, imports: Sequence[str], effort: Effort,
             use: Callable[[llvm.ModuleRef, llvm.TargetMachine], _Result]) -> _Result:
    machine = target_machine(target, None if effort.passes else 0)
    module = _through_passes(text, target, imports, effort)
    if "avx512f" in target.feature_set and has_narrow_masked_stores(module):
        module = _parse(with_opaque_masks(str(module)), machine)
    if has_wide_products(text):
        module = _parse(with_opaque_products(str(module)), machine)
    return use(module, machine)


def _through_passes(text: str, target: Target, imports: Sequence[str], effort: Effort) -> llvm.ModuleRef:
    """LLVM 22 can leave a shuffle before its operands when VectorCombine meets what the loop vectoriser made; emitting
    such code would abort. So the result is verified."""
    if widens_integers_by_half(text):
        text = with_infinite_halves(text)
    machine = target_machine(target)
    module = _parse(text, machine, imports)
    if config.get("VERIFY") and (reason := _malformed(module)):
        raise CodegenError(f"the generated code is not well formed (a bug in Tilewright): {reason}")
    level = target.opt_level
    if level == 0 or not effort.passes:
        return module
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_unrolling = level >= 2
    options.loop_vectorization = level >= 2 and effort.vectorizers
    options.slp_vectorization = (level >= 2 and effort.vectorizers and not _chooses(text)
                                 and not _converts_unsigned(text) and not gathers_lanes(text))
    options.loop_interleaving = effort.vectorizers and not _chooses_by_branches(text)
    run_passes(module, machine, options)
    if reason := _malformed(module):
        raise Fault(f"LLVM makes code that is not well formed (a bug in LLVM): {reason}")
    return module


def _parse(text: str, machine: llvm.TargetMachine, imports: Sequence[str] = ()) -> llvm.ModuleRef:
    try:
        module = parse(text)
    except RuntimeError as error:
        raise CodegenError(f"LLVM refuses the generated code (a bug in Tilewright): {error}") from None
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    link(module, imports)
    return module


def _malformed(module: llvm.ModuleRef) -> str:
    """Why the module is not well formed, or nothing."""
    try:
        module.verify()
    except RuntimeError as error:
        return str(error)
    return ""


def _chooses_by_branches(text: str) -> bool:
    """True when some value is the result of an if_then_else.

    LLVM 22 may never end its search for an interleave count in a loop of several such choices whose conditions the
    loop does not change.
    """
    return f"\n{CHOSEN}" in text


def _chooses(text: str) -> bool:
    """True when a number, not a vector of them, is chosen by a condition, or is one.

    LLVM 22 makes vectors of sums of such numbers in straight-line code whose bits its code generator for AVX-512 does
    not take: it ends the process.
    """
    return _chooses_by_branches(text) or re.search(r" = (?:select|[sz]ext|[us]itofp) i1 ", text) is not None


def _converts_unsigned(text: str) -> bool:
    """True when a number of an unsigned type, not a vector of them, becomes a float.

    LLVM 22 makes vectors of such numbers in straight-line code with elements just wide enough for their bits: for
    uint32(int8(-3)), 8 and their sign. It converts these as if they had no sign, so that the result is 253. A byte is
    never narrowed.
    """
    return re.search(r" = uitofp i(?:16|32|64) ", text) is not None


def gathers_lanes(text: str) -> bool:
    """True when a vector is made of numbers that are read one by one.

    LLVM 22 looks for vectors among their addresses, in a time that grows with the square of their number: 64 take
    0.2 s. There are none to find, since the numbers do not lie side by side.
    """
    return re.search(r" = insertelement <\d+ x \w+> %", text) is not None


def compile_text(text: str, target: Target) -> bytes:
    """LLVM IR as an object file."""
    return _compiled("the text", text, target, (), emit)


def assembly(funcs: Sequence[PrimFunc], target: Target, extra: str = "") -> str:
    """The machine code of the functions as assembly text."""
    return _compiled(funcs[0].name, llvm_ir(funcs, target, extra), target, imports_of(funcs),
                     lambda module, machine: emit(module, machine, assembly=True).decode())


def optimized_ir(funcs: Sequence[PrimFunc], target: Target, extra: str = "") -> str:
    """The LLVM IR after optimisation."""
    return _compiled(funcs[0].name, llvm_ir(funcs, target, extra), target, imports_of(funcs),
                     lambda module, machine: str(module))


def standalone_object(funcs: Sequence[PrimFunc], target: Target, others: Sequence[str]) -> bytes:
    """The functions and other LLVM IR modules (the runtime's support code) as one object, merged without a linker."""
    def merged(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> bytes:
        for text in others:
            other = parse(text)
            other.triple, other.data_layout = module.triple, module.data_layout
            module.link_in(other)
        return emit(module, machine)

    return _compiled(funcs[0].name, llvm_ir(funcs, target), target, imports_of(funcs), merged)
