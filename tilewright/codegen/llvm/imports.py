"""LLVM IR of the user that is linked into a kernel."""
from __future__ import annotations

import re
from collections.abc import Iterable

import llvmlite.binding as llvm

from tilewright.codegen.llvm.recovery import parse
from tilewright.lowering.keep_imports import ANNOTATION, ATTRIBUTE
from tilewright.runtime import native
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir.stmt import PrimFunc

# of a module, or called: in the text as LLVM prints it
_ASSEMBLY = r"""(?m)^(?:module asm "|\s+(?:%\S+ = )?(?:\w+ )*?(?:call|invoke|callbr) [^"\n]*\basm [^"\n]*")"""
# what generated code calls and is called by, defined in the text: a function, a variable or an alias
_OURS = rf"(?m)^(?:define [^\n]*?)?@({'|'.join(native.EXPORTS)}|TVMFFI\w+|__tvm_ffi_\w+)(?:\(| = )"
_ALIGNED = r"(?m)^@[^\n]*, align (\d+)"
MOST_ALIGNMENT = 1 << 16                  # bytes, the largest page: an object file is filled up to it
MOST_DATA = 1 << 30                       # bytes of the variables of a text: code reaches 2 GiB


def imports_of(funcs: Iterable[PrimFunc]) -> list[str]:
    """The texts that the functions import, each once."""
    return list(dict.fromkeys(text for f in funcs for text in f.attrs.get(ATTRIBUTE, ())))


def link(module: llvm.ModuleRef, texts: Iterable[str]) -> None:
    """Add the definitions in texts to the module, for its own functions only.

    Raises CodegenError for what LLVM does not accept, for a symbol that is there already or that belongs to
    Tilewright, and for variables of more than MOST_DATA bytes, or of an alignment above MOST_ALIGNMENT.
    """
    for text in texts:
        try:
            other = parse(text)
            other.verify()
        except RuntimeError as error:
            raise CodegenError(with_hint(
                f"{ANNOTATION}: LLVM {'.'.join(map(str, llvm.llvm_version_info))} refuses the text: {error}",
                "`clang -S -emit-llvm` of the same or an older version writes it")) from None
        if re.search(_ASSEMBLY, str(other)):
            raise CodegenError(with_hint(f"{ANNOTATION}: the text has inline assembly, which cannot be assembled here",
                                         "call an intrinsic of LLVM, or a function of a library: call_extern"))
        other.triple, other.data_layout = module.triple, module.data_layout
        _require_harmless(other)
        mine = [v.name for v in (*other.functions, *other.global_variables)
                if not v.is_declaration and v.linkage == llvm.Linkage.external]
        try:
            module.link_in(other)
        except RuntimeError as error:
            raise CodegenError(f"{ANNOTATION}: the text cannot be linked into the kernel: {error}") from None
        for name in mine:
            value = module.get_function(name) if name in {f.name for f in module.functions} else \
                module.get_global_variable(name)
            value.linkage = "internal"


def _require_harmless(other: llvm.ModuleRef) -> None:
    """Raise CodegenError for names that generated code relies on, and for more data than a process can load."""
    printed = str(other)
    taken = re.search(_OURS, printed)
    if taken:
        raise CodegenError(with_hint(f"{ANNOTATION}: the text defines {taken[1]}, which is a name of Tilewright's own",
                                     "give it another name; it may declare and call this one"))
    alignment = max(map(int, re.findall(_ALIGNED, printed)), default=1)
    if alignment > MOST_ALIGNMENT:
        raise CodegenError(f"{ANNOTATION}: a variable of the text has an alignment of {alignment} bytes, more than "
                           f"{MOST_ALIGNMENT}")
    layout = llvm.create_target_data(other.data_layout)
    size = sum(layout.get_abi_size(v.global_value_type) for v in other.global_variables if not v.is_declaration)
    if size > MOST_DATA:
        raise CodegenError(with_hint(f"{ANNOTATION}: the variables of the text have {size} bytes, more than "
                                     f"{MOST_DATA}",
                                     "pass large memory as an argument"))
