"""Files of parameters as TVM writes them: names and arrays."""
from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilewright import runtime
from tilewright.runtime import Tensor
from tilewright.runtime.dtypes import numpy_dtype
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import ArgumentError, LoadError, described

_LIST, _ARRAY = 0xF7E58D4F05049CB7, 0xDD5E40F096B4A13F
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}
_CPU = 1


def save_param_dict(params: Mapping[str, Any]) -> bytearray:
    """The bytes that hold arrays by their names."""
    if not isinstance(params, Mapping):
        raise ArgumentError(f"save_param_dict takes a dict of arrays, not {described(params)}")
    out = bytearray(struct.pack("<QQQ", _LIST, 0, len(params)))
    for name in params:
        text = str(name).encode()
        out += struct.pack("<Q", len(text)) + text
    out += struct.pack("<Q", len(params))
    for value in params.values():
        array = as_numpy(value) if isinstance(value, Tensor) else np.asarray(value)
        code, bits = _code(array)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        out += struct.pack("<QQiiiBBH", _ARRAY, 0, _CPU, 0, array.ndim, code, bits, 1)
        out += struct.pack(f"<{array.ndim}q", *array.shape) + struct.pack("<q", array.nbytes) + array.tobytes()
    return out


def load_param_dict(param_bytes: bytes | bytearray) -> dict[str, Tensor]:
    """The arrays in bytes that save_param_dict, of TVM or ours, gave. Raises LoadError where they are damaged."""
    if not isinstance(param_bytes, (bytes, bytearray, memoryview)):
        raise ArgumentError(f"load_param_dict takes bytes, not {described(param_bytes)}",
                            'open(path, "rb").read() gives those of a file')
    reader = _Reader(bytes(param_bytes))
    magic, _, count = reader.take("<QQQ")
    if magic != _LIST:
        raise LoadError("load_param_dict: these are no parameters", "nnvm.compiler.save_param_dict writes them")
    names = [reader.text() for _ in range(count)]
    if reader.take("<Q") != (count,) or len(set(names)) != count:
        raise LoadError(f"load_param_dict: {count} names, of which some are the same, or another number of arrays")
    return {name: reader.array(name) for name in names}


def save_param_dict_to_file(params: Mapping[str, Any], path: str) -> None:
    """Write save_param_dict(params) to a file."""
    Path(path).write_bytes(save_param_dict(params))


def load_param_dict_from_file(path: str) -> dict[str, Tensor]:
    """The arrays in a file."""
    return load_param_dict(Path(path).read_bytes())


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self.bytes(struct.calcsize(form)))

    def bytes(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise LoadError(f"load_param_dict: the bytes end after {len(self.data)}, {self.at + count} are needed")
        self.at += count
        return self.data[self.at - count:self.at]

    def text(self) -> str:
        try:
            return self.bytes(*self.take("<Q")).decode()
        except UnicodeDecodeError:
            raise LoadError("load_param_dict: a name is no text") from None

    def array(self, name: str) -> Tensor:
        magic, _, _, _, ndim, code, bits, lanes = self.take("<QQiiiBBH")
        if magic != _ARRAY or lanes != 1 or code not in _KINDS or not 0 <= ndim <= 64:
            raise LoadError(f"load_param_dict: {name} is no array, or of a dtype that is not known")
        shape = self.take(f"<{ndim}q")
        nbytes, = self.take("<q")
        dtype = numpy_dtype("bool" if (code, bits) == (1, 1) else f"{_KINDS[code]}{bits}")
        if min(shape, default=0) < 0 or nbytes != dtype.itemsize * int(np.prod(shape, dtype="int64")):
            raise LoadError(f"load_param_dict: {name} of the shape {shape} has {nbytes} bytes")
        return runtime.array(np.frombuffer(self.bytes(nbytes), dtype).reshape(shape))


def _code(array: np.ndarray) -> tuple[int, int]:
    """TVM's number of the kind of a dtype, and its bits."""
    if array.dtype.kind == "b":
        return 1, 1
    kind = {"i": 0, "u": 1, "f": 2}.get(array.dtype.kind)
    if kind is None and array.dtype.name == "bfloat16":
        kind = 4
    if kind is None or array.dtype.itemsize > 8:
        raise ArgumentError(f"save_param_dict: arrays of {array.dtype} are not taken")
    return kind, array.dtype.itemsize * 8


NAMES: dict[str, Any] = {"save_param_dict": save_param_dict, "load_param_dict": load_param_dict}
FILES: dict[str, Any] = {"save_param_dict_to_file": save_param_dict_to_file,
                         "load_param_dict_from_file": load_param_dict_from_file}
