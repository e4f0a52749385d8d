"""Modules: compiled functions with what they expect, runnable, exportable and loadable."""
from __future__ import annotations

import atexit
import hashlib
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.runtime import archive, export, ffi, timing
from tilewright.runtime.device import Device, require_cpu
from tilewright.runtime.function import Function
from tilewright.runtime.llvm import host_triple
from tilewright.runtime.loader import Image, Loaded, hold_threads_at_exit, load_images, runs_here
from tilewright.runtime.seal import Data
from tilewright.runtime.signature import Signature
from tilewright.runtime.signature_table import decode, encode, signatures_in
from tilewright.runtime.timing import BenchmarkResult
from tilewright.support.errors import (
    ArgumentError,
    CodegenError,
    LoadError,
    TargetError,
    described,
    flag,
    no_attribute,
    with_hint,
)
from tilewright.support.locks import ForkSafeLock
from tilewright.support.target import Target
from tilewright.support.views import View, Viewed, readable_bytes

ENTRY = "__tvm_main__"                    # TVM's name for whatever the entry function is called


class Module(Viewed):
    """Compiled functions: `m["name"]` is one of them, `m(...)` calls the entry function.

    A function goes by its symbol; `aliases` are other names of some: those that they had in the IRModule.
    `images` are the code of the functions, each for one kind of devices: those of the kind "object" are object files
    for `triple`, with each function as `__tvm_ffi_<name>`. All of a kind are loaded when the first of their functions
    is asked for, so that code for another machine can be made and saved here. `sources` gives readable forms by name
    ("ll", "s", "tir"), made on demand; `definitions` the IR of what a function computes. A pickled module carries its
    images alone: like every pickle it is to be loaded only from where code may come.
    """

    def __init__(self, images: Sequence[Image], signatures: Mapping[str, Signature],
                 entry_name: str | None = None, triple: str | None = None,
                 sources: Mapping[str, Callable[[], str]] | None = None,
                 merge: Callable[[Sequence[str]], bytes] | None = None,
                 aliases: Mapping[str, str] | None = None,
                 definitions: Mapping[str, Callable[[], Any]] | None = None,
                 files: Callable[[], Mapping[str, str | bytes]] | None = None) -> None:
        self.images, self.signatures = tuple(images), dict(signatures)
        self.entry_name = entry_name or next(iter(self.signatures), "main")
        self.aliases = {ENTRY: self.entry_name, **(aliases or {})}
        self.triple = triple or host_triple()
        self._sources, self._merge, self._definitions = dict(sources or {}), merge, dict(definitions or {})
        self._files = files
        self._functions: dict[str, Function] = {}
        self._entry: Function | None = None                     # the entry function, from the first call on
        self._imported: list[Module] = []
        self._loaded: dict[str, Loaded] = {}                    # by the kind of images
        self._lock = ForkSafeLock()

    @classmethod
    def of_objects(cls, objects: Mapping[str, bytes], target: Target) -> Module:
        """The module of the functions in some object files; the first one named is the entry function.

        The signatures are read from the objects. Raises ArgumentError when a named function has none.
        """
        found = {s.name: s for data in objects.values() for s in signatures_in(data)}
        missing = [name for name in objects if name not in found]
        if missing:
            raise ArgumentError(f"the objects hold no signature of {', '.join(missing)}")
        unique = [Image("object", data, tuple(s.name for s in signatures_in(data)))
                  for data in dict.fromkeys(objects.values())]
        signatures = {name: found[name] for name in (*objects, *found)}
        return cls(unique, signatures, next(iter(objects), None), target.triple)

    @property
    def objects(self) -> tuple[bytes, ...]:
        """The object files among the images."""
        return tuple(i.data for i in self.images if i.kind == "object")

    @property
    def names(self) -> tuple[str, ...]:
        """Symbols of the functions."""
        return tuple(self.signatures)

    def __getitem__(self, name: str) -> Function:
        found = self._functions.get(name) if type(name) is str else None
        return found if found is not None else self.get_function(name)

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        if (entry := self._entry) is None:
            entry = self._entry = self[self.entry_name]
        return entry(*args, **named) if named else entry(*args)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__.get("signatures", ())               # none yet while the object is made
        if name in own:
            raise AttributeError(with_hint(f"a module has no attribute {name!r}",
                                           f'its functions go by subscription: f["{name}"]'))
        raise no_attribute("a module", name, dir(self))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (
            self._symbol(name) in self.signatures or any(name in m for m in self._imported))

    def _symbol(self, name: str) -> str:
        return name if name in self.signatures else self.aliases.get(name, name)

    @property
    def imported_modules(self) -> list[Module]:
        """The modules whose functions this one has beside its own (`import_module`)."""
        return list(self._imported)

    def import_module(self, module: Module) -> None:
        """Find the functions of module by this one too, those of the same name here hiding them.

        Raises ArgumentError for what is no module, and for one that imports this one.
        """
        if not isinstance(module, Module):
            raise ArgumentError(f"import_module: {described(module)} is not a module")
        below = [module]
        for m in below:                                    # grows while it runs
            if m is self:
                raise ArgumentError(f"import_module: the module of {module.entry_name} imports this one")
            below += m.imported_modules
        self._imported.append(module)

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """True when there is a function of that name; query_imports: in the imported modules too."""
        return name in self if query_imports else isinstance(name, str) and self._symbol(name) in self.signatures

    def get_function(self, name: str, query_imports: bool = True) -> Function:
        """The function of that name. Raises ArgumentError when there is none, TargetError for foreign code."""
        if flag(query_imports, "get_function: query_imports") and not self.implements_function(name):
            for other in self._imported:
                if name in other:
                    return other.get_function(name)
        if not self.implements_function(name):
            raise ArgumentError(f"the module has no function {described(name)}; "
                                f"it has {', '.join(self.names) or 'none'}")
        symbol = self._symbol(name)
        with self._lock:
            if symbol not in self._functions:
                self._functions[symbol] = Function(self._code_of(symbol).function(symbol), symbol,
                                                   self.signatures[symbol], self._definitions.get(symbol))
            return self._functions.setdefault(name, self._functions[symbol])

    def _code_of(self, symbol: str) -> Loaded:
        """The loaded code of a function."""
        kind = next((i.kind for i in self.images if symbol in i.functions), "object")
        if kind not in self._loaded:
            if kind == "object" and not runs_here(self.triple):
                message = f"code for {self.triple} cannot run on this machine ({host_triple()})"
                raise TargetError(message, "save it (m.save, m.export_library) and load it there")
            self._loaded[kind] = load_images([i for i in self.images if i.kind == kind])
        return self._loaded[kind]

    def get_source(self, form: str = "") -> str:
        """A readable form of the code: "ll" (LLVM IR), "s" (assembly), "c", "tir"; if none is named, what the target's
        back end writes first. Raises ArgumentError for others.
        """
        form = {"asm": "s", "": next(iter(self._sources), "ll")}.get(form, form) if isinstance(form, str) else form
        if not isinstance(form, str) or form not in self._sources:
            raise ArgumentError(f"the module keeps no source {described(form)}; "
                                f"it has {', '.join(self._sources) or 'none'}")
        return self._sources[form]()

    def export_source(self, folder: str | Path) -> list[Path]:
        """Write files of C that need nothing of Tilewright to a folder, and return their paths.

        A header, the functions, and `main.c`, which calls each of them once; the constants of a graph in a file beside
        them, which the compiler includes. Parallel loops use OpenMP where the files
        are compiled with -fopenmp; -DTILEWRIGHT_SCALAR makes loops of the vectors. Arguments are not checked.
        Raises ArgumentError where the target has no source files (it has for "c") or the folder is not there,
        CodegenError for results and for scalars of 16 bits.
        """
        if self._files is None:
            raise ArgumentError("export_source: the module has no source files",
                                'build it for target="c" in this process')
        where = export.as_path("export_source", folder)
        out = []
        for name, data in self._files().items():
            export.place(where / name, data.encode() if isinstance(data, str) else data)
            out.append(where / name)
        return out

    def time_evaluator(self, func_name: str, dev: Device | None = None, number: int = 10, repeat: int = 1,
                       min_repeat_ms: float = 0, cooldown_interval_ms: float = 0, repeats_to_cooldown: int = 1, *,
                       ctx: Device | None = None) -> Callable[..., BenchmarkResult]:
        """A callable that measures the named function; see `timing.time_evaluator`. ctx: another name of dev."""
        dev = ctx if dev is None else dev
        if dev is not None:
            require_cpu(dev, f"time_evaluator of {func_name}")
        return timing.time_evaluator(self[func_name], number, repeat, min_repeat_ms, cooldown_interval_ms,
                                     repeats_to_cooldown)

    def save(self, path: str | Path, cc: str | None = None) -> None:
        """Write one relocatable object file (.o) that stands alone, or for a path in .so a shared library.

        Raises ArgumentError for another ending, CodegenError when linking fails. Without a linker on the machine
        the code is merged before it becomes an object; a module that was loaded from a file then cannot be saved.
        """
        path = export.as_path("save", path)
        if path.suffix in export.LIBRARY_SUFFIXES:
            self.export_library(path, cc)
        else:
            export.write_object(self._exported(), path, cc)

    def export_library(self, path: str | Path, cc: str | Callable[..., Any] | None = None,
                       fcompile: Callable[..., Any] | None = None) -> None:
        """Write a shared library for any tvm-ffi program (`tilewright.load_module`, `tvm_ffi.load_module`).

        The linker is `cc`, else the system's compiler or linker, else the one in the ziglang wheel.
        fcompile(path, [object file]), or a function as cc, links in its place. A path that ends in .tar receives the
        object in an archive instead, which takes no linker and which `load_module` reads.
        Raises CodegenError when there is none or it fails.
        """
        link, command = (cc, None) if callable(cc) else (fcompile, cc)
        if link is None and export.as_path("export_library", path).suffix == ".tar":
            link = _archived
        if link is None:
            export.write_library(self._exported(), export.as_path("export_library", path), command)
            return
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            objects = Path(folder, "lib.o")
            self.save(objects)
            made = export.as_path("export_library", path)
            link(str(made), [str(objects)])
            if not made.is_file():
                raise CodegenError(f"export_library: the given linker has made no file {made}",
                                   "fcompile(path, objects) writes the library to path")

    def export_header(self, path: str | Path) -> None:
        """Write a C header (.h) with a prototype of each function: `int NAME(const float *A, float *B, int64_t n);`.

        It serves what `export_library` and `save` write. A call returns 0, or -1 with a text in
        tilewright_last_error(). Raises ArgumentError for another ending.
        """
        export.write_header(self._exported(), export.as_path("export_header", path))

    def _exported(self) -> export.Exported:
        if self._imported:
            raise ArgumentError("a module with imported modules cannot be saved", "save each of them")
        return export.Exported(self.objects, self.signatures, self.entry_name, self.triple, self._merge, self.aliases,
                               images=tuple(i for i in self.images if i.kind != "object"))

    def __copy__(self) -> Module:
        return self                                    # as for Python's functions: code does not change

    def __deepcopy__(self, memo: object) -> Module:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """The images and what is known of their functions, with a checksum; the modules that are imported. The sources
        stay behind."""
        if not self.images:
            raise ArgumentError(f"the module of {self.entry_name} cannot be pickled: its code is in the "
                                "shared library that it was loaded from",
                                "load_module(path) loads it in the other process")
        tables = {name: encode(s) for name, s in self.signatures.items()}
        images = tuple((i.kind, i.data, i.functions) for i in self.images)
        content = (images, tables, self.entry_name, self.triple, self.aliases)
        return _unpickled, (content, _digest(content)), {"_imported": self._imported}

    def view(self) -> View:
        sizes: dict[str, int] = {}
        for i in self.images:
            sizes[i.kind] = sizes.get(i.kind, 0) + len(i.data)
        parts = [readable_bytes(n) + ("" if kind == "object" else f" for {kind}") for kind, n in sizes.items()]
        return View(f"tilewright.Module for {self.triple}, {' and '.join(parts) or 'a shared library'}",
                    [(f"{name}({', '.join(map(str, s.params))})",) for name, s in self.signatures.items()])


def _archived(path: str, objects: Sequence[str]) -> None:
    """Write the one object file to an archive."""
    export.place(Path(path), archive.packed({archive.MEMBER: Path(objects[0]).read_bytes()}))


def _digest(content: tuple[Any, ...]) -> str:
    """A checksum of what a pickled module holds."""
    return hashlib.sha256(repr(content).encode()).hexdigest()


def _unpickled(content: tuple[Any, ...], digest: str) -> Module:
    """The module that was pickled. Raises ArgumentError where the pickle is damaged: its code would crash."""
    if _digest(content) != digest:
        raise ArgumentError("the pickled module is damaged: its checksum is another one", "build it again")
    images, tables, entry_name, triple, aliases = content
    signatures = {name: decode(table) for name, table in tables.items()}
    return Module([Image(*fields) for fields in images], signatures, entry_name, triple, aliases=aliases)


class _Foreign:
    """A loaded shared library in the place of JIT-linked objects."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def function(self, name: str) -> Any:
        return self.module.get_function(name)


def load_module(path: str | Path) -> Module:
    """The module of an exported library (.so), object (.o) or archive of one (.tar).

    Raises LoadError when the file is damaged or not one that Tilewright wrote: before any of its code can run.
    """
    return read_module(path, "load_module")


def read_module(path: str | Path, method: str) -> Module:
    """`load_module` for a public function, which errors name."""
    path = export.as_path(method, path)
    is_library = path.suffix in export.LIBRARY_SUFFIXES
    try:
        if not path.is_file():
            raise ArgumentError(f"{method}: there is no file {path}", export.WRITERS)
        data = _mapped(path) if is_library else path.read_bytes()
    except (OSError, MemoryError) as error:
        why = getattr(error, "strerror", None) or "it is larger than the memory"
        raise ArgumentError(f"{method}: {path} cannot be read: {why}") from None
    if path.suffix == ".tar":
        data = archive.object_in(bytes(data), path, method)
    size, info = export.read_file(data, path, method)
    if not is_library:
        return _described(info, [Image("object", data[:size], tuple(info.linked))])
    try:
        loaded = ffi.load_library(str(_fresh(path.resolve())))
    except (RuntimeError, OSError) as error:
        raise LoadError(f"{method}: {path} cannot be loaded: {error}") from None
    hold_threads_at_exit()
    module = _described(info, [])
    module._loaded["object"] = _Foreign(loaded)
    return module


def _mapped(path: Path) -> Data:
    """The bytes of a file, which the process need not hold all at once."""
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""


def _described(info: export.Exported, objects: Sequence[Image]) -> Module:
    """The module of a file: images for devices, which its description holds, and what it was read for."""
    return Module([*info.images, *objects], info.signatures, info.entry_name, info.triple, aliases=info.aliases)


_State = tuple[int, int, int]
_loaded: dict[Path, _State] = {}
_copies: dict[tuple[Path, _State], Path] = {}


def _fresh(path: Path) -> Path:
    """path, or a copy of the file if it has changed since the process loaded it, or if the path means something else to
    the dynamic loader, which replaces $LIB and its like, or is no UTF-8, as tvm-ffi takes it.

    The dynamic loader knows libraries by their path and would hand out the old code.
    """
    info = path.stat()
    state = info.st_ino, info.st_size, info.st_mtime_ns
    is_plain = "$" not in str(path) and not any("\ud800" <= c <= "\udfff" for c in str(path))
    if is_plain and _loaded.setdefault(path, state) == state:
        return path
    if (path, state) not in _copies:
        folder = Path(tempfile.mkdtemp(prefix="tilewright-"))
        atexit.register(_remove, folder, os.getpid())
        _copies[path, state] = Path(shutil.copyfile(path, folder / f"library{path.suffix}"))
    return _copies[path, state]


def _remove(folder: Path, owner: int) -> None:
    """Remove the folder, unless this is a fork of the process that made it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
