"""Object files joined to one, as a linker does with -r: 64-bit little-endian ELF. Sections stay as they are."""
from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.runtime.elf import HEADER, SECTION, SYMBOL, is_elf
from tilewright.support.errors import CodegenError

_NULL, _SYMTAB, _STRTAB, _RELA, _NOBITS, _REL, _GROUP, _ADDRSIG = 0, 2, 3, 4, 8, 9, 17, 0x6FFF4C03
_LINK_ORDER = 0x80                   # a flag: the link of a section is the number of another one
_LOCAL, _GLOBAL, _WEAK = 0, 1, 2     # bindings of symbols
_RESERVED, _ELSEWHERE = 0xFF00, 0xFFFF   # numbers of sections from here on are special; the one that is no number
_RELOCATION = struct.Struct("<QQq")  # place, type and symbol, addend
_HINT = "pip install 'tilewright[export]' brings a linker, which joins others too"


@dataclass(eq=False)
class _Symbol:
    """A symbol of the result; section 0 is one that is defined elsewhere."""
    name: bytes
    binding: int
    kind: int
    visibility: int
    section: int
    value: int
    size: int

    @property
    def rank(self) -> int:
        """Of several symbols of a name the one with the highest rank counts."""
        return 0 if not self.section else 1 if self.binding == _WEAK else 2

    def meet(self, other: _Symbol) -> None:
        """Become what this symbol and another of its name are together. Raises CodegenError for two definitions."""
        if self.rank == other.rank == 2:
            raise CodegenError(f"the symbol {self.name.decode()} is defined twice")
        seen = [v for v in (self.visibility, other.visibility) if v]
        if other.rank > self.rank:
            self.binding, self.kind = other.binding, other.kind
            self.section, self.value, self.size = other.section, other.value, other.size
        elif not self.section and other.binding == _GLOBAL:
            self.binding = _GLOBAL
        self.visibility = min(seen, default=0)


@dataclass(frozen=True)
class _Section:
    """A section: its name, the fields of its header, its contents, the symbols that relocations in it count."""
    name: bytes
    kind: int
    flags: int
    size: int
    link: int
    info: int
    align: int
    entry: int
    contents: bytes
    symbols: Sequence[_Symbol] = ()


def joined(objects: Sequence[bytes]) -> bytes:
    """One object file with the sections and symbols of all.

    Raises CodegenError for files that are no such objects, two definitions of a name, groups of sections, and more
    sections than a file can number.
    """
    if not objects or not all(map(is_elf, objects)) or len({o[16:20] + o[48:52] for o in objects}) != 1:
        raise CodegenError("object files of ELF for one machine are joined without a linker, and no others", _HINT)
    sections: list[_Section] = []
    private: list[_Symbol] = []
    public: dict[bytes, _Symbol] = {}
    for data in objects:
        _enter(data, sections, private, public)
    if len(sections) + 4 >= _RESERVED:
        raise CodegenError(f"{len(sections)} sections are more than an object file numbers", _HINT)
    return _written(HEADER.unpack_from(objects[0]), sections, private, [*public.values()])


def _enter(data: bytes, sections: list[_Section], private: list[_Symbol], public: dict[bytes, _Symbol]) -> None:
    """Add the sections and symbols of an object."""
    header = HEADER.unpack_from(data)
    headers = [SECTION.unpack_from(data, header[6] + k * SECTION.size) for k in range(header[12])]
    kept = [k for k, h in enumerate(headers) if h[1] not in (_NULL, _SYMTAB, _STRTAB, _ADDRSIG)]
    if any(headers[k][1] in (_GROUP, _REL) for k in kept):
        raise CodegenError("object files with groups of sections are joined by a linker alone", _HINT)
    number = {k: n for n, k in enumerate(kept, len(sections) + 1)}
    symbols = _symbols(data, headers, number, private, public)
    for k in kept:
        name, kind, flags, _, offset, size, link, info, align, entry = headers[k]
        contents = b"" if kind == _NOBITS else data[offset:offset + size]
        found = _Section(_text(data, headers[header[13]][4] + name), kind, flags, size,
                         number.get(link, 0) if flags & _LINK_ORDER else 0, 0, align, entry, contents)
        sections.append(replace(found, info=number[info], symbols=symbols) if kind == _RELA else found)


def _symbols(data: bytes, headers: Sequence[tuple[int, ...]], number: dict[int, int], private: list[_Symbol],
             public: dict[bytes, _Symbol]) -> list[_Symbol]:
    """The symbols of an object by their numbers there: entered, those with a name that others have as one with them."""
    table = next((h for h in headers if h[1] == _SYMTAB), headers[0])      # header 0 is empty
    found: list[_Symbol] = []
    for at in range(table[4], table[4] + table[5], SYMBOL.size):
        name, info, other, section, value, size = SYMBOL.unpack_from(data, at)
        if section == _ELSEWHERE:
            raise CodegenError("an object file with more sections than its symbols number", _HINT)
        home = section if section >= _RESERVED else number.get(section, 0)
        symbol = _Symbol(_text(data, headers[table[6]][4] + name), info >> 4, info & 15, other, home, value, size)
        if symbol.binding == _LOCAL:
            if at > table[4]:                                   # the first one of a table is none
                private.append(symbol)
        elif symbol.name in public:
            public[symbol.name].meet(symbol)
            symbol = public[symbol.name]
        else:
            public[symbol.name] = symbol
        found.append(symbol)
    return found


def _text(data: bytes, at: int) -> bytes:
    return data[at:data.index(b"\0", at)]


def _written(header: tuple[int, ...], sections: Sequence[_Section], private: Sequence[_Symbol],
             public: Sequence[_Symbol]) -> bytes:
    """The file of sections and symbols; header: that of one of the files."""
    number = {id(s): n for n, s in enumerate([*private, *public], 1)}
    table = len(sections) + 1                                   # then the names of symbols, then those of sections
    names, symbols = bytearray(b"\0"), bytearray(SYMBOL.size)
    for s in (*private, *public):
        symbols += SYMBOL.pack(len(names) if s.name else 0, s.binding << 4 | s.kind, s.visibility, s.section, s.value,
                               s.size)
        names += s.name + b"\0" if s.name else b""
    parts = [replace(s, link=table, contents=_relocated(s, number)) if s.kind == _RELA else s for s in sections]
    parts += [_Section(b".symtab", _SYMTAB, 0, len(symbols), table + 1, len(private) + 1, 8, SYMBOL.size,
                       bytes(symbols)), _Section(b".strtab", _STRTAB, 0, len(names), 0, 0, 1, 0, bytes(names))]
    titles = bytearray(b"\0")
    places: dict[bytes, int] = {}
    for part in (*parts, _Section(b".shstrtab", 0, 0, 0, 0, 0, 0, 0, b"")):
        if part.name not in places:
            places[part.name] = len(titles)
            titles += part.name + b"\0"
    parts.append(_Section(b".shstrtab", _STRTAB, 0, len(titles), 0, 0, 1, 0, bytes(titles)))
    body, headers = bytearray(HEADER.size), bytearray(SECTION.size)
    for part in parts:
        body += bytes(-len(body) % max(part.align, 1))
        headers += SECTION.pack(places[part.name], part.kind, part.flags, 0, len(body), part.size, part.link, part.info,
                                part.align, part.entry)
        body += part.contents
    body += bytes(-len(body) % 8)
    HEADER.pack_into(body, 0, *header[:6], len(body), *header[7:12], len(parts) + 1, len(parts))
    return bytes(body + headers)


def _relocated(section: _Section, number: dict[int, int]) -> bytes:
    """The relocations of a section, by the numbers that symbols have in the result."""
    out = bytearray()
    for place, what, addend in _RELOCATION.iter_unpack(section.contents):
        at = what >> 32
        out += _RELOCATION.pack(place, what & 0xFFFFFFFF | (number[id(section.symbols[at])] if at else 0) << 32, addend)
    return bytes(out)
