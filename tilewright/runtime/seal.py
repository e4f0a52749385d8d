"""The checksum at the end of files of compiled code, over everything before it: verified before anything reads them.

Linkers and loaders find their way through a file by its header and do not mind what follows.
"""
from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterator
from typing import Union

Data = Union[bytes, mmap.mmap]                # of a file: read, or mapped
_MARK = b"\nTILEWRIGHT-SHA256:"
SIZE = len(_MARK) + 32
_WINDOW = 1 << 22                             # bytes of a mapped file in memory at a time; a multiple of the page


def sealed(content: bytes) -> bytes:
    """The content with its checksum."""
    return content + _MARK + hashlib.sha256(content).digest()


def is_sealed(data: Data) -> bool:
    """True when data ends like a file with a checksum, be it right or wrong."""
    return data[-SIZE:-32] == _MARK


def is_whole(data: Data) -> bool:
    """True when the checksum at the end of a file is that of what stands before it."""
    found, size = hashlib.sha256(), len(data) - SIZE
    with memoryview(data) as view:
        for start, end in _windows(data):
            with view[start:min(end, size)] as part:
                found.update(part)
    return found.digest() == data[-32:]


def find(data: Data, what: bytes, start: int = 0) -> int:
    """Where `what` begins first in a file, from start on, or -1."""
    for begin, end in _windows(data, start):
        at = data.find(what, max(begin, start), end + len(what) - 1)
        if at >= 0:
            return at
    return -1


def _windows(data: Data, start: int = 0) -> Iterator[tuple[int, int]]:
    """(begin, end) of parts of a file. What is mapped leaves the memory of the process once its part is done."""
    for begin in range(start // _WINDOW * _WINDOW, len(data), _WINDOW):
        yield begin, min(begin + _WINDOW, len(data))
        if isinstance(data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            data.madvise(mmap.MADV_DONTNEED, begin, min(_WINDOW, len(data) - begin))
