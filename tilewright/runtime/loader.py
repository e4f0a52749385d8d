"""Object files to callable code: one LLVM JIT linker per process, with the native support code linked once."""
from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import llvmlite.binding as llvm

from tilewright.runtime import ffi, native
from tilewright.runtime.cpus import group_cpus
from tilewright.support.errors import CodegenError

_lock = threading.RLock()
_numbers = itertools.count()
_object_cache: Callable[[str, Callable[[], bytes]], bytes] = lambda key, build: build()


def use_object_cache(cache: Callable[[str, Callable[[], bytes]], bytes]) -> None:
    """Let cache(key, build) supply the compiled support code; without one it is compiled in every process."""
    global _object_cache
    _object_cache = cache


class Library:
    """Loaded code. Its functions live as long as this object, which they keep alive."""

    def __init__(self, tracker: Any, addresses: dict[str, int]) -> None:
        self._tracker, self._addresses = tracker, addresses

    def address(self, symbol: str) -> int:
        """Address of one of the symbols that were asked for at loading."""
        return self._addresses[symbol]

    def function(self, name: str) -> Any:
        """The packed function `__tvm_ffi_<name>` as a tvm-ffi Function."""
        return ffi.function_at(self._addresses[f"__tvm_ffi_{name}"], self)


def load_objects(objects: Sequence[bytes], symbols: Iterable[str]) -> Library:
    """The object files (for this host) linked into this process; `symbols` are those whose addresses are wanted.

    They may use the support functions, libtvm_ffi and every symbol of the process. Raises CodegenError where a
    symbol is missing or the object is for another machine.
    """
    builder = llvm.JITLibraryBuilder()
    for data in objects:
        builder.add_object_img(data)
    wanted = list(dict.fromkeys(symbols))
    with _lock:
        for name, address in _support_addresses().items():
            builder.import_symbol(name, address)
        return Library(*_link(builder, wanted))


def _link(builder: Any, wanted: Sequence[str]) -> tuple[Any, dict[str, int]]:
    builder.add_current_process()
    for name in ffi.SYMBOLS:
        builder.import_symbol(name, ffi.symbol_address(name))
    for name in wanted:
        builder.export_symbol(name)
    try:
        tracker = builder.link(_engine(), f"library{next(_numbers)}")
    except RuntimeError as error:
        raise CodegenError(f"compiled code cannot be loaded: {error}") from None
    return tracker, {name: tracker[name] for name in wanted}


@functools.cache
def host_triple() -> str:
    return llvm.get_process_triple()


@functools.cache
def _engine() -> Any:
    native.initialize_targets()
    engine = llvm.create_lljit_compiler()
    _never_free(engine)
    return engine


@functools.cache
def _support() -> Library:
    triple = host_triple()
    data = _object_cache(native.support_key(triple), lambda: native.compile_support(triple))
    builder = llvm.JITLibraryBuilder().add_object_img(data)
    tracker, addresses = _link(builder, (*native.EXPORTS, *native.VARIABLES, *native.HELPERS))
    _never_free(tracker)
    ctypes.c_int32.from_address(addresses["tw_own_errors"]).value = 1
    ctypes.c_int32.from_address(addresses["tw_quota"]).value = group_cpus() or 0
    return Library(tracker, addresses)


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
