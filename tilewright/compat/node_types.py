"""TVM's types of values, its strings and containers, and the forms of constructors that name types."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright import tir
from tilewright.compat.nodes import Kind, kind
from tilewright.support.errors import ArgumentError, described
from tilewright.tir import Buffer, Expr, PrimFunc, Range, convert
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import scope_kind
from tilewright.tir.ir_builder import BufferVar


class DataType(str):
    """A dtype: its string, with `bits`, `lanes` and `type_code` (0 int, 1 uint, 2 float, 3 handle, 4 bfloat)."""
    CODES = {"int": 0, "uint": 1, "bool": 1, "float": 2, "handle": 3, "bfloat": 4}

    def __new__(cls, type_str: Any) -> DataType:
        return super().__new__(cls, dt.canonical(type_str))

    @property
    def bits(self) -> int:
        """Bits of one lane."""
        return dt.bits_of(self)

    @property
    def lanes(self) -> int:
        """The number of lanes."""
        return dt.lanes_of(self)

    @property
    def type_code(self) -> int:
        """TVM's number for the kind of number."""
        return self.CODES[dt.element_of(self).rstrip("0123456789")] if "float8" not in self else 2


class PrimType(str):
    """The type of a number, by its dtype."""

    def __new__(cls, dtype: Any) -> PrimType:
        return super().__new__(cls, dt.canonical(dtype))

    @property
    def dtype(self) -> str:
        """The dtype."""
        return str(self)


class PointerType:
    """The type of an address of elements. Our variables of addresses are of dtype "handle" whatever they point to."""

    def __init__(self, element_type: Any, storage_scope: str = "") -> None:
        if storage_scope and not scope_kind(storage_scope):
            raise ArgumentError(f"PointerType: {described(storage_scope)} is not a storage scope")
        self.element_type, self.storage_scope = element_type, storage_scope

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PointerType) and (self.element_type, self.storage_scope) == (
            other.element_type, other.storage_scope)

    def __hash__(self) -> int:
        return hash((str(self.element_type), self.storage_scope))


class String(str):
    """A text, as TVM keeps them."""


def _one_of(name: str, make: Any, *kinds: type) -> Kind:
    return kind(name, make, lambda x: isinstance(x, kinds))


Array = _one_of("Array", lambda items=(): list(items), list, tuple)
Map = _one_of("Map", lambda items=(): dict(items), dict)
ShapeTuple = _one_of("ShapeTuple", lambda items=(): tuple(map(int, items)), tuple)


def _dtype(given: Any) -> str:
    return "handle" if isinstance(given, PointerType) else dt.canonical(given)


def _var(name: str = "tindex", dtype: Any = "int32", span: object = None) -> tir.Var:
    return tir.Var(name, _dtype(dtype))


Var = kind("Var", _var, lambda x: isinstance(x, tir.Var))
SizeVar = kind("SizeVar", _var, lambda x: isinstance(x, tir.Var))


def convert_any(value: Any, span: object = None) -> Any:
    """value as TVM keeps it: numbers become constants; lists, dicts and their items are converted; all else stays."""
    if isinstance(value, (list, tuple)):
        return [convert_any(x) for x in value]
    if isinstance(value, Mapping):
        return {key: convert_any(x) for key, x in value.items()}
    if isinstance(value, str):
        return String(value)
    if value is None or isinstance(value, (tir.Node, Buffer)) or (
            callable(value) and not hasattr(value, "__tilewright_expr__")):
        return value
    return convert(value)


def decl_buffer(shape: Any, dtype: Any = None, name: str = "buffer", data: Any = None, strides: Any = None,
                elem_offset: Any = None, scope: str = "", data_alignment: int = -1, offset_factor: int = 0,
                buffer_type: str = "", axis_separators: Sequence[Any] | None = None, span: object = None) -> Buffer:
    """A buffer; a shape of one extent may stand without brackets. data: the variable of its address.

    buffer_type="auto_broadcast", strides that are 0 where an extent is 1, is refused: strides=[...] says them.
    """
    if buffer_type not in ("", "default"):
        raise ArgumentError(f"decl_buffer: buffer_type={buffer_type!r} is not supported",
                            "write strides=[...], with 0 where the extent is 1")
    extents = shape if isinstance(shape, (list, tuple)) else (shape,)
    made = tir.decl_buffer(extents, dt.canonical(dtype or "float32"), name, strides=strides or (),
                           elem_offset=elem_offset, scope=scope, offset_factor=offset_factor,
                           data_alignment=64 if data_alignment < 0 else data_alignment)
    changed: dict[str, Any] = {} if data is None else {"data": data}
    if axis_separators:
        changed["axis_separators"] = tuple(int(i) for i in axis_separators)
    return made.replace(**changed) if changed else made


def _function(params: Sequence[Any], body: tir.Stmt, ret_type: Any = None,
              buffer_map: Mapping[Any, Buffer] | None = None, attrs: Mapping[str, Any] | None = None,
              span: object = None) -> PrimFunc:
    """A function; a parameter may be a Buffer, or a pointer of an ir_builder. buffer_map may be the third argument."""
    if isinstance(ret_type, Mapping):
        buffer_map, attrs = ret_type, buffer_map if attrs is None else attrs
    named, given = dict(buffer_map or {}), []
    for p in params:
        if isinstance(p, BufferVar):
            p = p.asobject()
        if isinstance(p, Buffer):
            handle = tir.Var(p.name, "handle")
            named[handle] = p
            p = handle
        given.append(p)
    return PrimFunc(tuple(given), body, named, dict(attrs or {}))


Function = kind("PrimFunc", _function, lambda x: isinstance(x, PrimFunc), of=PrimFunc)


def _block(iter_vars: Sequence[Any], reads: Sequence[Any], writes: Sequence[Any], name_hint: str, body: tir.Stmt,
           init: tir.Stmt | None = None, alloc_buffers: Sequence[Any] = (), match_buffers: Sequence[Any] = (),
           annotations: Mapping[str, Any] | None = None, span: object = None) -> tir.Block:
    return tir.Block(name_hint, tuple(iter_vars), tuple(reads), tuple(writes), body, init, tuple(alloc_buffers or ()),
                     tuple(match_buffers or ()), dict(annotations or {}))


Block = kind("Block", _block, lambda x: isinstance(x, tir.Block), of=tir.Block)


def _realize(iter_values: Sequence[Any], predicate: Any, block: tir.Block, span: object = None) -> tir.BlockRealize:
    condition = predicate if isinstance(predicate, Expr) else convert(bool(predicate))
    return tir.BlockRealize(tuple(map(convert, iter_values)), condition, block)


BlockRealize = kind("BlockRealize", _realize, lambda x: isinstance(x, tir.BlockRealize), of=tir.BlockRealize)
BufferRegion = kind(
    "BufferRegion", lambda buffer, region: tir.BufferRegion(buffer, tuple(
        r if isinstance(r, Range) else tir.range_of(r, 1) for r in region)),
    lambda x: isinstance(x, tir.BufferRegion), of=tir.BufferRegion)

TYPES: dict[str, Any] = {"PrimType": PrimType, "PointerType": PointerType}
CONTAINERS: dict[str, Any] = {"String": String, "ShapeTuple": ShapeTuple}
NODES: dict[str, Any] = {"Var": Var, "SizeVar": SizeVar, "PrimFunc": Function, "Block": Block,
                         "BlockRealize": BlockRealize, "BufferRegion": BufferRegion}
