"""`tvm.contrib.clang`: sources of C and C++ as LLVM IR, for `import_llvm`."""
from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tilewright.runtime import export
from tilewright.support.errors import ArgumentError, CodegenError, described

# What zig adds to clang by itself: traps for what is undefined, and the machine's own extras.
_PLAIN = ("-fno-sanitize=all", "-fno-stack-protector", "-fno-stack-check", "-g0")


def find_clang(required: bool = True) -> list[str]:
    """Commands that run clang: those of the system, and the one in the ziglang wheel.

    Raises CodegenError where there is none, unless it is not required.
    """
    found = [path for name in ("clang", *(f"clang-{n}" for n in range(22, 13, -1))) if (path := shutil.which(name))]
    if importlib.util.find_spec("ziglang") is not None:
        found.append(f"{sys.executable} -m ziglang cc")
    if required and not found:
        raise CodegenError("there is no clang", "pip install 'tilewright[export]' brings one")
    return found


def create_llvm(inputs: str | Sequence[str], output: str | None = None, options: Sequence[str] | None = None,
                cc: str | None = None) -> str:
    """The LLVM IR of one source: the name of a file, or the text of C++.

    `options` are added to the command, after -O2; `output` names a file that receives the text too. Raises
    ArgumentError for several sources, CodegenError where clang is missing or fails.
    """
    sources = [inputs] if isinstance(inputs, str) else list(inputs)
    if len(sources) != 1 or not isinstance(sources[0], str):
        raise ArgumentError(f"create_llvm: inputs is {described(inputs)}, expected one source",
                            "#include joins sources")
    command = (cc or find_clang()[0]).split() if cc is None or isinstance(cc, str) else [str(cc)]
    with export.workplace() as folder:
        source = Path(sources[0]) if "\n" not in sources[0] and Path(sources[0]).is_file() else Path(folder, "input.cc")
        if source.parent == Path(folder):
            source.write_text(sources[0])
        result = Path(folder, "output.ll")
        export.run_linker([*command, "-S", "-emit-llvm", "-O2", *_PLAIN, *(options or ()), "-o", str(result),
                           str(source)])
        if not result.is_file():
            raise CodegenError(f"create_llvm: {command[0]} wrote nothing")
        text = result.read_text()
    if output is not None:
        export.place(export.as_path("create_llvm", output), text.encode())
    return text
