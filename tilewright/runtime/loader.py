"""Images to callable code; object files by one LLVM JIT linker per process, the native support code linked once;
the names of functions for Linux `perf`."""
from __future__ import annotations

import atexit
import ctypes
import functools
import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tilewright.runtime import elf, ffi, llvm, native
from tilewright.runtime.llvm import host_triple
from tilewright.runtime.machine import group_cpus
from tilewright.support import config
from tilewright.support.errors import ArgumentError, CodegenError, TargetError, with_hint
from tilewright.support.locks import hold_over_fork

_lock = threading.RLock()
hold_over_fork(_lock, llvm.STILL)
_Loader = TypeVar("_Loader", bound=Callable[..., Any])
_numbers = itertools.count()
_object_cache: Callable[[str, Callable[[], bytes]], bytes] = lambda key, build: build()


def use_object_cache(cache: Callable[[str, Callable[[], bytes]], bytes]) -> None:
    """Let cache(key, build) supply the compiled support code; without one it is compiled in every process."""
    global _object_cache
    _object_cache = cache


class Loaded(Protocol):
    """Code in this process, or on a device."""

    def function(self, name: str) -> Any:
        """The function of that name, by the packed calling convention."""


@dataclass(frozen=True)
class Image:
    """Code of some functions for one kind of devices. kind: what loads it; "object" is an object file."""
    kind: str
    data: bytes
    functions: tuple[str, ...]


LOADERS: dict[str, Callable[[Sequence[Image]], Loaded]] = {}


def register_loader(kind: str) -> Callable[[_Loader], _Loader]:
    """Decorator: the function loads the images of a kind that one module has, together."""
    def keep(loader: _Loader) -> _Loader:
        LOADERS[kind] = loader
        return loader
    return keep


def load_images(images: Sequence[Image]) -> Loaded:
    """Images of one kind. Raises TargetError where nothing loads them."""
    kind = images[0].kind
    if kind not in LOADERS:
        raise TargetError(f"code for {kind!r} cannot run here: nothing is registered that loads it",
                          "get_source() shows it, and m.images has it")
    return LOADERS[kind](images)


class Library:
    """Loaded code. Its functions live as long as this object, which they keep alive."""

    def __init__(self, tracker: Any, objects: Sequence[bytes]) -> None:
        self._tracker, self._objects = tracker, objects
        self._addresses: dict[str, int] = {}

    def address(self, symbol: str) -> int:
        """Address of a symbol of the objects. Raises CodegenError where it, or one that it needs, is missing."""
        found = self._addresses.get(symbol)
        if found is None:
            with _lock:
                try:
                    second = _engine().lookup(self._tracker.name, symbol)
                except RuntimeError as error:
                    raise CodegenError(_reason(symbol, self._objects, str(error))) from None
                second.detach()                           # disposing of it would unload the library
            found = self._addresses[symbol] = second[symbol]
        return found

    def function(self, name: str) -> Any:
        """The packed function `__tvm_ffi_<name>` as a tvm-ffi Function."""
        return ffi.function_at(self.address(f"__tvm_ffi_{name}"), self)


@register_loader("object")
def _load_images(images: Sequence[Image]) -> Library:
    return load_objects([i.data for i in images])


def load_objects(objects: Sequence[bytes]) -> Library:
    """The object files (for this host) linked into this process.

    They may use each other's symbols, the support functions, libtvm_ffi and every symbol of the process.
    With TILEWRIGHT_PERF their addresses are written where `perf` looks for names.
    Raises CodegenError when an object is for another machine, or two define one symbol.
    """
    builder = llvm.library_builder(*map(elf.with_distinct_locals, objects))
    with _lock:
        for name, address in _support_addresses().items():
            builder.import_symbol(name, address)
        library = _link(builder, objects)
    if config.get("PERF"):
        write_names(objects, library.address)
    return library


def try_loading(data: bytes, triple: str) -> None:
    """Link an object file as `load_objects` does, if it is for this host; what it calls need not be there.

    Raises CodegenError, or ends the process: LLVM's linker knows no other way to refuse a section or a relocation.
    """
    entry = next((f.name for f in elf.functions(data) if f.exported), None)
    if not runs_here(triple) or entry is None:
        return
    builder = llvm.library_builder(data)
    for name in elf.symbols(data)[1]:
        builder.import_symbol(name, ffi.symbol_address(ffi.SYMBOLS[0]))
    _link(builder, [data]).address(entry)


def runs_here(triple: str) -> bool:
    """True when code for the triple is for this kind of machine (vendor names differ between tools)."""
    here, there = host_triple().split("-"), triple.split("-")
    system = [part for part in ("linux", "darwin", "macos", "windows") if part in triple]
    return here[0] == there[0] and (not system or system[0] in host_triple())


def _link(builder: Any, objects: Sequence[bytes]) -> Library:
    builder.add_current_process()
    for name in ffi.SYMBOLS:
        builder.import_symbol(name, ffi.symbol_address(name))
    try:
        return Library(builder.link(_engine(), f"library{next(_numbers)}"), objects)
    except RuntimeError as error:
        raise CodegenError(f"compiled code cannot be loaded: {error}") from None


def _reason(symbol: str, objects: Sequence[bytes], error: str) -> str:
    """Why looking up `symbol` failed: the symbols that nobody defines, where the object files can be read."""
    tables = [elf.symbols(data) for data in objects]
    known = set(native.EXPORTS).union(*(defined for defined, _ in tables))
    process = ctypes.CDLL(None)
    missing = sorted({name for _, undefined in tables for name in undefined - known
                      if not hasattr(process, name)})
    if not missing:
        return f"compiled code cannot be loaded: {symbol}: {error}"
    return with_hint(f"compiled code cannot be loaded: it calls {', '.join(missing)}, which this process does "
                     f"not have",
                     "load the library that has it first: ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)")


@functools.cache
def _engine() -> Any:
    engine = llvm.create_engine()
    _never_free(engine)
    return engine


@functools.cache
def _support() -> Library:
    triple = host_triple()
    data = _object_cache(native.support_key(triple), lambda: native.compile_support(triple))
    library = _link(llvm.library_builder(data), [data])
    _never_free(library)
    if config.get("PERF"):
        write_names([data], library.address)
    ctypes.c_int32.from_address(library.address("tw_own_errors")).value = 1
    hold_threads_at_exit()
    if quota := group_cpus():
        ctypes.c_int32.from_address(library.address("tw_quota")).value = quota
    return library


@functools.cache
def hold_threads_at_exit() -> None:
    """Let threads that call Python from a kernel wait while the interpreter ends; see native/ending.ll."""
    atexit.register(_hold_threads)


def _hold_threads() -> None:
    set_terminate = ffi.terminate_setter()
    if set_terminate is not None and len(sys._current_frames()) > 1:    # a second thread
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(support_address("tw_hold_threads"))(set_terminate)


def _never_free(obj: object) -> None:
    """Threads of the pool may run in this code while the interpreter shuts down."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(obj))


@functools.cache
def _support_addresses() -> dict[str, int]:
    return {name: _support().address(name) for name in native.EXPORTS}


def support_address(symbol: str) -> int:
    """Address of a function of the support code in this process."""
    with _lock:
        return _support().address(symbol)


@functools.cache
def helper(name: str) -> Any:
    """A packed helper of the support code as a tvm-ffi Function."""
    with _lock:
        return _support().function(name)


# the folder is everybody's: no link that somebody left there is followed, no pipe waited for
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def map_file() -> Path:
    """Where `perf` looks for the names of this process."""
    return Path(f"/tmp/perf-{os.getpid()}.map")


def write_names(objects: Sequence[bytes], address: Callable[[str], int]) -> None:
    """Append the functions of loaded objects to the map file; address: of an exported symbol.

    One line per function, `START SIZE name` in hexadecimal (Linux: tools/perf/Documentation/jit-interface.txt). Raises
    ArgumentError where the file cannot be written.
    """
    lines = [f"{start:x} {size:x} {name}\n" for data in objects for name, start, size in _placed(data, address)]
    try:
        with open(os.open(map_file(), _APPEND, 0o644), "a") as file:
            file.writelines(lines)
    except OSError as error:
        raise ArgumentError(f"TILEWRIGHT_PERF=1: {map_file()} cannot be written: {error.strerror}") from None


def _placed(data: bytes, address: Callable[[str], int]) -> Iterator[tuple[str, int, int]]:
    """(name, address, bytes) of each function: a local one lies where its section does, which an exported one tells."""
    found = elf.functions(data)
    base: dict[int, int] = {}
    for f in found:
        if f.exported and f.section not in base:
            base[f.section] = address(f.name) - f.offset
    for f in found:
        if f.section in base:
            yield f.name, base[f.section] + f.offset, f.size
