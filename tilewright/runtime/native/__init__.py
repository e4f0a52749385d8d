"""The native support code of compiled libraries: LLVM IR texts, put together for one target."""
from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

from tilewright.runtime import llvm
from tilewright.support.errors import TargetError

EXPORTS = ("tw_check_args", "tw_parallel", "tw_set_num_threads", "tw_num_threads", "tw_alloc", "tw_free",
           "tw_report", "tw_run", "tw_fault", "tw_call_packed", "tw_call_packed_pointer")
_FILES = ("check.ll", "overlap.ll", "scalar.ll", "refuse.ll", "fault.ll", "pool.ll", "registry.ll", "alloc.ll",
          "packed.ll")
_OWN_FILES = ("timing.ll", "ending.ll", "report.ll", "recover.ll", "guard.ll")      # not of exported libraries
_EXPORTED_FILES = ("standalone.ll",)                       # of these alone
_LITERAL = re.compile(r'\$"((?:[^"\\]|\\.)*)"')
_FIELD = re.compile(r"(?m)^  (%[\w.]+) = field (\w+), (%\w+) (%[\w.]+), (\d+)")
_ALIGNMENTS = {"i8": 1, "i32": 4, "i64": 8, "ptr": 8}
_PAUSES = {
    "x86": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}
# signal mask operation SIG_SETMASK, the dlopen flags RTLD_NOW | RTLD_NODELETE, the name of sigsetjmp
_SYSTEMS = {
    "linux": {"SIG_SETMASK": "2", "PIN_FLAGS": str(0x1002), "CLOCK_MONOTONIC": "1",
              "SIGSETJMP": "__sigsetjmp"},
    "darwin": {"SIG_SETMASK": "3", "PIN_FLAGS": str(0x82), "CLOCK_MONOTONIC": "6",
               "SIGSETJMP": "sigsetjmp"},
}


@functools.cache
def support_ir(triple: str, exported: bool = False) -> str:
    """LLVM IR of the thread pool, the allocator and the argument checker for a 64-bit target triple.

    `exported`: for a library that stands alone; its functions are weak and hidden then, so that every
    object file of a library may bring them along, and it needs no tvm-ffi. Raises TargetError for an operating system
    without POSIX threads.
    """
    system = _system(triple)
    files = (*_FILES, f"{system}.ll", *(_EXPORTED_FILES if exported else _OWN_FILES))
    texts = [_read(name) for name in files]
    pause, declaration = _PAUSES.get(_machine(triple), ("", ""))
    linkage = ({"LINKAGE": "weak hidden", "VARIABLE": "internal", "FFI": "extern_weak"} if exported
               else {"LINKAGE": "", "VARIABLE": "", "FFI": ""})
    values = {**_SYSTEMS[system], **linkage, "PAUSE": pause}
    text = "\n".join([f'target triple = "{triple}"', *texts, declaration])
    for name, value in values.items():
        text = text.replace(f"${name}", value)
    return _literals(_FIELD.sub(_load_field, text))


def support_key(triple: str, exported: bool = False) -> str:
    """Name under which the compiled support code may be cached: a hash of its text and LLVM's version."""
    text = f"{llvm.version()}\n{support_ir(triple, exported)}"
    return f"support-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def compile_support(triple: str, exported: bool = False) -> bytes:
    """The support code as an object file for any CPU of the target triple."""
    # the texts are in SSA form with the hot paths marked: inlining is all that the middle end could add
    return llvm.object_of(support_ir(triple, exported), triple, inline=True)


def _read(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _system(triple: str) -> str:
    if not re.search("64", triple.split("-")[0]):
        raise TargetError(f"the runtime has no 32-bit form, which {triple} needs", "64-bit targets are supported")
    if "linux" in triple:
        return "linux"
    if "darwin" in triple or "macos" in triple:
        return "darwin"
    raise TargetError(f"compiled code cannot run on {triple}", "Linux and macOS are supported")


def _machine(triple: str) -> str:
    name = triple.split("-")[0]
    if re.fullmatch(r"x86_64|i[3-6]86", name):
        return "x86"
    return "aarch64" if name in ("aarch64", "arm64") else name


def _load_field(match: re.Match[str]) -> str:
    """The two instructions of `%name = field i64, %struct %pointer, 2`: the address of the field, and its load."""
    name, dtype, struct, pointer, index = match.groups()
    return (f"  {name}.at = getelementptr {struct}, ptr {pointer}, i64 0, i32 {index}\n"
            f"  {name} = load {dtype}, ptr {name}.at, align {_ALIGNMENTS[dtype]}")


def _literals(text: str) -> str:
    """The text with every $"literal" replaced by a constant that holds it, NUL-terminated."""
    names: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        return names.setdefault(match[1], f"@tw.text.{len(names)}")

    text = _LITERAL.sub(name, text)
    lines = []
    for literal, symbol in names.items():
        data = literal.replace(r"\n", "\n").encode() + b"\0"
        escaped = "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in data)
        lines.append(f'{symbol} = private unnamed_addr constant [{len(data)} x i8] c"{escaped}"')
    return "\n".join([text, *lines, ""])
