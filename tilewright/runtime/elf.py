"""What is read of ELF files: the symbol table, to say which symbol is missing, and whether the file is whole."""
from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from tilewright.runtime.seal import Data

# identification, type, machine, version, entry, segments, sections, flags, bytes of this header, of a segment's entry
# and their number, of a section's and their number, section of names
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")        # type, flags, offset, address, physical, size in file, in memory, align
SECTION = struct.Struct("<IIQQQQIIQQ")      # name, type, flags, address, offset, size, link, info, align, entry
SYMBOL = struct.Struct("<IBBHQQ")           # name, info, other, section, value, size
_SYMTAB, _NOBITS = 2, 8                      # a section of zeros has no bytes in the file
_RELOCATABLE, _SHARED = 1, 3                 # types of a file
_FUNCTION, _LOCAL = 2, 0                     # symbol type, symbol binding


class Code(NamedTuple):
    """A function of an object file: `offset` bytes into section number `section`, `size` bytes long."""
    name: str
    section: int
    offset: int
    size: int
    exported: bool


def is_elf(data: Data) -> bool:
    """True for a 64-bit little-endian ELF file."""
    return data[:6] == b"\x7fELF\x02\x01"


def defect(data: Data, is_library: bool, end: int) -> str:
    """What is wrong with the header and the tables of a 64-bit little-endian ELF file of `end` bytes; "" for nothing.

    They lie inside of the file, and so do the segments and sections that they tell of: to map others would crash.
    """
    if end < HEADER.size:
        return "it ends in its header"
    _, kind, _, _, _, segments, sections, _, header, segment, count, section, number, _ = HEADER.unpack_from(data)
    if (kind, header) != (_SHARED if is_library else _RELOCATABLE, HEADER.size):
        return f"it is no {'shared library' if is_library else 'object file'}"
    if segments + count * _SEGMENT.size > end or count and segment != _SEGMENT.size:
        return "its segments lie behind its end"
    if sections + number * SECTION.size > end or number and section != SECTION.size:
        return "it ends before its section table"
    for k in range(count):
        _, _, offset, _, _, size, memory, _ = _SEGMENT.unpack_from(data, segments + k * _SEGMENT.size)
        if offset + size > end or size > memory:
            return f"segment {k} lies behind its end"
    for k in range(number):
        found = SECTION.unpack_from(data, sections + k * SECTION.size)
        if found[1] != _NOBITS and found[4] + found[5] > end:
            return f"it ends before section {k}"
    return ""


def _symbols(data: bytes) -> Iterator[tuple[str, int, int, int, int]]:
    """(name, info, section, value, size) of the symbols of a 64-bit little-endian ELF object; none for any other."""
    if not is_elf(data):
        return
    start, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [SECTION.unpack_from(data, start + i * size) for i in range(count)]
    for section in sections:
        if section[1] != _SYMTAB:
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], SYMBOL.size):
            name, info, _, where, value, length = SYMBOL.unpack_from(data, at)
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


def with_distinct_locals(data: bytes) -> bytes:
    """The object with another name for each local symbol whose name an earlier one has; itself where there is none.

    Objects that a linker joined have several symbols such as `.LCPI0_0`. Linkers tell them apart by their numbers, the
    JIT linker of LLVM by their names: it would take the constants of another function.
    """
    if not is_elf(data):
        return data
    start, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    headers = [start + k * size for k in range(count)]
    out: bytearray | None = None
    for where in headers:
        section = SECTION.unpack_from(data, where)
        if section[1] != _SYMTAB:
            continue
        texts = SECTION.unpack_from(data, headers[section[6]])
        names = bytes(data[texts[4]:texts[4] + texts[5]])
        seen: set[bytes] = set()
        for at in range(section[4], section[4] + section[5], SYMBOL.size):
            name, info, other, home, value, length = SYMBOL.unpack_from(data, at)
            text = names[name:names.index(b"\0", name)]
            if info >> 4 == _LOCAL and text and text in seen:
                out = out if out is not None else bytearray(data)
                SYMBOL.pack_into(out, at, len(names), info, other, home, value, length)
                names += text + f".{at:x}".encode() + b"\0"
            seen.add(text)
        if out is not None and len(names) != texts[5]:
            SECTION.pack_into(out, headers[section[6]], *texts[:4], len(out), len(names), *texts[6:])
            out += names
    return data if out is None else bytes(out)
