"""A first compilation in a process of its own, for code with LLVM IR of the user in it.

LLVM ends the process where it cannot compile what the IR says (an intrinsic that the target lacks, inline assembly, a
calling convention of another system), or cannot link what it has compiled (a section that its linker does not make),
and tells nobody before. So the first attempt may only end a child. Nothing of the code runs there.
"""
from __future__ import annotations

import functools
import json
import re
import subprocess
import sys

from tilewright.support.errors import CodegenError, with_hint

LIMIT_SECONDS = 60
# isolated, so that no folder of the caller's precedes the standard library, whose json reads the paths
_CHILD = """
import json, os, sys
job = json.load(sys.stdin)
sys.path[:] = job["path"]
from tilewright.codegen.llvm.compile import compile_linked
from tilewright.codegen.llvm.recovery import Fault
from tilewright.runtime.loader import try_loading
from tilewright.support.errors import CodegenError
from tilewright.support.target import Target
try:
    try_loading(compile_linked(*job["arguments"]), Target(job["arguments"][2]).triple)
except Fault:
    os._exit(1)
except CodegenError as error:
    print(error, file=sys.stderr, flush=True)
    os._exit(%d)
"""
_REFUSED = 3                                     # exit status of a child that leaves a CodegenError's message
_WHERE = re.compile(r"\n(PLEASE submit|Stack dump|Program arguments|#\d|Traceback)")


@functools.lru_cache(64)
def require_compilable(what: str, text: str, imports: tuple[str, ...], target: str) -> None:
    """Raise CodegenError unless LLVM compiles text with the imports for a target, and links it where that is here."""
    if not sys.executable:
        raise CodegenError(f"{what}: there is no Python interpreter to try the text in")
    job = {"path": sys.path, "arguments": (text, imports, target)}
    try:
        done = subprocess.run([sys.executable, "-I", "-c", _CHILD % _REFUSED], input=json.dumps(job), text=True,
                              capture_output=True, errors="replace", timeout=LIMIT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise CodegenError(f"{what}: LLVM does not finish the text in {LIMIT_SECONDS} s") from None
    except OSError as error:
        raise CodegenError(f"{what}: the text cannot be tried: {error}") from None
    if done.returncode == _REFUSED:
        raise CodegenError(done.stderr.strip())
    if done.returncode != 0:
        said = _WHERE.split("\n" + done.stderr)[0].strip() or f"it ends with status {done.returncode}"
        raise CodegenError(with_hint(f"{what}: LLVM cannot compile or link the text: {said}",
                                     f"the target is {target}"))

