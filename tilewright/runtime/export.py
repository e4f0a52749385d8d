"""Compiled functions as files: relocatable objects and shared libraries that stand alone.

Every file carries, beside the kernels, the support code (weak and hidden, so that many may be linked
together) and a description of its functions as JSON in the constant `__tilewright_module`.
"""
from __future__ import annotations

import base64
import importlib.util
import json
import os
import secrets
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tilewright.runtime import c_interface, elf, llvm, native
from tilewright.runtime.elf_join import joined
from tilewright.runtime.loader import Image
from tilewright.runtime.seal import SIZE, Data, find, is_sealed, is_whole, sealed
from tilewright.runtime.signature import Signature
from tilewright.runtime.signature_table import decode, encode
from tilewright.support.errors import ArgumentError, CodegenError, LoadError, described

LIBRARY_SUFFIXES = (".so", ".dylib")
INFO_SYMBOL = "__tilewright_module"
_BEGIN, _END = b"TILEWRIGHT-MODULE:", b":END-TILEWRIGHT"
_VERSION = 4                              # of the description: 3 has images for devices, 4 faults of calls
_OBJECT, _LIBRARY = "object", "library"
_SYSTEM_COMPILERS = ("cc", "gcc", "clang")


@dataclass(frozen=True)
class Exported:
    """What is written: object files for `triple` and the functions in them.

    kind: _OBJECT or _LIBRARY, which of the two was written; a library linked of our objects by others is an _OBJECT.
    """
    objects: Sequence[bytes]
    signatures: Mapping[str, Signature]
    entry_name: str
    triple: str
    merge: Callable[[Sequence[str]], bytes] | None = None     # the objects' code and other LLVM IR as one object
    aliases: Mapping[str, str] = field(default_factory=dict)  # other names of functions
    kind: str = "object"
    images: Sequence[Image] = ()              # code for devices, which the description of the functions holds

    @property
    def linked(self) -> dict[str, Signature]:
        """The functions in the objects."""
        return {name: s for name, s in self.signatures.items() if not any(name in i.functions for i in self.images)}


def as_path(method: str, path: object) -> Path:
    """path as a Path. Raises ArgumentError, with the method's name, for something else."""
    if not isinstance(path, (str, Path)) or not str(path) or "\0" in str(path):
        raise ArgumentError(f"{method}: {described(path)} is not a path")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ArgumentError(f"{method}: {ascii(str(path))} cannot be the name of a file") from None
    return Path(path)


def write_object(exported: Exported, path: str | Path, cc: str | None = None) -> None:
    """One relocatable object file. Raises ArgumentError for a path that does not end in .o.

    On a machine without a linker the support code is merged with the kernels before they become an object; where only
    objects are left of these, they are joined here.
    """
    if Path(path).suffix not in (".o", ".obj"):
        raise ArgumentError(f"save({str(path)!r}): unknown kind of file", "use .o or .so")
    if exported.merge is not None and cc is None and not has_linker(exported.triple):
        support = native.support_ir(exported.triple, exported=True)
        place(Path(path), sealed(exported.merge([support, _info_ir(exported), _entries_ir(exported)])))
        return
    if cc is None and not has_linker(exported.triple):
        place(Path(path), sealed(joined(_objects(exported))))
        return
    _link(exported, Path(path), ("-r",), cc)


def _objects(exported: Exported) -> list[bytes]:
    """The objects that make a file: kernels, support code, descriptions."""
    support = native.compile_support(exported.triple, exported=True)
    described_by = [llvm.object_of(ir(exported), exported.triple) for ir in (_info_ir, _entries_ir)]
    return [*exported.objects, support, *described_by]


def has_linker(triple: str) -> bool:
    """True when `linker` finds a command for the triple."""
    try:
        linker(triple)
    except CodegenError:
        return False
    return True


def place(path: Path, data: bytes, executable: bool = False) -> None:
    """Write a file, complete or not at all, that others may use as far as the umask grants it. Raises ArgumentError
    where the file system refuses."""
    if not path.parent.is_dir():
        raise ArgumentError(f"cannot write {path}: there is no folder {path.parent}")
    partial = path.with_name(f".{os.getpid()}-{secrets.token_hex(8)}.partial")
    try:
        mode = 0o777 if executable or path.suffix in LIBRARY_SUFFIXES else 0o666
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
        partial.replace(path)
    except OSError as error:
        raise ArgumentError(f"cannot write {path}: {error.strerror}") from None
    finally:
        with suppress(OSError):                   # it is in its place
            partial.unlink()


@contextmanager
def workplace() -> Iterator[str]:
    """A temporary folder. Raises ArgumentError where it cannot be made or filled."""
    try:
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            yield folder
    except OSError as error:
        raise ArgumentError(f"cannot write temporary files to {tempfile.gettempdir()}: {error.strerror}",
                            "TMPDIR names another folder") from None


def write_library(exported: Exported, path: str | Path, cc: str | None = None) -> None:
    """A shared library. Raises ArgumentError for a path that does not end in .so or .dylib."""
    if Path(path).suffix not in LIBRARY_SUFFIXES:
        raise ArgumentError(f"export_library({str(path)!r}): unknown kind of file",
                            "use .so (or .dylib), or .tar for an archive of the object")
    _link(replace(exported, kind=_LIBRARY), Path(path), shared_flags(exported.triple), cc)


def shared_flags(triple: str) -> tuple[str, ...]:
    """What tells the linker to make a shared library."""
    return ("-dynamiclib", "-undefined", "dynamic_lookup") if "darwin" in triple else ("-shared",)


def _link(exported: Exported, path: Path, flags: Sequence[str], cc: str | None) -> None:
    """Write all objects to a folder and let the linker make one file of them, complete or not at all."""
    with workplace() as folder:
        names = []
        for i, data in enumerate(_objects(exported)):
            names.append(str(Path(folder, f"{i}.o")))
            Path(names[-1]).write_bytes(data)
        result = str(Path(folder, f"result{path.suffix}"))
        if not path.parent.is_dir():
            raise ArgumentError(f"cannot write {path}: there is no folder {path.parent}")
        command = [*linker(exported.triple, cc), *flags, "-o", result, *names]
        if "-r" in flags:
            command.insert(len(linker(exported.triple, cc)), "-nostdlib")
        else:
            command += ["-lm", *_keeping(_public(exported), exported.triple, folder)]
        run_linker(command)
        if not Path(result).is_file():
            raise CodegenError(f"the linker wrote nothing: {' '.join(command)}")
        data = Path(result).read_bytes()
        place(path, sealed(data) if "-r" in flags else linked(data))


def _public(exported: Exported) -> list[str]:
    """What other code may use of a library."""
    return [*c_interface.c_names(exported.linked).values(), "tilewright_*", "__tvm_ffi_*", INFO_SYMBOL]


def _keeping(public: Sequence[str], triple: str, folder: str) -> list[str]:
    """What tells the linker to keep all other symbols of a library to itself.

    Kernels are named by what they compute: of two libraries of a program one would call those of the other, which may
    be for another target. (On macOS a library calls its own.)
    """
    if "darwin" in triple:
        return []
    script = Path(folder, "public")
    script.write_text(f"{{ global: {' '.join(f'{name};' for name in public)} local: *; }};\n")
    return ["-Xlinker", f"--version-script={script}"]


def linked(data: bytes) -> bytes:
    """A library that a linker wrote, with its checksum where that is possible: a Mach-O one ends with a signature."""
    return sealed(data) if elf.is_elf(data) else data


def run_linker(command: Sequence[str], folder: str | None = None) -> None:
    """Run a command in a folder. Raises CodegenError with what it said where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                              cwd=folder)
    except OSError as error:
        raise CodegenError(f"the linker cannot be started: {error}") from None
    if done.returncode != 0:
        raise CodegenError(f"the linker failed ({done.returncode}): {' '.join(command)}\n\n"
                           f"{done.stderr.strip()}")


def linker(triple: str, cc: str | None = None) -> list[str]:
    """The command that links for a triple: `cc`, else the system's compiler, else the ziglang wheel's.

    Raises CodegenError when there is none.
    """
    if cc is not None:
        if not isinstance(cc, str) or not cc.split():
            raise ArgumentError(f"cc is {cc!r}, not a command", 'name a linker, e.g. cc="gcc"')
        return cc.split()
    here = _platform(triple) == _platform(llvm.host_triple())
    machine, system, library = _platform(triple)
    cross = [f"{machine}-linux-gnu-gcc"] if (system, library) == ("linux", "gnu") else []
    for name in _SYSTEM_COMPILERS if here else cross:
        found = shutil.which(name)
        if found:
            return [found]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc", "-target", "-".join(filter(None, _platform(triple)))]
    raise CodegenError(f"there is no C compiler to link for {triple}",
                       "pip install 'tilewright[export]' brings one, or name yours: export_library(path, cc=...)")


def _platform(triple: str) -> tuple[str, str, str]:
    """Machine, system and C library of a triple, as Zig names them."""
    machine = triple.split("-")[0].replace("arm64", "aarch64")
    if "darwin" in triple or "macos" in triple:
        return machine, "macos", ""
    return machine, "linux", "musl" if "musl" in triple else "gnu"


def _info_ir(exported: Exported) -> str:
    """LLVM IR with the description of the functions as its only constant."""
    tables = {name: base64.b64encode(encode(s)).decode() for name, s in exported.signatures.items()}
    text = json.dumps({"version": _VERSION, "kind": exported.kind, "entry": exported.entry_name,
                       "triple": exported.triple, "functions": tables, "aliases": dict(exported.aliases),
                       "images": [(i.kind, base64.b64encode(i.data).decode(), i.functions) for i in exported.images]})
    data = _BEGIN + text.encode() + _END + b"\0"
    escaped = "".join(f"\\{b:02X}" for b in data)
    return (f'target triple = "{exported.triple}"\n'
            f'@{INFO_SYMBOL} = weak_odr constant [{len(data)} x i8] c"{escaped}"\n')


def _entries_ir(exported: Exported) -> str:
    return c_interface.entries(exported.linked, exported.triple)


def write_header(exported: Exported, path: Path) -> None:
    """The C header of the functions. Raises ArgumentError for a path that does not end in .h."""
    if path.suffix != ".h":
        raise ArgumentError(f"export_header({str(path)!r}): unknown kind of file", "use .h")
    place(path, c_interface.header(exported.linked, path.name).encode())


_AGAIN = "write it again with save, export_library or export; strip and objcopy take the checksum away"
WRITERS = "save and export_library of a module, and export of a model, write such files"


def read_file(data: Data, path: Path, method: str) -> tuple[int, Exported]:
    """(bytes of code, description) of an object or library: what can be known of it before any tool reads it.

    An object, and a library that export_library wrote, has its checksum. One that others linked of such objects need
    not have one; its headers and its description must be whole then. Raises LoadError, with the method's name.
    """
    is_library, size = path.suffix in LIBRARY_SUFFIXES, len(data)
    if is_sealed(data):
        if not is_whole(data):
            raise _refused(method, path, "is damaged: its checksum is another one", _AGAIN)
        size -= SIZE
    elif not is_library:
        if find(data, _BEGIN) >= 0:
            raise _refused(method, path, "is damaged, or was changed: it has no checksum at its end", _AGAIN)
        raise _refused(method, path, "was not written by Tilewright", f"{WRITERS}; link other objects into a library, "
                       "and load that by ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)")
    wrong = elf.defect(data, is_library, size) if elf.is_elf(data) else ""
    if wrong:
        raise _refused(method, path, f"is incomplete or damaged: {wrong}", _AGAIN)
    info = _description(data, path, method)
    if is_library and info.kind == _LIBRARY and elf.is_elf(data) and size == len(data):
        raise _refused(method, path, "is damaged, or was changed: it has no checksum at its end", _AGAIN)
    return size, info


def _refused(method: str, path: Path, what: str, hint: str) -> LoadError:
    return LoadError(f"{method}: {path} {what}", hint)


def _description(data: Data, path: Path, method: str) -> Exported:
    start = find(data, _BEGIN)
    end = find(data, _END, start) if start >= 0 else -1
    if start < 0 or end < 0:
        raise _refused(method, path, "was not written by Tilewright", f"{WRITERS}; ctypes.CDLL(path) loads any library")
    try:
        info: dict[str, Any] = json.loads(data[start + len(_BEGIN):end])
        version = info["version"]
        if version != _VERSION:
            raise _refused(method, path, f"has format {version}, this version reads {_VERSION}", _AGAIN)
        signatures = {str(name): decode(base64.b64decode(text)) for name, text in info["functions"].items()}
        aliases = {str(name): str(symbol) for name, symbol in info["aliases"].items()}
        entry, triple, kind = (str(info[name]) for name in ("entry", "triple", "kind"))
        images = [Image(str(k), base64.b64decode(text), tuple(map(str, names))) for k, text, names in info["images"]]
        return Exported((), signatures, entry, triple, aliases=aliases, kind=kind, images=images)
    except (ArgumentError, ValueError, LookupError, AttributeError, TypeError, struct.error, RecursionError):
        raise _refused(method, path, "is damaged: the description of its functions does not parse", _AGAIN) from None
