"""Arrays of the tensors in a file: what a tensor claims is compared with the bytes that are there before it is made."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.frontend.onnx.limits import MOST_BYTES, MOST_RANK
from tilewright.frontend.onnx.optional import onnx
from tilewright.frontend.onnx.stretches import LARGE, Stretch
from tilewright.graph.ir.deferred import Deferred, loaded
from tilewright.support.errors import ImportModelError
from tilewright.support.files import shown

DTYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool",
          10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16", 17: "float8_e4m3fn",
          19: "float8_e5m2"}
NARROW = {21: ("uint4", "uint8", 4), 22: ("int4", "int8", 4), 25: ("uint2", "uint8", 2), 26: ("int2", "int8", 2)}
CODES = {18: ("float8_e4m3fnuz", "uint8", 8), 20: ("float8_e5m2fnuz", "uint8", 8), 23: ("float4_e2m1fn", "uint8", 4),
         24: ("float8_e8m0fnu", "uint8", 8)}                 # floats that the graph has not: their bits
CODED = frozenset(kind for kind, _, _ in CODES.values())
PACKED = {**NARROW, **CODES}
NUMBERS = {**{name: number for number, name in DTYPES.items()}, **{n[0]: number for number, n in PACKED.items()}}
ReadExternal = Callable[[Any, str, int], Stretch]


def type_name(number: int) -> str:
    """The name of a data type of the format: FLOAT, INT4."""
    try:
        return str(onnx().TensorProto.DataType.Name(number))
    except ValueError:
        return f"number {number}"


def stored(number: int, what: str) -> tuple[str, str]:
    """(the type in the file, the type of the elements in the graph).

    Integers of 4 and 2 bits lie in ones of 8, floats that the graph has not are codes in uint8.

    Raises ImportModelError for types that the graph has not.
    """
    if number in DTYPES:
        return DTYPES[number], DTYPES[number]
    if number in PACKED:
        return PACKED[number][:2]
    raise ImportModelError(f"{what} has elements of the type {type_name(number)}, which is not supported")


def numpy_type(dtype: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, dtype) if dtype.startswith(("bfloat", "float8")) else dtype)


def tensor_of(tensor: Any, external: ReadExternal | None = None) -> tuple[np.ndarray | Deferred, str]:
    """(the elements of a TensorProto, its type in the file). Raises ImportModelError unless they fit its shape.

    Large ones that lie in a file are read when they are asked for.
    """
    what = f"the tensor {shown(repr(tensor.name))}"
    kind, dtype = stored(tensor.data_type, what)
    shape = claimed_shape(tensor.dims, what)
    count = math.prod(shape)
    bits = next((b for name, _, b in PACKED.values() if name == kind), 8 * numpy_type(dtype).itemsize)
    nbytes = (count * bits + 7) // 8
    if nbytes > MOST_BYTES:
        raise ImportModelError(f"{what} claims {nbytes} bytes")
    if tensor.HasField("segment"):
        raise ImportModelError(f"{what} is one segment of several, which is not supported")
    if tensor.data_location == 1:
        if external is None:
            raise ImportModelError(f"{what} lies in another file, and the model was not given by its path",
                                   "call from_onnx with the path of the file")
        place = external(tensor, what, nbytes)
        if place.stays and nbytes >= LARGE:
            return Deferred(shape, numpy_type(dtype), lambda: _elements(place.read(), bits, dtype, shape)), kind
        return _elements(place.read(), bits, dtype, shape), kind
    if not tensor.HasField("raw_data"):
        return _typed(tensor, kind, dtype, shape, what), kind
    if len(tensor.raw_data) != nbytes:
        raise ImportModelError(f"{what} of {kind}{list(shape)} claims {nbytes} bytes, and has {len(tensor.raw_data)}")
    return _elements(np.frombuffer(tensor.raw_data, "uint8").copy(), bits, dtype, shape), kind


def array_of(tensor: Any, external: ReadExternal | None = None) -> tuple[np.ndarray, str]:
    """As `tensor_of`, read at once."""
    found, kind = tensor_of(tensor, external)
    return loaded(found), kind


def _elements(raw: np.ndarray, bits: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """The elements that bytes of a file are."""
    if bits < 8:
        return unpacked(raw, math.prod(shape), bits, dtype).reshape(shape)
    return (raw != 0 if dtype == "bool" else raw.view(numpy_type(dtype))).reshape(shape)


def claimed_shape(dims: Any, what: str) -> tuple[int, ...]:
    """The extents that a tensor says it has."""
    if len(dims) > MOST_RANK:
        raise ImportModelError(f"{what} has {len(dims)} dimensions, at most {MOST_RANK} are read")
    shape = tuple(int(d) for d in dims)
    if any(d < 0 for d in shape):
        raise ImportModelError(f"{what} has the shape {list(shape)}, with a negative extent")
    if math.prod(d for d in shape if d) * 16 > 2**63:       # what NumPy has no array of, even without an element
        raise ImportModelError(f"{what} claims the shape {list(shape)}, which no array has")
    return shape


def _typed(tensor: Any, kind: str, dtype: str, shape: tuple[int, ...], what: str) -> np.ndarray:
    """The elements that stand in the field for their type, several to a number for 4 bits and less."""
    number, count = tensor.data_type, math.prod(shape)
    field = {1: "float_data", 7: "int64_data", 11: "double_data", 12: "uint64_data", 13: "uint64_data"}.get(
        number, "int32_data")
    data = getattr(tensor, field)
    bits = PACKED[number][2] if number in PACKED else 8
    wanted = (count * bits + 7) // 8 if bits < 8 else count
    if len(data) != wanted:
        raise ImportModelError(f"{what} of {kind}{list(shape)} needs {wanted} numbers in {field}, and has {len(data)}")
    try:
        if bits < 8:
            return unpacked(np.array(data, "int64").astype("uint8"), count, bits, dtype).reshape(shape)
        if number in (10, 16, 17, 18, 19, 20, 24):
            carrier = "uint16" if number in (10, 16) else "uint8"
            return np.array(data, "int64").astype(carrier).view(numpy_type(dtype)).reshape(shape)
        return np.array(data, "uint64" if field == "uint64_data" else None).astype(dtype).reshape(shape)
    except (ValueError, OverflowError) as error:
        raise ImportModelError(f"{what}: {error}") from None


def unpacked(data: np.ndarray, count: int, bits: int, dtype: str) -> np.ndarray:
    """Integers of 4 or 2 bits, the first one in the lowest bits of a byte, as ones of 8."""
    parts = [(data >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
    out = np.stack(parts, axis=-1).reshape(-1)[:count].astype("uint8")
    if dtype == "int8":
        return ((out ^ 2**(bits - 1)).astype("int8") - np.int8(2**(bits - 1))).astype("int8")
    return out


def dense_array(sparse: Any, external: ReadExternal | None, most: int) -> np.ndarray:
    """The elements of a SparseTensorProto, zeros included: at most so many bytes."""
    what = f"the sparse tensor {shown(repr(sparse.values.name))}"
    shape = claimed_shape(sparse.dims, what)
    values, _ = array_of(sparse.values, external)
    places, kind = array_of(sparse.indices, external)
    if kind != "int64":
        raise ImportModelError(f"{what} has indices of {kind}, int64 is needed")
    if math.prod(shape) * values.itemsize > most:
        raise ImportModelError(f"{what} claims {math.prod(shape)} elements, too many to write down its zeros")
    if places.ndim == 2 and places.shape[1] == len(shape) and places.size:
        for column, extent in zip(places.T, shape):
            if column.min() < 0 or column.max() >= extent:
                raise ImportModelError(f"{what} has an index outside of {list(shape)}")
        places = np.ravel_multi_index(tuple(places.T), shape)
    places = places.reshape(-1)
    if len(places) != values.size or places.size and (places.min() < 0 or places.max() >= math.prod(shape)):
        raise ImportModelError(f"{what} has {values.size} values at {len(places)} places of {math.prod(shape)}")
    out = np.zeros(math.prod(shape), values.dtype)
    out[places] = values.reshape(-1)
    return out.reshape(shape)
