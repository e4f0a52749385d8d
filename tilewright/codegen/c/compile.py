"""C to an object file, by the system's compiler or that of the `export` extra."""
from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tilewright.codegen.c.functions import source
from tilewright.runtime.export import linker
from tilewright.support import config
from tilewright.support.errors import CodegenError, with_hint
from tilewright.support.target import Target
from tilewright.support.target import target as resolve_target
from tilewright.tir.stmt import PrimFunc

# instruction sets that GCC, Clang and LLVM know by one name
_SETS = ("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "avx512f",
         "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_FLAGS = ("-std=gnu11", "-c", "-fPIC", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-w",
          "-fno-stack-protector", "-fno-asynchronous-unwind-tables")
# What GCC 12 makes vectors of by itself is wrong in several kinds of loops: with 3 or 5 guarded loads side by side,
# with iterations that read what the one before has written, with choices of converted integers. Vectors that a program
# has are written as such, and stay.
GCC_FLAGS = ("-fno-tree-loop-vectorize",)


def c_source(funcs: Sequence[PrimFunc], target: Target) -> str:
    """The functions as one file of C."""
    return source(funcs, fma=target.has_feature("fma"))


def compile_functions(funcs: Sequence[PrimFunc], target: Target) -> bytes:
    """The functions as one relocatable object file. TILEWRIGHT_DUMP=folder writes NAME.c there."""
    text = c_source(funcs, target)
    if config.get("DUMP"):
        config.dump(f"{funcs[0].name}.c", text)
    return compile_text(text, target)


def compile_text(text: str, target: Target) -> bytes:
    """C as an object file. Raises CodegenError where there is no compiler, or where it refuses the text.

    GCC 12 crashes over some vectors that it makes of loops; it is asked again for none.
    """
    compiler = linker(target.triple)
    command = [*compiler, *_FLAGS, f"-O{target.opt_level}", *_machine(target),
               *(GCC_FLAGS if _is_gcc(" ".join(compiler)) else ())]
    try:
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            path, out = Path(folder) / "kernel.c", Path(folder) / "kernel.o"
            path.write_text(text, encoding="utf-8")
            for more in ((), ("-fno-tree-vectorize",)):
                done = subprocess.run([*command, *more, str(path), "-o", str(out)], capture_output=True, text=True,
                                      errors="replace", env={**os.environ, "LC_ALL": "C"})
                if not done.returncode:
                    return out.read_bytes()
                if "internal compiler error" not in done.stderr:
                    break
    except OSError as error:
        raise CodegenError(with_hint(f"{command[0]} cannot compile the C code: {error}",
                                     "it needs a folder for temporary files, TMPDIR")) from None
    lines = done.stderr.strip().splitlines()
    raise CodegenError(with_hint(f"{command[0]} refuses the C code: " + "\n".join(lines[:20]),
                                 "TILEWRIGHT_DUMP=folder writes it there"))


def standalone(funcs: Sequence[PrimFunc], target: Target, others: Sequence[str]) -> bytes:
    """Raises CodegenError: what compiles C links as well, and is not here."""
    raise CodegenError(with_hint(f"{funcs[0].name}: there is no compiler to link what was made of C",
                                 "pip install 'tilewright[export]' brings one"))


def _machine(target: Target) -> list[str]:
    """The flags for the CPU: its instruction sets."""
    compiler = " ".join(linker(target.triple))
    contract = "-ffp-contract=fast" if _is_gcc(compiler) else "-ffp-contract=on"
    if config.get("STRICT_MATH"):
        contract = "-ffp-contract=off"
    if target.triple.split("-")[0] not in ("x86_64", "amd64"):
        return [contract]
    width = ["-mprefer-vector-width=512"] if target.has_feature("avx512f") else []
    return [contract, *width, *(f"-m{name}" for name in _SETS if target.has_feature(name))]


@functools.cache
def _is_gcc(compiler: str) -> bool:
    done = subprocess.run([*compiler.split(), "--version"], capture_output=True, text=True, errors="replace")
    return "clang" not in done.stdout and "zig" not in done.stdout


@functools.cache
def version() -> str:
    """What decides the code: the compiler, by what it says of itself; "none" where there is none."""
    try:
        command = linker(resolve_target("c").triple)
    except CodegenError:
        return "none"
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, errors="replace")
    return hashlib.sha256(done.stdout.encode()).hexdigest()[:16]
