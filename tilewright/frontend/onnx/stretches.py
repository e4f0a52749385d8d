"""Stretches of a file, read when they are asked for, and the message of a model without its large tensors.

Source of the encoding: the documentation of Protocol Buffers.
"""
from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tilewright.frontend.onnx.limits import MOST_FIELDS
from tilewright.frontend.onnx.optional import onnx
from tilewright.support.errors import ImportModelError
from tilewright.support.files import open_regular

LARGE = 1 << 16                        # bytes of a tensor from which on it stays in the file until it is used
OWN = "\0"                             # the location of a tensor that lies in the file of the model itself
_GRAPH, _INITIALIZER, _RAW, _EXTERNAL, _LOCATION = 7, 5, 9, 13, 14       # fields of the messages of ONNX
_BYTES = 2                             # the kind of a field that says how long it is
_FIXED = {1: 8, 5: 4}                  # bytes of fields of other kinds


class OpenFile:
    """A regular file that stays open, so that it is read even when its name is gone."""

    def __init__(self, path: Path, what: str) -> None:
        """Raises OSError, and ImportModelError for what is no regular file; pipes are not waited for."""
        self.path, self.what = path, what
        self.number, self._status = open_regular(path, what)
        weakref.finalize(self, os.close, self.number)

    @property
    def size(self) -> int:
        return self._status.st_size

    def read(self, begin: int, count: int) -> np.ndarray:
        """`count` bytes. Raises ImportModelError for a file that has changed since it was opened."""
        try:
            out = np.empty(count, "uint8")
            view, done = out.data, 0
            while done < count:
                got = os.preadv(self.number, [view[done:]], begin + done)
                if not got:
                    break
                done += got
            now = os.fstat(self.number)
        except MemoryError:
            raise ImportModelError(f"{self.what}: there is no memory for {count} bytes of it",
                                   "import the model where there is more") from None
        except OSError as error:
            raise ImportModelError(f"{self.what}: {error.strerror or error}") from None
        same = (now.st_size, now.st_mtime_ns) == (self._status.st_size, self._status.st_mtime_ns)
        if done < count or not same:
            raise ImportModelError(f"{self.what} was changed after it was opened, and has the weights of a model",
                                   "import the model again; write new files under new names")
        return out


@dataclass(frozen=True)
class Stretch:
    """Bytes of a file. stays: they can be read as long as anybody may want them."""
    file: OpenFile
    begin: int
    count: int
    stays: bool

    def read(self) -> np.ndarray:
        """The bytes."""
        return self.file.read(self.begin, self.count)


@dataclass(frozen=True)
class _Field:
    number: int
    kind: int
    begin: int
    at: int                            # where its value begins
    end: int


class _Malformed(Exception):
    """Bytes that are no message, or one of too many fields."""


def message_without_tensors(file: OpenFile) -> bytes | None:
    """The ModelProto of a file with large tensors of its graph replaced by external ones, whose location is OWN.

    None for what cannot be read so: the whole of the file says what is wrong with it.
    """
    with open(file.number, "rb", closefd=False) as stream:
        try:
            parts = _Walk(stream).message(0, file.size, (_GRAPH, _INITIALIZER))
        except _Malformed:
            return None
    if parts is None:
        return None
    return b"".join(p if isinstance(p, bytes) else file.read(p.start, len(p)).tobytes() for p in parts)


_Part = range | bytes                  # of a file, or other bytes


class _Walk:
    """Goes through a message field by field. What `message` gives are parts of it, None where it stays as it is."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.fields = 0

    def message(self, begin: int, end: int, way: Sequence[int]) -> list[_Part] | None:
        """A message in which tensors that lie below the fields `way` are replaced."""
        if not way:
            return self._tensor(begin, end)
        parts: list[_Part] = []
        kept = begin
        for f in self._fields(begin, end):
            if f.number == way[0] and f.kind == _BYTES and f.end - f.at >= LARGE:
                inner = self.message(f.at, f.end, way[1:])
                if inner is not None:
                    head = _varint(f.number << 3 | _BYTES) + _varint(sum(map(len, inner)))
                    parts += [range(kept, f.begin), head, *inner]
                    kept = f.end
        return [*parts, range(kept, end)] if parts else None

    def _tensor(self, begin: int, end: int) -> list[_Part] | None:
        """A TensorProto that says where its bytes are."""
        found = [f for f in self._fields(begin, end) if f.number in (_RAW, _EXTERNAL, _LOCATION)]
        if len(found) != 1 or found[0].number != _RAW or found[0].kind != _BYTES:
            return None
        f = found[0]
        if f.end - f.at < LARGE:
            return None
        place = onnx().TensorProto(data_location=onnx().TensorProto.EXTERNAL)
        for key, value in (("location", OWN), ("offset", str(f.at)), ("length", str(f.end - f.at))):
            place.external_data.add(key=key, value=value)
        return [range(begin, f.begin), place.SerializeToString(), range(f.end, end)]

    def _fields(self, begin: int, end: int) -> Iterator[_Field]:
        at = begin
        while at < end:
            self.fields += 1
            self.stream.seek(at)
            head = self.stream.read(20)
            tag, used = _number(head, 0)
            number, kind = tag >> 3, tag & 7
            if kind == _BYTES:
                count, used = _number(head, used)
            elif kind == 0:
                count = _number(head, used)[1] - used
            else:
                count = _FIXED.get(kind, -1)
            if count < 0 or at + used + count > end or number == 0 or self.fields > MOST_FIELDS:
                raise _Malformed
            yield _Field(number, kind, at, at + used, at + used + count)
            at += used + count


def _number(data: bytes, at: int) -> tuple[int, int]:
    """(the number in base 128 at a place, the place behind it)."""
    value = 0
    for k in range(10):
        if at + k >= len(data):
            raise _Malformed
        value |= (data[at + k] & 127) << 7 * k
        if data[at + k] < 128:
            return value, at + k + 1
    raise _Malformed


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
