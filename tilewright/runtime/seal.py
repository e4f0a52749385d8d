"""The checksum at the end of files of compiled code, over everything before it: verified before anything reads them.

Linkers and loaders find their way through a file by its header and do not mind what follows.
"""
from __future__ import annotations

import hashlib

_MARK = b"\nTILEWRIGHT-SHA256:"
SIZE = len(_MARK) + 32


def sealed(content: bytes) -> bytes:
    """The content with its checksum."""
    return content + _MARK + hashlib.sha256(content).digest()


def is_sealed(data: bytes) -> bool:
    """True when data ends like a file with a checksum, be it right or wrong."""
    return data[-SIZE:-32] == _MARK


def content_of(data: bytes) -> bytes | None:
    """The content of a file with a checksum; None where the checksum is wrong."""
    content = data[:-SIZE]
    return content if hashlib.sha256(content).digest() == data[-32:] else None
