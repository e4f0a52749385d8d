"""Flat PrimFuncs to an object file."""
from __future__ import annotations

import re
from collections.abc import Sequence

import llvmlite.binding as llvm

from tilewright.codegen.llvm.builder import CHOSEN
from tilewright.codegen.llvm.emit import emit_module
from tilewright.codegen.llvm.half_overflow import widens_integers_by_half, with_infinite_halves
from tilewright.codegen.llvm.imports import imports_of, link
from tilewright.codegen.llvm.masked_stores import has_narrow_masked_stores, with_opaque_masks
from tilewright.codegen.llvm.target import target_machine
from tilewright.codegen.llvm.trial import require_compilable
from tilewright.codegen.llvm.wide_products import has_wide_products, with_opaque_products
from tilewright.lowering.keep_imports import ANNOTATION
from tilewright.support import config
from tilewright.support.errors import CodegenError
from tilewright.support.target import Target
from tilewright.tir.stmt import PrimFunc


def compile_object(funcs: Sequence[PrimFunc], target: Target, extra: str = "") -> bytes:
    """The functions as one relocatable object file for the target.

    TILEWRIGHT_DUMP=folder writes NAME.ll, NAME.opt.ll and NAME.s there. Raises CodegenError and TargetError.
    """
    text = llvm_ir(funcs, target, extra)
    module = optimize(text, target, imports_of(funcs))
    if config.get("DUMP"):
        _dump(funcs[0].name, text, module, target)
    return target_machine(target).emit_object(module)


def _dump(name: str, text: str, module: llvm.ModuleRef, target: Target) -> None:
    config.dump(f"{name}.ll", text)
    config.dump(f"{name}.opt.ll", str(module))
    config.dump(f"{name}.s", target_machine(target).emit_assembly(module))


def llvm_ir(funcs: Sequence[PrimFunc], target: Target, extra: str = "") -> str:
    """The LLVM IR before optimisation."""
    return emit_module(funcs, target.feature_set, not config.get("STRICT_MATH"), extra)


def optimize(text: str, target: Target, imports: Sequence[str] = ()) -> llvm.ModuleRef:
    """The module, linked with its imports, after the optimisation pipeline of the target's opt_level.

    LLVM 22 can leave a shuffle before its operands when VectorCombine meets what the loop vectoriser made; emitting
    such code would abort the process. So the result is verified, and made again without the vectoriser if need be.
    What the user wrote is compiled in another process first. Raises CodegenError.
    """
    if imports:
        require_compilable(ANNOTATION, text, tuple(imports), str(target))
    return _optimized(text, target, imports)


def compile_linked(text: str, imports: Sequence[str], target: str) -> bytes:
    """text with the imports as an object file. Raises CodegenError, or ends the process."""
    return target_machine(Target(target)).emit_object(_optimized(text, Target(target), imports))


def _optimized(text: str, target: Target, imports: Sequence[str]) -> llvm.ModuleRef:
    module = _through_passes(text, target, imports)
    if "avx512f" in target.feature_set and has_narrow_masked_stores(module):
        module = _parse(with_opaque_masks(str(module)), target)
    if has_wide_products(text):
        module = _parse(with_opaque_products(str(module)), target)
    return module


def _through_passes(text: str, target: Target, imports: Sequence[str]) -> llvm.ModuleRef:
    if widens_integers_by_half(text):
        text = with_infinite_halves(text)
    module = _parse(text, target, imports)
    if config.get("VERIFY"):
        _verify(module)
    level = target.opt_level
    if level == 0:
        return module
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.loop_unrolling = level >= 2
    options.slp_vectorization = level >= 2 and not _chooses(text) and not _converts_unsigned(text)
    options.loop_interleaving = not _chooses_by_branches(text)
    _run_passes(module, target, options)
    try:
        module.verify()
    except RuntimeError:
        module = _parse(text, target, imports)
        options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = False
        _run_passes(module, target, options)
        _verify(module)
    return module


def _parse(text: str, target: Target, imports: Sequence[str] = ()) -> llvm.ModuleRef:
    machine = target_machine(target)
    try:
        module = llvm.parse_assembly(text)
    except RuntimeError as error:
        raise CodegenError(f"LLVM refuses the generated code (a bug in Tilewright): {error}") from None
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    link(module, imports)
    return module


def _verify(module: llvm.ModuleRef) -> None:
    try:
        module.verify()
    except RuntimeError as error:
        raise CodegenError(f"the generated code is not well formed (a bug in Tilewright): {error}") from None


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


def _run_passes(module: llvm.ModuleRef, target: Target, options: llvm.PipelineTuningOptions) -> None:
    builder = llvm.create_pass_builder(target_machine(target), options)
    builder.getModulePassManager().run(module, builder)


def compile_text(text: str, target: Target) -> bytes:
    """LLVM IR as an object file."""
    return target_machine(target).emit_object(optimize(text, target))


def assembly(funcs: Sequence[PrimFunc], target: Target, extra: str = "") -> str:
    """The machine code of the functions as assembly text."""
    return target_machine(target).emit_assembly(optimize(llvm_ir(funcs, target, extra), target, imports_of(funcs)))


def optimized_ir(funcs: Sequence[PrimFunc], target: Target, extra: str = "") -> str:
    """The LLVM IR after optimisation."""
    return str(optimize(llvm_ir(funcs, target, extra), target, imports_of(funcs)))


def standalone_object(funcs: Sequence[PrimFunc], target: Target, others: Sequence[str]) -> bytes:
    """The functions and other LLVM IR modules (the runtime's support code) as one object, merged without a linker."""
    module = optimize(llvm_ir(funcs, target), target, imports_of(funcs))
    for text in others:
        other = llvm.parse_assembly(text)
        other.triple, other.data_layout = module.triple, module.data_layout
        module.link_in(other)
    return target_machine(target).emit_object(module)
