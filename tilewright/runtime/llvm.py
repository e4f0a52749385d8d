"""LLVM for all but code generation: what this host is, LLVM IR to objects, the linker of objects in this process.

Outside of `codegen/llvm` this is the only module that imports llvmlite, with its first use: a program that loads
exported libraries needs no LLVM, which takes 60 MB and as many milliseconds.
"""
from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

from tilewright.support.registry import load, register_hook

_first = threading.Lock()
_binding: Any = None


def binding() -> Any:
    """The module llvmlite.binding."""
    global _binding
    if _binding is None:
        with _first:
            _binding = _binding or load("llvmlite.binding")
    return _binding


class _Still:
    """A lock: while it is held, no thread is in LLVM, which may not be there yet."""

    def __enter__(self) -> None:
        _first.acquire()
        if _binding is not None:
            _binding.ffi.lib._lock.__enter__()

    def __exit__(self, *_: Any) -> None:
        if _binding is not None:
            _binding.ffi.lib._lock.__exit__(None, None, None)
        _first.release()


STILL = _Still()


def version() -> tuple[int, ...]:
    """Major, minor and patch number."""
    return tuple(binding().llvm_version_info)


def lock() -> Any:
    """What a thread in LLVM holds, for a whole compilation."""
    return binding().ffi.lib._lock


def entry(name: str) -> int:
    """Address of a function of llvmlite's C interface. Whoever calls it holds the lock."""
    return ctypes.cast(getattr(binding().ffi.lib._lib, name), ctypes.c_void_p).value or 0


@register_hook("runtime.host_cpu")
@functools.cache
def host_cpu() -> tuple[str, str, str]:
    """(cpu name, feature string, triple) of this machine, as LLVM names them."""
    features = ",".join(sorted(f"{'+' if on else '-'}{name}" for name, on in binding().get_host_cpu_features().items()))
    return binding().get_host_cpu_name(), features, host_triple()


@functools.cache
def host_triple() -> str:
    """The triple of this process."""
    return binding().get_process_triple()


@functools.cache
def initialize_targets() -> None:
    """Make every target of this LLVM usable."""
    binding().initialize_all_targets()
    binding().initialize_all_asmprinters()


def object_of(text: str, triple: str, inline: bool = False) -> bytes:
    """LLVM IR as an object file for any CPU of the triple; of RISC-V those that pass floats in registers, as on Linux.

    inline: run the passes of level 0, which inline what must be.
    """
    initialize_targets()
    features = "+m,+a,+f,+d,+c" if triple.startswith("riscv") else ""
    machine = binding().Target.from_triple(triple).create_target_machine(features=features, opt=1, reloc="pic",
                                                                       codemodel="default")
    module = binding().parse_assembly(text)
    if inline:
        passes = binding().create_pass_builder(machine, binding().create_pipeline_tuning_options(speed_level=0))
        passes.getModulePassManager().run(module, passes)
    return machine.emit_object(module)


def data_object(name: str, path: str, triple: str) -> bytes:
    """An object with the bytes of a file, aligned to 64, and the function `ptr NAME__constant(i64 offset)` to them.

    For this kind of machine. The file is read by LLVM's assembler, since text of so many bytes would take long.
    """
    initialize_targets()
    binding().initialize_native_asmparser()
    elf = "darwin" not in triple and "macos" not in triple
    section = '.section .rodata.constants,\\22a\\22,@progbits' if elf else ".section __TEXT,__const"
    symbol = f"{name}__data" if elf else f"_{name}__data"
    quoted = path.replace("\\", "\\5C").replace('"', "\\22")
    lines = [section, f"{'.hidden' if elf else '.private_extern'} {symbol}", f".globl {symbol}", ".p2align 6",
             f"{symbol}:", f".incbin \\22{quoted}\\22", ".text"]
    asm = "\n".join(f'module asm "{line}"' for line in lines)
    return object_of(f"""target triple = "{triple}"
{asm}
@{name}__data = external hidden constant i8
define hidden ptr @{name}__constant(i64 %offset) {{
  %p = getelementptr i8, ptr @{name}__data, i64 %offset
  ret ptr %p
}}
""", triple)


def library_builder(*objects: bytes) -> Any:
    """A library of object files, not linked yet."""
    builder = binding().JITLibraryBuilder()
    for data in objects:
        builder.add_object_img(data)
    return builder


def create_engine() -> Any:
    """A linker of such libraries into this process."""
    initialize_targets()
    return binding().create_lljit_compiler(suppress_errors=True)
