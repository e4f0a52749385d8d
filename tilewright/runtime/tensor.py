"""Tensors: memory that compiled functions read and write, shared with NumPy, PyTorch and JAX."""
from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any

import numpy as np

from tilewright.runtime import ffi
from tilewright.runtime.device import Device, cpu, device, require_cpu
from tilewright.runtime.dtypes import dtype_name, dtype_string, numpy_dtype
from tilewright.runtime.errors import ElementError
from tilewright.support.errors import ArgumentError
from tilewright.support.views import View

ALIGNMENT = 64                      # bytes: a cache line, and the widest vector register
_CPU = cpu(0)
# Floats that NumPy does not know in DLPack: their bits travel as unsigned integers.
_AS_BITS = {name: numpy_dtype(name) for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")}
_NAME_OF = {dtype: name for name, dtype in _AS_BITS.items()}


class Tensor:
    """An n-dimensional array on a device.

    `shape` is a tuple of int, `dtype` a string. `np.from_dlpack(t)`, `np.asarray(t)` and
    `torch.from_dlpack(t)` share its memory; `t.numpy()` is a copy. Made by `array`, `empty` and
    `from_dlpack`.
    """
    __slots__ = ("_held", "shape", "dtype", "device", "__weakref__")

    def __init__(self, held: Any) -> None:
        header = ffi.dl_tensor(ffi.handle_of(held))
        self._held = held
        self.shape: tuple[int, ...] = tuple(header.shape[:header.ndim])
        self.dtype: str = dtype_name(header.dtype_code, header.dtype_bits, header.dtype_lanes)
        self.device: Device = _CPU if header.device_type == 1 else device(header.device_type, header.device_id)

    def __tvm_ffi_object__(self) -> Any:
        return self._held

    @property
    def writable(self) -> bool:
        """False for a tensor over memory that may only be read: `from_dlpack` of a read-only array."""
        return True

    def handle(self) -> Any:
        """The tvm-ffi tensor. The caller sees to it that nothing writes to it unless `writable`."""
        return self._held

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def data_ptr(self) -> int:
        """Address of the first element."""
        return ffi.address_of(self._held)

    @property
    def ctx(self) -> Device:
        """The device (its name before TVM 0.8)."""
        return self.device

    def numpy(self) -> np.ndarray:
        """A copy as a NumPy array."""
        return self._view().copy()

    asnumpy = numpy

    def copyfrom(self, source: Any) -> Tensor:
        """Overwrite the elements with those of an array of the same shape, converted to this dtype.

        Result: self. Raises ArgumentError when the shapes differ.
        """
        values = as_numpy(source)
        if values.shape != self.shape:
            raise ArgumentError(f"copyfrom: the source has shape {values.shape}, this tensor {self.shape}")
        _fill(self._view(), values)
        return self

    def copyto(self, target: Tensor | Device) -> Tensor:
        """Copy the elements into a tensor of this shape, or into a new one on a device; result: that tensor."""
        if isinstance(target, Tensor):
            return target.copyfrom(self)
        return array(self, target)

    def _view(self) -> np.ndarray:
        """The memory as a NumPy array (writable)."""
        require_cpu(self.device, "reading a tensor")
        if self.dtype not in _AS_BITS:
            try:
                return _writable(np.from_dlpack(self._held))
            except (RuntimeError, ValueError, BufferError) as error:
                raise ArgumentError(f"a tensor of shape {self.shape} and {self.dtype} cannot be read: "
                                    f"{error}") from None
        kind = _AS_BITS[self.dtype]
        capsule = ffi.retype(self._held.__dlpack__(), _bits_of(kind))
        return _writable(np.from_dlpack(ffi.Capsule(capsule, (1, 0)))).view(kind)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        view = self._view()
        if dtype is not None and np.dtype(dtype) != view.dtype:
            return view.astype(dtype)
        return view.copy() if copy else view

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("a Tilewright tensor is exported in place and on its own device only")
        if max_version is None or max_version[0] < 1:
            return self._held.__dlpack__()
        return self._held.__dlpack__(max_version=max_version)

    def to_dlpack(self) -> Any:
        """A DLPack capsule of the tensor, as `torch.utils.dlpack.from_dlpack` takes it."""
        return self.__dlpack__()

    def same_as(self, other: object) -> bool:
        """True when other is this tensor, or another handle to it."""
        return isinstance(other, Tensor) and self._held.__chandle__() == other._held.__chandle__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.__dlpack_device__()

    def __getitem__(self, index: Any) -> np.ndarray:
        with _explained(self, index):
            return self._view()[index].copy()

    def __setitem__(self, index: Any, value: Any) -> None:
        with _explained(self, index):
            self._view()[index] = as_numpy(value) if isinstance(value, Tensor) else value

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("a tensor of no dimensions has no length")
        return self.shape[0]

    def __float__(self) -> float:
        return float(self._scalar())

    def __int__(self) -> int:
        return int(self._scalar())

    def item(self) -> Any:
        """The only element, as a Python number. Raises ArgumentError when there are several."""
        return self._scalar().item()

    def _scalar(self) -> Any:
        if self.size != 1:
            raise ArgumentError(f"a tensor of shape {self.shape} is not one number")
        return self._view().reshape(())[()]

    def __reduce__(self) -> tuple[Any, ...]:
        return array, (self._view(), None, self.dtype)

    def __repr__(self) -> str:
        return f"<tilewright.Tensor shape={self.shape}, dtype={self.dtype}, {self.device!r}>\n{self._values()}"

    def _repr_html_(self) -> str:
        shape = ", ".join(map(str, self.shape))
        return View(f"tilewright.Tensor {self.dtype}[{shape}] on {self.device!r}",
                    listings=[("elements", self._values)]).html()

    def _values(self) -> str:
        return str(self._view()) if self.device.kind == "cpu" else "..."


class _ReadOnlyTensor(Tensor):
    """A tensor over memory that may only be read.

    tvm-ffi cannot mark one. So the conversion of arguments gets no handle, and `Function` decides by the parameter.
    """
    __slots__ = ()

    def __tvm_ffi_object__(self) -> Any:
        raise BufferError("the tensor is read-only")

    @property
    def writable(self) -> bool:
        return False

    def _view(self) -> np.ndarray:
        values = super()._view()
        values.flags.writeable = False
        return values

    def __dlpack__(self, **asked: Any) -> Any:
        return self._view().__dlpack__(**asked)


@contextmanager
def _explained(tensor: Tensor, index: Any) -> Iterator[None]:
    """NumPy's errors of an indexed access as ours."""
    try:
        yield
    except IndexError as error:
        raise ElementError(f"{index!r} of a tensor of shape {tensor.shape}: {error}") from None
    except (ValueError, TypeError, OverflowError) as error:
        raise ArgumentError(f"{index!r} of a tensor of shape {tensor.shape} and {tensor.dtype}: {error}") from None


def empty(shape: int | Sequence[int], dtype: Any = "float32", device: Device | None = None) -> Tensor:
    """A tensor of unspecified elements, its memory aligned to 64 bytes.

    Raises ArgumentError for a bad extent or dtype, or where there is not enough memory, TargetError for a
    device other than the CPU.
    """
    require_cpu(_CPU if device is None else device, "allocating a tensor")
    try:
        given = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        extents = tuple(map(operator.index, given))
    except Exception:                                      # whatever the object does when it is asked
        raise ArgumentError(f"the shape {shape!r} is not a tuple of integers") from None
    if isinstance(shape, (Mapping, Set)) or any(isinstance(n, bool) for n in given):
        raise ArgumentError(f"the shape {shape!r} is not a tuple of integers")
    if any(n < 0 for n in extents):
        raise ArgumentError(f"the shape {extents} has a negative extent")
    return _wrap(_aligned(extents, dtype_string(dtype)))


def array(source: Any, device: Device | None = None, dtype: Any = None) -> Tensor:
    """A new tensor with the elements of an array, tensor (of any library) or nested list.

    The dtype is the source's (float64 for Python floats, int64 for ints) unless given. Raises ArgumentError
    for a source that is no array of numbers, TargetError for a device other than the CPU.
    """
    values = as_numpy(source)
    if dtype is None:
        try:
            dtype = dtype_string(values.dtype)
        except ArgumentError:
            raise ArgumentError(f"an array of {values.dtype} cannot become a tensor", _CONVERT) from None
    wanted = dtype_string(dtype)
    if device is not None:
        require_cpu(device, "allocating a tensor")
    memory = _aligned(values.shape, wanted)
    _fill(memory, values)
    return _wrap(memory)


def _fill(memory: np.ndarray, values: np.ndarray) -> None:
    """Write values, converted. Raises ArgumentError for what cannot be, and for read-only memory."""
    if not memory.flags.writeable:
        raise ArgumentError("the tensor is read-only: it shares the memory of a read-only array")
    if values.dtype.kind == "c":
        raise ArgumentError(f"elements of {values.dtype} cannot become {memory.dtype}", "take x.real")
    try:
        np.copyto(memory, values, casting="unsafe")
    except (ValueError, TypeError, OverflowError) as error:
        raise ArgumentError(f"elements of {values.dtype} cannot become {memory.dtype}: {error}") from None


def from_dlpack(source: Any) -> Tensor:
    """A tensor that shares the memory of any object with `__dlpack__` (a NumPy array, a torch tensor).

    That of a read-only NumPy array, and of one of JAX, can be read alone: it is refused where a function writes.
    """
    if isinstance(source, Tensor):
        return source
    if isinstance(source, np.ndarray):
        return _wrap(source) if source.flags.writeable else _ReadOnlyTensor(share(source))
    shared = ffi.from_dlpack(source)
    return _ReadOnlyTensor(shared) if ffi.is_constant(source) else Tensor(shared)


def view(source: Any, name: str = "the source") -> Tensor:
    """The elements of an array for reading: its own memory where that is compact and row-major, else a copy.

    Read-only arrays are shared too, so nothing may be written to the result. Raises ArgumentError, with
    `name` in it, for something that is no array of numbers.
    """
    try:
        values = source if isinstance(source, Tensor) else as_numpy(source)
    except (BufferError, ArgumentError) as error:
        raise ArgumentError(f"{name} cannot become a tensor: {error}") from None
    if not _is_known(values.dtype):
        raise ArgumentError(f"{name} cannot become a tensor: its elements are {values.dtype}", _CONVERT)
    if isinstance(values, Tensor):
        return values
    return _wrap(values if values.flags.c_contiguous else np.array(values, order="C"))


_CONVERT = "convert it first, for instance x.astype('float32')"


def _is_known(dtype: Any) -> bool:
    """True where tensors have that dtype, in the byte order of this machine."""
    try:
        return bool(dtype_string(dtype)) and getattr(dtype, "isnative", True)
    except ArgumentError:
        return False


def as_numpy(source: Any) -> np.ndarray:
    """The elements of an array-like as a NumPy array, shared where possible. Raises ArgumentError."""
    if isinstance(source, np.ndarray):
        return source
    if isinstance(source, Tensor):
        return source._view()
    if isinstance(source, ffi.FFITensor):
        return Tensor(source)._view()
    if hasattr(source, "__dlpack__"):
        detach = getattr(source, "detach", None)             # a copy of a value needs no gradient
        value = detach() if detach else source
        return from_dlpack(value.resolve_neg() if ffi.is_negated(value) else value)._view()
    try:
        values = np.asarray(source)
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"{type(source).__name__} is not an array of numbers: {error}") from None
    if values.dtype == object:
        raise ArgumentError(f"{source!r} is not an array of numbers")
    return values


def share(values: np.ndarray) -> Any:
    """A tvm-ffi tensor over the memory of a NumPy array, read-only ones and all floats of 16 and 8 bits included.

    The caller sees to it that nothing writes to read-only memory. Raises BufferError for dtypes that DLPack
    has not.
    """
    values = _writable(values)
    name = _NAME_OF.get(values.dtype)
    if name is not None:
        return ffi.from_dlpack(ffi.retype(values.view(_bits_of(values.dtype)).__dlpack__(), name))
    return ffi.from_dlpack(values)


def _bits_of(kind: np.dtype) -> str:
    """The unsigned integer as wide as an element."""
    return f"uint{8 * kind.itemsize}"


class _Interface:
    """A second look at an array's memory, kept alive by it."""

    def __init__(self, values: np.ndarray) -> None:
        interface = dict(values.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__, self.owner = interface, values


def _writable(values: np.ndarray) -> np.ndarray:
    """The same memory as an array without the read-only flag, which DLPack before 1.0 cannot express."""
    if values.flags.writeable:
        return values
    if values.dtype in _NAME_OF:
        return _writable(values.view(_bits_of(values.dtype))).view(values.dtype)
    return np.asarray(_Interface(values))


def _aligned(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """New memory. Raises ArgumentError where there is not enough."""
    storage = numpy_dtype(dtype)
    size = math.prod(shape) * storage.itemsize
    try:
        raw = np.empty(size + ALIGNMENT, dtype=np.uint8)
        return np.ndarray(shape, storage, raw, -raw.__array_interface__["data"][0] % ALIGNMENT)
    except (MemoryError, ValueError, OverflowError):
        raise ArgumentError(f"a tensor of shape {shape} and {dtype} needs {size} bytes, which cannot be "
                            "allocated") from None


def _wrap(values: np.ndarray) -> Tensor:
    return Tensor(share(values))
