"""Calls into LLVM that come back with an error where a fault of LLVM would end the process.

LLVM aborts where one of its own assertions does not hold. Of what the call worked on then, nothing may be used again:
it is left as it is, and what comes after is made in another context. That is how LLVM's own CrashRecoveryContext keeps
editors alive (llvm/lib/Support/CrashRecoveryContext.cpp).
"""
from __future__ import annotations

import ctypes
import functools
import signal
from typing import Any

import llvmlite.binding as llvm

from tilewright.runtime.llvm import entry, lock
from tilewright.runtime.loader import support_address
from tilewright.support.errors import CodegenError

_context: Any = None                     # of all modules; another one after a fault
_RECOVER = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 6)


class Fault(CodegenError):
    """LLVM did not get to the end of a call. The objects of that call are not to be used again."""


def parse(text: str) -> llvm.ModuleRef:
    """The module of an LLVM IR text. Raises RuntimeError."""
    global _context
    with lock():
        _context = _context or llvm.create_context()
        return llvm.parse_assembly(text, _context)


def run_passes(module: llvm.ModuleRef, machine: llvm.TargetMachine, options: llvm.PipelineTuningOptions) -> None:
    """Optimise the module. Raises Fault."""
    builder = llvm.create_pass_builder(machine, options)
    manager = builder.getModulePassManager()
    _call("LLVMPY_RunNewModulePassManager", manager, module, builder)


def emit(module: llvm.ModuleRef, machine: llvm.TargetMachine, assembly: bool = False) -> bytes:
    """The module as an object file, or as assembly text. Raises Fault."""
    library = llvm.ffi.lib
    with llvm.ffi.OutputString() as error:
        at = _call("LLVMPY_TargetMachineEmitToMemory", machine, module, int(not assembly), ctypes.addressof(error._ptr))
        if not at:
            raise CodegenError(f"LLVM cannot write the code: {error}")
    buffer = ctypes.cast(at, llvm.ffi.LLVMMemoryBufferRef)
    try:
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


def _call(name: str, *args: Any) -> int:
    """The result of a function of LLVM's with at most four arguments. Raises Fault."""
    global _context
    words = [a if isinstance(a, int) else ctypes.cast(a._ptr, ctypes.c_void_p).value for a in args]
    result, recover = ctypes.c_void_p(), _recover()       # first, since loading takes a lock under which LLVM is called
    with lock():
        ended = recover(entry(name), *words, *[0] * (4 - len(words)), ctypes.addressof(result))
        if not ended:
            return result.value or 0
        for lost in (*(a for a in args if not isinstance(a, int)), _context):
            if lost is not None:
                lost.detach()                             # disposing of it could fail, too
        _context = None
    raise Fault(f"LLVM ends with {signal.Signals(ended).name} (a bug in LLVM "
                f"{'.'.join(map(str, llvm.llvm_version_info))})")


@functools.cache
def _recover() -> Any:
    return _RECOVER(support_address("tw_recover"))
