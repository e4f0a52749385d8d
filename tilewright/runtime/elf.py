"""The symbol table of an ELF object file, read only to say which symbol is missing."""
from __future__ import annotations

import struct

_SECTION = struct.Struct("<IIQQQQIIQQ")      # name, type, flags, address, offset, size, link, info, align, entry
_SYMBOL = struct.Struct("<IBBHQQ")           # name, info, other, section, value, size
_SYMTAB = 2


def symbols(data: bytes) -> tuple[set[str], set[str]]:
    """(defined, undefined) names of a 64-bit little-endian ELF object; both empty for any other file."""
    defined: set[str] = set()
    undefined: set[str] = set()
    if data[:6] != b"\x7fELF\x02\x01":
        return defined, undefined
    start, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [_SECTION.unpack_from(data, start + i * size) for i in range(count)]
    for section in sections:
        if section[1] != _SYMTAB:
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], _SYMBOL.size):
            name, _, _, where, _, _ = _SYMBOL.unpack_from(data, at)
            begin = names + name
            (defined if where else undefined).add(data[begin:data.index(b"\0", begin)].decode())
    return defined, undefined - {""}
