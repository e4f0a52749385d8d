"""Everything Tilewright takes from apache-tvm-ffi, whose C layout is checked here at import.

tvm_ffi imports torch and the CUDA bindings where they are installed, which takes seconds. Compiled code needs
neither, so they are hidden from that one import, unless the program has loaded them already.
"""
from __future__ import annotations

import ctypes
import importlib.abc
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tilewright.runtime.dtypes import dl_dtype
from tilewright.runtime.errors import CallTypeError, CallValueError
from tilewright.support import errors


class _Hide(importlib.abc.MetaPathFinder):
    """Makes the named packages impossible to import, for the thread that made it."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names, self.thread = names, threading.get_ident()

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> None:
        if name.partition(".")[0] in self.names and threading.get_ident() == self.thread:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@contextmanager
def _without_heavy_imports() -> Iterator[None]:
    names = frozenset({"torch", "cuda", "torch_c_dlpack_ext"} - sys.modules.keys())
    finder = _Hide(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


with _without_heavy_imports():
    import tvm_ffi

VERSION = tvm_ffi.__version__
FFITensor = tvm_ffi.Tensor
FFIFunction = tvm_ffi.Function
LIBRARY: ctypes.CDLL = tvm_ffi.LIB
# entry points that the native support code calls
SYMBOLS = ("TVMFFIErrorSetRaisedFromCStr", "TVMFFIErrorMoveFromRaised", "TVMFFIFunctionGetGlobal",
           "TVMFFIFunctionCreate", "TVMFFIFunctionSetGlobal", "TVMFFIFunctionCall",
           "TVMFFIObjectDecRef", "TVMFFIObjectIncRef")
MAX_DIMENSIONS = 64                          # as NumPy has
TENSOR_OFFSET = 24                           # of the DLTensor inside a Tensor object


class DLTensor(ctypes.Structure):
    """DLPack's tensor header."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("dtype_code", ctypes.c_uint8), ("dtype_bits", ctypes.c_uint8),
                ("dtype_lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def _check_version() -> None:
    match = re.match(r"(\d+)\.(\d+)\.(\d+)(?:\.post(\d+))?", VERSION)
    parts = tuple(int(p or 0) for p in match.groups()) if match else (0, 0, 0, 0)
    if not (0, 1, 14, 1) <= parts < (0, 2, 0, 0) or parts == (0, 1, 15, 0):
        raise ImportError(f"Tilewright needs apache-tvm-ffi>=0.1.14.post1,!=0.1.15,<0.2; "
                          f"{VERSION} is installed")


def _check_layout() -> None:
    """The native argument checker reads these structs by offset."""
    probe = np.zeros((3, 5), dtype="float32")
    held = tvm_ffi.from_dlpack(probe)
    seen = dl_tensor(handle_of(held))
    as_expected = (seen.data == probe.ctypes.data and seen.ndim == 2
                   and (seen.device_type, seen.device_id) == (1, 0)
                   and (seen.dtype_code, seen.dtype_bits, seen.dtype_lanes) == dl_dtype("float32")
                   and (seen.shape[0], seen.shape[1]) == (3, 5) and seen.byte_offset == 0)
    if not as_expected:
        raise ImportError(f"apache-tvm-ffi {VERSION} lays tensors out in a way that Tilewright does not know")


def dl_tensor(handle: int) -> DLTensor:
    """The DLTensor inside the Tensor object at address `handle`."""
    return DLTensor.from_address(handle + TENSOR_OFFSET)


def address_of(tensor: Any) -> int:
    """Address of the first element of a tvm-ffi Tensor; 0 for an empty one without memory."""
    header = dl_tensor(handle_of(tensor))
    return (header.data or 0) + header.byte_offset


def handle_of(obj: Any) -> int:
    """Address of the C object behind a tvm-ffi object; the caller keeps the object alive."""
    return int(obj.__chandle__())


def from_dlpack(source: Any) -> Any:
    """A tvm-ffi Tensor that shares the memory of anything with `__dlpack__`, or of a capsule.

    Raises ArgumentError where its owner does, and for what can be no tensor.
    """
    try:
        tensor = tvm_ffi.from_dlpack(source)
    except Exception as error:
        why = str(error).partition("\n")[0] or f"it raised {type(error).__name__}"
        raise errors.ArgumentError(f"a {errors.type_name(source)} cannot be shared: {why}") from None
    wrong = "its elements are negated when they are read (x.resolve_neg() is a tensor of their values)" \
        if is_negated(source) else _what_is_wrong(dl_tensor(handle_of(tensor)))
    if wrong:
        raise errors.ArgumentError(f"a {errors.type_name(source)} cannot be shared: {wrong}")
    return tensor


def is_negated(source: Any) -> bool:
    """True for a tensor of torch whose memory holds the negative of its elements, which DLPack does not say."""
    asked = getattr(source, "is_neg", None)
    return asked is not None and "torch" in sys.modules and isinstance(source, sys.modules["torch"].Tensor) and asked()


def is_constant(source: Any) -> bool:
    """True for an array of JAX, which nobody may write, and DLPack does not say so."""
    return "jax" in sys.modules and isinstance(source, sys.modules["jax"].Array)


def _what_is_wrong(header: DLTensor) -> str:
    """Why no tensor has this header; "" where one may."""
    if not 0 <= header.ndim <= MAX_DIMENSIONS:
        return f"it has {header.ndim} dimensions, and a tensor 0 to {MAX_DIMENSIONS}"
    shape = tuple(header.shape[:header.ndim])
    if min(shape, default=0) < 0:
        return f"its shape {shape} has a negative extent"
    if math.prod(shape) * header.dtype_bits * header.dtype_lanes // 8 >= 1 << 63:
        return f"its shape {shape} has more elements than memory can hold"
    address = (header.data or 0) + header.byte_offset
    if 0 not in shape and header.device_type == 1 and not (header.data and 0 < address < 1 << 63):
        return f"its elements are at the address {header.data or 0:#x} + {header.byte_offset}"
    return ""


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def retype(capsule: Any, dtype: str) -> Any:
    """The same unconsumed DLPack capsule, its elements read as another dtype of the same size.

    NumPy knows no bfloat16 and no 8-bit floats in DLPack, so such arrays travel as unsigned integers.
    """
    header = DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    header.dtype_code, header.dtype_bits, header.dtype_lanes = dl_dtype(dtype)
    return capsule


class Capsule:
    """A DLPack producer around one capsule, for consumers that want an object (`numpy.from_dlpack`)."""

    def __init__(self, capsule: Any, device: tuple[int, int]) -> None:
        self._capsule, self._device = capsule, device

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def function_at(address: int, keep_alive: object) -> Any:
    """The packed function at a machine address, callable from Python; it keeps `keep_alive` alive."""
    return FFIFunction.__from_extern_c__(address, keep_alive_object=keep_alive)


def symbol_address(name: str) -> int:
    """Address of a C function of libtvm_ffi."""
    address = ctypes.cast(getattr(LIBRARY, name), ctypes.c_void_p).value
    assert address
    return address


def terminate_setter() -> int | None:
    """Address of `std::set_terminate` in the C++ library that tvm-ffi uses, or None."""
    found = getattr(LIBRARY, "_ZSt13set_terminatePFvvE", None)
    return None if found is None else ctypes.cast(found, ctypes.c_void_p).value


def register_global(name: str, function: Callable[..., Any], override: bool) -> None:
    """Enter function in the process-wide table of packed functions. Raises ValueError for a taken name."""
    tvm_ffi.register_global_func(name, function, override=override)


def get_global(name: str) -> Any | None:
    """The packed function of that name, or None."""
    return tvm_ffi.get_global_func(name, allow_missing=True)


def remove_global(name: str) -> None:
    """Take a name out of the table of packed functions."""
    tvm_ffi.registry.remove_global_func(name)


def load_library(path: str) -> Any:
    """The tvm-ffi module of a shared library, which stays loaded."""
    return tvm_ffi.load_module(path)


_check_version()
_check_layout()
for _kind in (*vars(errors).values(), CallValueError, CallTypeError):
    if isinstance(_kind, type) and issubclass(_kind, errors.TilewrightError):
        tvm_ffi.register_error(f"tilewright.{_kind.__name__}", _kind)
