"""The table by which native code checks a call: a Signature as bytes, and back.

In order: header, parameter records, dim records, expression programs, NUL-terminated texts. Offsets are from the start
of the table, so that it needs no relocation. `native/check.ll` reads it.
"""
from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from tilewright.runtime.dtypes import dl_dtype, dtype_name, extent_limit, item_bytes
from tilewright.runtime.signature import OPERATORS, Dim, Param, Signature, dim_text
from tilewright.support.errors import ArgumentError

_OPCODES = {name: 2 + i for i, name in enumerate(OPERATORS)}     # 0 pushes a constant, 1 a slot
_CONST, _BIND, _EQUAL, _EXPRESSION = range(4)                    # kinds of a dim record
_MAGIC_BYTES = b"TWS1"
MAGIC = int.from_bytes(_MAGIC_BYTES, "little")
MAX_STACK = 16                               # of tw_check_args' expression evaluator
_HEADER, _PARAM = struct.Struct("<10I"), struct.Struct("<8Ii3I")
_DIM, _STEP = struct.Struct("<iIqq"), struct.Struct("<q")
_SCALAR = 1
_WRITTEN, _EXCLUSIVE, _POINTWISE, _UPDATED = 1, 2, 4, 8       # flags of a parameter


def _names(dim: Dim) -> Iterator[str]:
    if isinstance(dim, str):
        yield dim
    elif isinstance(dim, tuple):
        yield from _names(dim[1])
        yield from _names(dim[2])


def _flags(p: Param) -> int:
    return p.written * _WRITTEN | p.exclusive * _EXCLUSIVE | p.pointwise * _POINTWISE | p.updated * _UPDATED


class _Encoder:
    """Lays out the table of one signature."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.slots = {p.name: i for i, p in enumerate((*signature.buffers, *signature.scalars))}
        self.slots.update({s: len(self.slots) + i for i, s in enumerate(signature.symbols)})
        self.buffers = {p.name for p in signature.buffers}
        symbols = set(signature.symbols)
        self.bound_by: dict[str, str] = {}                   # symbol -> "A.shape[0]"
        for _, dim, place in signature.dims():
            if isinstance(dim, str) and dim in symbols:
                self.bound_by.setdefault(dim, place)
        self.tail = bytearray()
        self.base = _HEADER.size + _PARAM.size * len(signature.params)
        self.texts: dict[str, int] = {}
        self.expressions = 0
        self._check_names()

    def _check_names(self) -> None:
        sig, seen = self.signature, set(self.slots)
        if len({p.name for p in sig.params}) != len(sig.params):
            names = ", ".join(p.name for p in sig.params)
            raise ArgumentError(f"{sig.name}: two parameters have one name: {names}")
        for p, dim, place in sig.dims():
            for name in _names(dim):
                if name not in seen or name in self.buffers:
                    raise ArgumentError(f"{sig.name}: {place} is {dim_text(dim)}, but no argument tells what {name} is",
                                        f"make {name} an argument, or let it be one extent of a tensor argument")
            if p.strides is not None and len(p.strides) != len(p.shape or ()):
                raise ArgumentError(f"{sig.name}: {p.name} has {len(p.shape or ())} extents "
                                    f"and {len(p.strides)} strides")

    def text(self, text: str) -> int:
        if text not in self.texts:
            self.texts[text] = self.append(text.encode() + b"\0")
        return self.texts[text]

    def append(self, data: bytes) -> int:
        """Offset of data, appended at a multiple of 8."""
        offset = self.base + len(self.tail)
        self.tail += data + bytes(-len(data) % 8)
        return offset

    def run(self) -> bytes:
        sig = self.signature
        params = b"".join(self.param(p) for p in sig.params)
        name, text = self.text(sig.name), self.text(str(sig))
        header = _HEADER.pack(MAGIC, self.base + len(self.tail), len(sig.params), len(sig.buffers),
                              len(sig.scalars), len(sig.symbols), name, text, sig.num_slots, self.expressions)
        return header + params + bytes(self.tail)

    def param(self, p: Param) -> bytes:
        code, bits, lanes = dl_dtype(p.dtype)
        word = code | bits << 8 | lanes << 16
        if not p.is_buffer:
            return _PARAM.pack(_SCALAR, self.slots[p.name], self.text(p.name), word, 0, 0, 0, 0, 0, 0,
                               self.text(p.dtype), 0)
        shape = self.dims(p.shape or (), f"{p.name}.shape")
        strides = 0 if p.strides is None or not p.shape else self.dims(p.strides, f"{p.name}.strides")
        alignment = p.alignment or item_bytes(p.dtype)
        return _PARAM.pack(0, self.slots[p.name], self.text(p.name), word, len(p.shape or ()), shape, strides,
                           alignment, p.device, _flags(p), self.text(p.dtype), 0)

    def dims(self, dims: tuple[Dim, ...], owner: str) -> int:
        records = [self.dim(d, f"{owner}[{i}]") for i, d in enumerate(dims)]
        return self.append(b"".join(records))

    def dim(self, dim: Dim, place: str) -> bytes:
        """Record: kind, text, value, limit. A bound symbol may be at most `limit`."""
        if isinstance(dim, int):
            return _DIM.pack(_CONST, self.text(f"{place} == {dim}"), dim, 0)
        if isinstance(dim, str) and self.bound_by.get(dim) == place:
            dtype = self.signature.symbol_types.get(dim, "int64")
            limit = extent_limit(dtype)
            return _DIM.pack(_BIND, self.text(f"{place} is {dim}, an {dtype}"), self.slots[dim], limit)
        where = [f"{n} = {self.bound_by[n]}" for n in dict.fromkeys(_names(dim)) if n in self.bound_by]
        text = self.text(", ".join([f"{place} == {dim_text(dim)}", *where]))
        if isinstance(dim, str):
            return _DIM.pack(_EQUAL, text, self.slots[dim], 0)
        self.expressions += 1
        return _DIM.pack(_EXPRESSION, text, self.program(dim), 0)

    def program(self, dim: Dim) -> int:
        """Postfix program: its length, then (opcode, value) pairs of i64."""
        steps: list[tuple[int, int]] = []
        if _compile(dim, self.slots, steps) > MAX_STACK:
            raise ArgumentError(f"{self.signature.name}: the extent {dim_text(dim)} is nested too deeply")
        words = [len(steps), *(w for step in steps for w in step)]
        return self.append(b"".join(_STEP.pack(w) for w in words))


def _compile(dim: Dim, slots: Mapping[str, int], steps: list[tuple[int, int]]) -> int:
    """Append the steps that compute dim; result: the stack it takes."""
    if isinstance(dim, int):
        steps.append((0, dim))
        return 1
    if isinstance(dim, str):
        steps.append((1, slots[dim]))
        return 1
    left = _compile(dim[1], slots, steps)
    right = _compile(dim[2], slots, steps)
    steps.append((_OPCODES[dim[0]], 0))
    return max(left, right + 1)


class _Decoder:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.header = _HEADER.unpack_from(data)
        if self.header[0] != MAGIC:
            raise ArgumentError("this is not a signature table of Tilewright (or one of another version)")
        self.names: dict[int, str] = {}

    def text(self, offset: int) -> str:
        return self.data[offset:self.data.index(b"\0", offset)].decode()

    def run(self) -> Signature:
        count = self.header[2]
        records = [_PARAM.unpack_from(self.data, _HEADER.size + i * _PARAM.size) for i in range(count)]
        self.names = {r[1]: self.text(r[2]) for r in records}
        types: dict[str, str] = {}
        bound = [r for r in records if r[0] != _SCALAR]
        for r in bound:                          # the texts "A.shape[0] is n, an int32" name the symbols
            for what, offset in filter(lambda of: of[1], (("shape", r[5]), ("strides", r[6]))):
                for i in range(r[4]):
                    kind, text, value, _ = _DIM.unpack_from(self.data, offset + i * _DIM.size)
                    if kind == _BIND:            # either name may have " is " in it
                        start = f"{self.text(r[2])}.{what}[{i}] is "
                        name, dtype = self.text(text).removeprefix(start).rsplit(", an ", 1)
                        self.names[value], types[name] = name, dtype
        return Signature(self.text(self.header[6]), tuple(self.param(r) for r in records), types)

    def param(self, r: tuple[int, ...]) -> Param:
        dtype = dtype_name(r[3] & 255, r[3] >> 8 & 255, r[3] >> 16)
        if r[0] == _SCALAR:
            return Param(self.text(r[2]), dtype)
        strides = self.dims(r[6], r[4]) if r[6] else None
        alignment = 0 if r[7] == item_bytes(dtype) else r[7]
        return Param(self.text(r[2]), dtype, self.dims(r[5], r[4]), strides, bool(r[9] & _WRITTEN),
                     alignment, r[8], bool(r[9] & _EXCLUSIVE), bool(r[9] & _POINTWISE), bool(r[9] & _UPDATED))

    def dims(self, offset: int, count: int) -> tuple[Dim, ...]:
        records = [_DIM.unpack_from(self.data, offset + i * _DIM.size) for i in range(count)]
        return tuple(self.dim(kind, value) for kind, _, value, _ in records)

    def dim(self, kind: int, value: int) -> Dim:
        if kind == _CONST:
            return value
        if kind in (_BIND, _EQUAL):
            return self.names[value]
        count, stack = _STEP.unpack_from(self.data, value)[0], []
        operators = {code: name for name, code in _OPCODES.items()}
        for i in range(count):
            op, arg = struct.unpack_from("<2q", self.data, value + 8 + 16 * i)
            if op in (0, 1):
                stack.append(self.names[arg] if op else arg)
            else:
                b, a = stack.pop(), stack.pop()
                stack.append((operators[op], a, b))
        return stack[0]


def encode(signature: Signature) -> bytes:
    """The table that tw_check_args reads. Raises ArgumentError for a symbol that no argument tells."""
    return _Encoder(signature).run()


def decode(data: bytes) -> Signature:
    """The Signature of which data is the table. Raises ArgumentError when it is none."""
    return _Decoder(data).run()


def signatures_in(data: bytes) -> list[Signature]:
    """The signatures whose tables lie somewhere in data, an object file."""
    found, start = [], data.find(_MAGIC_BYTES)
    while start >= 0:
        size = int.from_bytes(data[start + 4:start + 8], "little")
        try:
            found.append(decode(data[start:start + size]))
        except (ArgumentError, struct.error, ValueError, IndexError, KeyError):
            pass                                          # these four bytes were something else
        start = data.find(_MAGIC_BYTES, start + 4)
    return found
