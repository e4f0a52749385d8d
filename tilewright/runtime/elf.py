"""What is read of ELF files: the symbol table, to say which symbol is missing, and whether the file is whole."""
from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_SECTION = struct.Struct("<IIQQQQIIQQ")      # name, type, flags, address, offset, size, link, info, align, entry
_SYMBOL = struct.Struct("<IBBHQQ")           # name, info, other, section, value, size
_SYMTAB, _NOBITS = 2, 8                      # a section of zeros has no bytes in the file
_FUNCTION, _LOCAL = 2, 0                     # symbol type, symbol binding


class Code(NamedTuple):
    """A function of an object file: `offset` bytes into section number `section`, `size` bytes long."""
    name: str
    section: int
    offset: int
    size: int
    exported: bool


def is_cut_off(data: bytes) -> bool:
    """True for a 64-bit little-endian ELF file that ends before its section table: to map it would crash."""
    if data[:6] != b"\x7fELF\x02\x01":
        return False
    if len(data) < 0x40:
        return True
    start, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    if start + size * count > len(data):
        return True
    sections = (_SECTION.unpack_from(data, start + i * size) for i in range(count))
    return any(s[4] + s[5] > len(data) for s in sections if s[1] != _NOBITS)


def _symbols(data: bytes) -> Iterator[tuple[str, int, int, int, int]]:
    """(name, info, section, value, size) of the symbols of a 64-bit little-endian ELF object; none for any other."""
    if data[:6] != b"\x7fELF\x02\x01":
        return
    start, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [_SECTION.unpack_from(data, start + i * size) for i in range(count)]
    for section in sections:
        if section[1] != _SYMTAB:
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], _SYMBOL.size):
            name, info, _, where, value, length = _SYMBOL.unpack_from(data, at)
            begin = names + name
            yield data[begin:data.index(b"\0", begin)].decode(), info, where, value, length


def symbols(data: bytes) -> tuple[set[str], set[str]]:
    """(defined, undefined) names of a 64-bit little-endian ELF object; both empty for any other file."""
    defined: set[str] = set()
    undefined: set[str] = set()
    for name, _, where, _, _ in _symbols(data):
        (defined if where else undefined).add(name)
    return defined, undefined - {""}


def functions(data: bytes) -> list[Code]:
    """The functions of an object file, local ones included, in the order of its symbol table."""
    return [Code(name, where, value, size, info >> 4 != _LOCAL)
            for name, info, where, value, size in _symbols(data) if where and info & 15 == _FUNCTION]
