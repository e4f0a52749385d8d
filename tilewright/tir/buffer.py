"""Buffers and the accesses to them."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.support.errors import IRError, described
from tilewright.support.registry import hook
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import cast, convert, is_const
from tilewright.tir.expr import Call, Expr, IntImm, Ramp, StringImm, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.structure import Effect, Node, structure

# The kinds of memory that a buffer may be in. A tag may follow, which names a part of it: global.A_reg, shared.dyn.
SCOPES = ("global", "local", "shared", "warp", "wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator", "texture",
          "amx.tmm", "m16n8k8.matrixA", "m16n8k8.matrixB", "m16n8k8.matrixC", "metal.simdgroup")
KINDS_OF_SCOPES = f"a scope is one of {', '.join(SCOPES)}, and may go on with a tag: global.A_reg"
DIM_ALIGN = "buffer_dim_align"         # annotation of a block: [[buffer written, axis, factor, offset], ...]


@structure(symbol=True)
@dataclass(slots=True, eq=False, repr=False)
class Buffer(Node):
    """Memory seen as an array. Two Buffers are the same only when they are one object.

    `strides` (in elements) is empty for a compact row-major buffer; `elem_offset` is the distance of element
    0 from `data` in elements; `scope` is one of SCOPES, with or without a tag; `data_alignment` is in bytes.
    `axis_separators` are the axes before which a new physical dimension starts (empty: one dimension).
    """
    name: str
    shape: tuple[Any, ...]
    dtype: str = "float32"
    strides: tuple[Any, ...] = ()
    elem_offset: Any = None
    scope: str = "global"
    data_alignment: int = 64
    offset_factor: int = 0
    data: Var = None                       # type: ignore[assignment]  # the pointer; None gives a new one
    axis_separators: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.data is None:
            self.data = Var(self.name, "handle")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __getitem__(self, indices: Any) -> Load:
        return load(self, indices if isinstance(indices, tuple) else (indices,))

    def __setitem__(self, indices: Any, value: Any) -> None:
        raise IRError(f"an element of {self.name} is stored by Python, and not in a script",
                      "a helper function gives a value; statements go under @T.macro. In te.extern, "
                      "ib.buffer_ptr(B)[i] = value stores")

    def __iter__(self) -> Iterator[Any]:
        raise IRError(f"{self.name} is not a sequence", f"read an element: {self.name}[i]")

    def vload(self, begin: Any, dtype: str | None = None) -> Load:
        """The vector of dtype that starts at `begin` along the last axis."""
        return load(self, vector_at(begin, dt.lanes_of(dtype) if dtype else 1))

    def vstore(self, begin: Any, value: Any) -> Any:
        """The statement that stores value, which may be a vector, from `begin` on along the last axis."""
        e = convert(value)
        return hook("tir.store")(self, e, vector_at(begin, dt.lanes_of(e.dtype)))

    def access_ptr(self, access_mask: str | int = "r", ptr_type: str = "handle", content_lanes: int = 1,
                   offset: Any = 0, extent: Any = None) -> Expr:
        """The address of element 0, for a call; a packed function gets a tensor of the buffer's shape and strides.

        access_mask ("r", "w" or "rw", or 1, 2, 3) is for the reader: the block's regions say what is touched, as
        content_lanes does, which says in vectors of how many lanes. With an offset, of a compact buffer, the address of
        that element, counted from 0 in the order of memory; a packed function gets the `extent` elements from there
        (default: all). Raises IRError for another mask, and for an offset in memory with strides.
        """
        if access_mask not in ("r", "w", "rw", "wr", 1, 2, 3):
            raise IRError(f'{self.name}.access_ptr: the access is "r", "w" or "rw", not {described(access_mask)}')
        if ptr_type != "handle":
            raise IRError(f'{self.name}.access_ptr: the type of a pointer is "handle", not {described(ptr_type)}')
        if not isinstance(content_lanes, int) or content_lanes < 1:
            raise IRError(f"{self.name}.access_ptr: content_lanes is {described(content_lanes)}, not a number of lanes")
        if extent is None and isinstance(offset, int) and offset == 0:
            return pointer(self)
        return _pointer_into(self, convert(offset), extent)


@structure(effect=Effect.READS)
@dataclass(slots=True, eq=False, repr=False)
class Load(Expr):
    """buffer[indices]. The last index may be a vector; lanes where predicate (bool lanes) is false give 0,
    unread.

    A Ramp there counts elements of the memory from the start of its row: lane k touches the element base + k * stride,
    and may run on into the rows that follow without a gap (see lane_room), as the vector loads of TVM do. The access is
    inside of the buffer when the indices before are inside of their extents and every lane is one of these elements. A
    vector of another form stays in its row. A Store touches what a Load at its indices would.
    """
    buffer: Buffer
    indices: tuple[Expr, ...]
    predicate: Expr | None = None

    @property
    def dtype(self) -> str:
        lanes = dt.lanes_of(self.indices[-1].dtype) if self.indices else 1
        return dt.with_lanes(self.buffer.dtype, lanes) if lanes > 1 else self.buffer.dtype


@dataclass(slots=True, eq=False, repr=False)
class BufferRegion(Node):
    """The box buffer[region[0].min : +extent, ...]."""
    buffer: Buffer
    region: tuple[Range, ...]


def element_region(buffer: Buffer, indices: Iterable[Expr]) -> BufferRegion:
    """One element of buffer."""
    return BufferRegion(buffer, tuple([Range(i, IntImm(1, i.dtype)) for i in indices]))


def whole_region(buffer: Buffer) -> BufferRegion:
    """All elements of buffer."""
    return BufferRegion(buffer, tuple(Range(IntImm(0, d.dtype), d) for d in buffer.shape))


@structure(defines=("buffer",), sizes=("strides", "elem_offset"))
@dataclass(slots=True, eq=False, repr=False)
class MatchBuffer(Node):
    """buffer is a view of the region source (`T.match_buffer` in a block)."""
    buffer: Buffer
    source: BufferRegion


def decl_buffer(
    shape: Sequence[Any], dtype: str = "float32", name: str = "buffer", *, strides: Sequence[Any] = (),
    elem_offset: Any = None, scope: str = "global", data_alignment: int = 64, offset_factor: int = 0,
) -> Buffer:
    """A new buffer. Integers of shape and strides become int32 constants (int64 where they do not fit).

    Raises IRError for a negative extent, a float extent, an extent, stride or offset of another type than int32 and
    int64, and a scope of no kind in SCOPES ("" is "global").
    """
    extents, steps = tuple(map(size, shape)), tuple(map(size, strides or ()))
    offset = None if elem_offset is None else size(elem_offset)
    for d in extents:
        if not dt.is_integer(d.dtype) or (isinstance(d, IntImm) and d.value < 0):
            shown = ", ".join(map(str, extents))
            raise IRError(f"buffer {name}: extent {d} of shape ({shown}) is not a natural number")
    for what, sizes in (("extent", extents), ("stride", steps), ("offset", () if offset is None else (offset,))):
        for k, e in enumerate(sizes):
            if e.dtype not in SIZES:
                place = what if what == "offset" else f"{what} {k}"
                raise IRError(f"buffer {name}: {place} is {e}, {NO_SIZE.format(e.dtype)}", HOW_TO_SIZE)
    scope = scope or "global"
    if not is_scope(scope):
        raise IRError(f"buffer {name}: {described(scope)} is not a storage scope", KINDS_OF_SCOPES)
    return Buffer(name, extents, dt.canonical(dtype), steps, offset, scope, data_alignment, offset_factor)


SIZES = ("int32", "int64")                                # the types of sizes: those of indices, which stay below them
NO_SIZE = "of type {}: a size is an int32 or int64"
HOW_TO_SIZE = "make the variable an int64, or cast it where it stands: n.astype(\"int64\"), in a script T.int64(n)"


def size(value: Any) -> Expr:
    """An extent, stride or offset as an expression; a constant of another type than those of sizes becomes one."""
    e = convert(value)
    return convert(e.value) if isinstance(e, IntImm) and e.dtype not in SIZES else e


def scope_kind(scope: object) -> str:
    """The kind of memory that scope names, one of SCOPES; "" where it names none.

    What follows the kind is its tag, which begins with a dot, a colon or an underscore.
    """
    if not isinstance(scope, str):
        return ""
    return next((k for k in SCOPES if scope == k or scope.startswith((f"{k}.", f"{k}:", f"{k}_")) and
                 len(scope) > len(k) + 1), "")


def is_scope(scope: object) -> bool:
    """True for one of SCOPES, with or without a tag."""
    return scope_kind(scope) != ""


def vector_at(begin: Any, lanes: int) -> tuple[Expr, ...]:
    """The indices of `lanes` neighbours from `begin` on along the last axis; a begin of that many lanes itself.

    Raises IRError for a begin of another number of lanes.
    """
    index = [convert(i) for i in (begin if isinstance(begin, (tuple, list)) else (begin,))]
    given = dt.lanes_of(index[-1].dtype) if index else 1
    if lanes > 1 and given not in (1, lanes):
        raise IRError(f"a vector of {lanes} lanes is to start at {index[-1]}, which is a vector of {given}")
    if lanes > 1 and index and given == 1:
        index[-1] = Ramp(index[-1], IntImm(1, index[-1].dtype), lanes)
    return tuple(index)


def as_index(e: Expr) -> Expr:
    """An integer as an index: in int32 or int64, where arithmetic with extents cannot wrap.

    A uint64 above the largest int64 becomes negative, so it is outside of any buffer all the same.
    """
    element = dt.element_of(e.dtype)
    if element in ("int32", "int64"):
        return e
    return cast(dt.with_lanes("int64" if element in ("uint32", "uint64") else "int32", dt.lanes_of(e.dtype)), e)


def no_text(name: str, index: Expr) -> Expr:
    """index. Raises IRError where it is a string."""
    if isinstance(index, StringImm):
        raise IRError(f"{name}: an index is an integer, not the string {index.value!r}", f"{name}[i]")
    return index


def load(buffer: Buffer, indices: Sequence[Any]) -> Load:
    """buffer[indices]; raises IRError on a wrong number of indices or an index that is not an integer."""
    exprs = tuple(no_text(buffer.name, convert(i)) for i in indices)
    if len(exprs) != len(buffer.shape):
        raise IRError(f"{buffer.name} has {len(buffer.shape)} dimension(s), {len(exprs)} index(es) given")
    for e in exprs:
        if not dt.is_integer(e.dtype):
            raise IRError(f"{buffer.name}: index {e} is {e.dtype}, not an integer")
    return Load(buffer, tuple(map(as_index, exprs)))


def pointer(buffer: Buffer) -> Expr:
    """The address of a buffer's first element with its extents: the argument of an external call."""
    zeros = tuple(IntImm(0, d.dtype) for d in buffer.shape)
    return Call("access_ptr", (Load(buffer, zeros), *buffer.shape), "handle")


def _pointer_into(buffer: Buffer, offset: Expr, extent: Any) -> Expr:
    """The address of the element that is `offset` elements behind the first, as that of a vector of `extent`."""
    if buffer.strides:
        raise IRError(f"{buffer.name}.access_ptr: the memory has strides; an offset counts none",
                      "match the part as a buffer")
    if not dt.is_integer(offset.dtype):
        raise IRError(f"{buffer.name}.access_ptr: offset {offset} is {offset.dtype}, not an integer")
    at = tuple(binary("floormod", binary("floordiv", offset, step), d) if k else binary("floordiv", offset, step)
               for k, (step, d) in enumerate(zip(row_major(buffer.shape), buffer.shape, strict=True)))
    count = binary("sub", numel(buffer), offset) if extent is None else convert(extent)
    return Call("access_ptr", (load(buffer, at), count), "handle")


def strided_pointer(first: Load, extents: Sequence[Expr], strides: Sequence[Expr]) -> Expr:
    """The address of an element, with extents and strides (in elements) of what lies there."""
    return Call("access_ptr", (first, *extents, Call("strides", tuple(strides), "handle")), "handle")


def pointer_layout(call: Call) -> tuple[tuple[Expr, ...], tuple[Expr, ...] | None]:
    """(extents, strides) of an access_ptr; strides is None where the memory is compact."""
    rest = call.args[1:]
    if rest and isinstance(rest[-1], Call) and rest[-1].op == "strides":
        return rest[:-1], rest[-1].args
    return rest, None


def row_major(extents: Sequence[Expr]) -> tuple[Expr, ...]:
    """The strides of a compact array, in elements."""
    out: list[Expr] = []
    step: Expr = IntImm(1)
    for extent in reversed(extents):
        out.append(step)
        step = binary("mul", step, extent)
    return tuple(reversed(out))


def lane_room(buffer: Buffer, outer: Sequence[Expr]) -> Expr:
    """How many elements, from the start of row `outer` on, a Ramp as the last index may touch.

    Those of the row and, as long as no stride leaves a gap, of the rows behind it.
    """
    count = size = buffer.shape[-1]
    if buffer.strides and not is_const(buffer.strides[-1], 1):
        return count
    strides = buffer.strides or (None,) * len(buffer.shape)
    for i, extent, stride in reversed(list(zip(outer, buffer.shape, strides, strict=False))):
        if stride is not None and not (isinstance(size, IntImm) and is_const(stride, size.value)):
            break
        count = binary("add", count, binary("mul", binary("sub", binary("sub", extent, 1), i), size))
        size = binary("mul", size, extent)
    return count


def numel(buffer: Buffer) -> Expr:
    """Number of elements of the buffer's shape."""
    count: Expr = IntImm(1)
    for extent in buffer.shape:
        count = binary("mul", count, extent)
    return count


def reach(buffer: Buffer) -> Expr:
    """Elements from the pointer to the end of the buffer."""
    end: Expr = numel(buffer)
    if buffer.strides and not is_const(end, 0):
        end = IntImm(1)
        for extent, stride in zip(buffer.shape, buffer.strides, strict=True):
            end = binary("add", end, binary("mul", binary("sub", extent, 1), stride))
    return end if buffer.elem_offset is None else binary("add", end, buffer.elem_offset)
