"""Reads GGUF: metadata by name, and tensors, of which matrices may be in blocks of 32 that share a scale.

Source of the format: the specification of GGUF and the block types of ggml.
"""
from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.frontend.weights.blocks import BLOCK, HALF, Blocks
from tilewright.frontend.weights.files import DAMAGE, damage, mapped
from tilewright.runtime.export import as_path
from tilewright.support.errors import ImportModelError
from tilewright.support.files import shown

NUMBERS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8",
           12: "<f8"}
STRING, ARRAY = 8, 9
MOST_DIMENSIONS = 4
MOST_NAME = (1 << 16) - 1        # bytes of a name, as the format has it
MOST_VALUES = 1 << 22            # numbers and texts of the metadata: the words of a model are some 10^5
MOST_TENSORS = 1 << 16


@dataclass
class Gguf:
    """metadata: numbers, texts and lists by name; tensors: arrays, or Blocks, by name, in the order of rows."""
    metadata: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, np.ndarray | Blocks] = field(default_factory=dict)


def _q8_0(data: np.ndarray, rows: int, blocks: int) -> Blocks:
    """Blocks of a float16 scale and 32 int8."""
    parts = data.reshape(rows, blocks, 34)
    scale = np.ascontiguousarray(parts[:, :, :2]).view(np.float16)[:, :, 0].astype(np.float32)
    return Blocks(8, np.ascontiguousarray(parts[:, :, 2:]).view(np.int8).reshape(rows, blocks * BLOCK), scale)


def _q4_0(data: np.ndarray, rows: int, blocks: int) -> Blocks:
    """Blocks of a float16 scale and 16 bytes."""
    parts = data.reshape(rows, blocks, 18)
    scale = np.ascontiguousarray(parts[:, :, :2]).view(np.float16)[:, :, 0].astype(np.float32)
    return Blocks(4, np.ascontiguousarray(parts[:, :, 2:]).reshape(rows, blocks * HALF), scale)


PLAIN: dict[int, Any] = {0: np.float32, 1: np.float16, 24: np.int8, 25: np.int16, 26: np.int32, 27: np.int64,
                         28: np.float64, 30: ml_dtypes.bfloat16}
IN_BLOCKS: dict[int, tuple[int, Callable[[np.ndarray, int, int], Blocks]]] = {2: (18, _q4_0), 8: (34, _q8_0)}
NAMES = {2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K",
         13: "Q5_K", 14: "Q6_K", 15: "Q8_K"}


def read_gguf(path: str | Path) -> Gguf:
    """The metadata and tensors of a file. Plain tensors are views of the file, blocks are rearranged.

    The system ends a process that reads a view of a file which was cut off since. Raises ImportModelError for a file
    that is damaged or of another format, and for types of tensors that are not read, all of them at once.
    """
    data = mapped(as_path("read_gguf", path))
    try:
        return _Reader(data).file()
    except (*DAMAGE, struct.error) as why:
        raise ImportModelError(f"{path} is no file of GGUF, or damaged: {damage(why)}") from None


class _Reader:
    def __init__(self, data: np.ndarray) -> None:
        self.data, self.at, self.values = data, 0, 0
        self.bytes = memoryview(data)                        # type: ignore[arg-type]

    def take(self, size: int) -> bytes:
        if not 0 <= size <= self.data.size - self.at:
            raise ValueError(f"{size} bytes are asked for at byte {self.at}, of {self.data.size}")
        self.at += size
        return bytes(self.bytes[self.at - size:self.at])

    def number(self, kind: str) -> Any:
        return struct.unpack(kind, self.take(struct.calcsize(kind)))[0]

    def text(self) -> str:
        return self.take(self.number("<Q")).decode("utf-8", "replace")

    def name(self) -> str:
        """A text that names something."""
        size = self.number("<Q")
        if size > MOST_NAME:
            raise ValueError(f"a name of {size} bytes at byte {self.at}")
        return self.take(size).decode("utf-8", "replace")

    def count(self, more: int) -> None:
        """Count values of the metadata, which take more memory than bytes of the file. Raises ValueError for many."""
        self.values += more
        if self.values > MOST_VALUES:
            raise ValueError(f"the metadata has more than {MOST_VALUES} values")

    def value(self, kind: int) -> Any:
        self.count(1)
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            if kind not in NUMBERS:
                raise ValueError(f"a value of the type {kind}")
            return np.frombuffer(self.take(np.dtype(NUMBERS[kind]).itemsize), NUMBERS[kind])[0].item()
        of, count = self.number("<I"), self.number("<Q")
        if of in NUMBERS:
            self.count(count)
            return np.frombuffer(self.take(count * np.dtype(NUMBERS[of]).itemsize), NUMBERS[of]).tolist()
        return [self.value(of) for _ in range(count)]

    def file(self) -> Gguf:
        if self.take(4) != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        version = self.number("<I")
        if version not in (2, 3):
            other = int.from_bytes(version.to_bytes(4, "little"), "big")
            raise ValueError("its numbers have their highest byte first" if other in (2, 3) else f"version {version}")
        tensors, count = self.number("<Q"), self.number("<Q")
        if tensors > MOST_TENSORS:
            raise ValueError(f"it has {tensors} tensors, at most {MOST_TENSORS} are read")
        found = Gguf()
        for _ in range(count):
            name = self.name()
            if name in found.metadata:
                raise ValueError(f"{name} is there twice")
            found.metadata[name] = self.value(self.number("<I"))
        rows = [self.row() for _ in range(tensors)]
        twice = next((name for name, n in Counter(row[0] for row in rows).items() if n > 1), None)
        if twice is not None:
            raise ValueError(f"the tensor {twice} is there twice")
        unit = found.metadata.get("general.alignment", 32)
        if not isinstance(unit, int) or unit < 1:
            raise ValueError(f"general.alignment is {unit}")
        start = -(-self.at // unit) * unit
        unread = {f"{name}: {NAMES.get(kind, f'type {kind}')}" for name, _, kind, _ in rows
                  if kind not in PLAIN and kind not in IN_BLOCKS}
        if unread:
            raise ImportModelError(f"{len(unread)} of {len(rows)} tensors are of types that are not read: "
                                   f"{shown(', '.join(sorted(unread)[:8]))}",
                                   "convert the file to Q8_0, Q4_0, F16 or F32")
        sizes = [_size(shape, kind) for _, shape, kind, _ in rows]
        _check_apart([(offset, size, name) for (name, _, _, offset), size in zip(rows, sizes)])
        for (name, shape, kind, offset), nbytes in zip(rows, sizes):
            found.tensors[name] = self.tensor(shape, kind, start + offset, nbytes)
        return found

    def row(self) -> tuple[str, list[int], int, int]:
        """(name, shape, type, offset) of a tensor."""
        name, rank = self.name(), self.number("<I")
        if rank > MOST_DIMENSIONS:
            raise ValueError(f"{name} has {rank} dimensions")
        shape = [self.number("<Q") for _ in range(rank)][::-1]
        return name, shape, self.number("<I"), self.number("<Q")

    def tensor(self, shape: list[int], kind: int, at: int, size: int) -> np.ndarray | Blocks:
        if size > self.data.size - at:
            raise ValueError(f"a tensor {shape} of {size} bytes at byte {at}, of {self.data.size}")
        part = self.data[at:at + size]
        if kind in PLAIN:
            return part.view(PLAIN[kind]).reshape(shape)
        return IN_BLOCKS[kind][1](part, shape[0], shape[1] // BLOCK)


def _size(shape: list[int], kind: int) -> int:
    """The bytes of a tensor."""
    count = math.prod(shape)
    if kind in PLAIN:
        return count * int(np.dtype(PLAIN[kind]).itemsize)
    if len(shape) != 2 or shape[1] % BLOCK:
        raise ValueError(f"blocks of {BLOCK} elements in the shape {shape}")
    return count // BLOCK * IN_BLOCKS[kind][0]


def _check_apart(places: list[tuple[int, int, str]]) -> None:
    """Raises ValueError for tensors, each (begin, bytes, name), that share bytes: blocks of them would be copied."""
    end, last = 0, ""
    for begin, size, name in sorted(places):
        if begin < end and size:
            raise ValueError(f"the tensors {last} and {name} share bytes")
        if begin + size > end:
            end, last = begin + size, name
