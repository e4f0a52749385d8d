"""Loads, stores, gathers and scatters, with predicates."""
from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.llvm.arithmetic import with_zero
from tilewright.codegen.llvm.context import EXPRESSIONS, STATEMENTS, FunctionEmitter, emits
from tilewright.codegen.llvm.faults import any_of, checked_lanes, inside
from tilewright.codegen.llvm.index import as_ramp, index
from tilewright.codegen.llvm.queries import depends_on_data
from tilewright.codegen.llvm.small_floats import from_memory, to_memory
from tilewright.codegen.llvm.types import memory_type, register_type, suffix
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Broadcast, Expr, IntImm, Ramp, binary
from tilewright.tir.stmt import Store


def flat_index(fn: FunctionEmitter, buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """The one index of a flat access. Raises CodegenError for an access that was not flattened."""
    if len(indices) == 1:
        return indices[0]
    if not indices:
        return IntImm(0)
    raise CodegenError(
        with_hint(
            f"{fn.name}: {buffer.name} is accessed with {len(indices)} indices; machine code needs one",
            "lower the function first: tilewright.lowering(func)",
        )
    )


def pointer(fn: FunctionEmitter, buffer: Buffer) -> str:
    """The address of the buffer's data."""
    found = fn.pointers.get(buffer.data)
    if found is None:
        raise CodegenError(
            with_hint(
                f"{fn.name}: buffer {buffer.name} is neither an argument nor allocated here",
                "its `data` variable must be the one of an argument's buffer or of an Allocate",
            )
        )
    return found


def address(fn: FunctionEmitter, buffer: Buffer, at: str, inbounds: bool = True) -> str:
    """The address of element `at` (an i64 operand)."""
    base = pointer(fn, buffer)
    if at == "0":
        return base
    flag = "inbounds " if inbounds else ""
    return fn.value(f"getelementptr {flag}{memory_type(buffer.dtype)}, ptr {base}, i64 {at}")


def alignment(buffer: Buffer) -> int:
    """Alignment in bytes that every element has."""
    return dt.bytes_of(buffer.dtype)


def predicate_of(fn: FunctionEmitter, predicate: Expr | None, lanes: int) -> str | None:
    """The mask under which an access of `lanes` lanes happens; None: always."""
    mask = None if predicate is None else fn.expr(predicate)
    if predicate is not None and dt.lanes_of(predicate.dtype) == 1 and lanes > 1:
        mask = fn.broadcast(mask or "true", "i1", lanes)
    if fn.mask is None or f"<{lanes} x" not in fn.mask:
        return mask
    around = fn.mask.split("> ", 1)[1]
    return around if mask is None else fn.value(f"and <{lanes} x i1> {mask}, {around}")


@emits(EXPRESSIONS, Load)
def emit_load(fn: FunctionEmitter, e: Load) -> str:
    """A scalar or vector load; lanes whose predicate is false give 0 and are not read."""
    at, dtype = flat_index(fn, e.buffer, e.indices), e.dtype
    lanes = dt.lanes_of(dtype)
    if lanes == 1:
        return _load_scalar(fn, e.buffer, at, e.predicate)
    mask = predicate_of(fn, e.predicate, lanes)
    ramp = as_ramp(at)
    if isinstance(ramp, Broadcast):
        return _load_broadcast(fn, e.buffer, ramp, mask)
    if isinstance(ramp, Ramp) and not (mask is not None and depends_on_data(at, fn.dependent)):
        ok = None
        if depends_on_data(at, fn.dependent):
            ok = inside(fn, e.buffer, at, lane_index(fn, ramp, 0), lane_index(fn, ramp, lanes - 1))
        if ok is not None:
            return _choose(fn, dtype, ok, lambda: _load_ramp(fn, e.buffer, ramp, at, None, dtype))
        return _load_ramp(fn, e.buffer, ramp, at, mask, dtype)
    return from_memory(
        fn, _gather(fn, e.buffer, at, checked_lanes(fn, e.buffer, at, mask, lanes), lanes), dtype
    )


def _load_ramp(
    fn: FunctionEmitter, buffer: Buffer, ramp: Ramp, at: Expr, mask: str | None, dtype: str
) -> str:
    if isinstance(ramp.stride, IntImm) and ramp.stride.value in (1, -1):
        return from_memory(fn, _load_contiguous(fn, buffer, ramp, mask), dtype)
    if mask is None:
        return from_memory(fn, _load_strided(fn, buffer, ramp), dtype)
    return from_memory(fn, _gather(fn, buffer, at, mask, ramp.lanes), dtype)


def _load_scalar(fn: FunctionEmitter, buffer: Buffer, at: Expr, predicate: Expr | None) -> str:
    """A scalar load, behind a branch when a predicate or the mask of a vector branch guards it."""
    condition = None if predicate is None else fn.expr(predicate)
    if fn.mask is not None:
        any_lane = any_of(fn, fn.mask)
        condition = any_lane if condition is None else fn.value(f"and i1 {condition}, {any_lane}")
    return guarded_load(fn, buffer, at, condition)


def guarded_load(fn: FunctionEmitter, buffer: Buffer, at: Expr, condition: str | None) -> str:
    """buffer[at] if condition holds, else 0. An index from data is checked."""
    if condition is not None:
        return _choose(fn, buffer.dtype, condition, lambda: guarded_load(fn, buffer, at, None))
    where = index(fn, at)
    ok = inside(fn, buffer, at, where)
    if ok is not None:
        return _choose(fn, buffer.dtype, ok, lambda: _load_element(fn, buffer, where))
    return _load_element(fn, buffer, where)


def _load_element(fn: FunctionEmitter, buffer: Buffer, where: str) -> str:
    loaded = fn.effect(
        f"load {memory_type(buffer.dtype)}, ptr {address(fn, buffer, where)}, align {alignment(buffer)}"
    )
    return from_memory(fn, loaded, buffer.dtype)


def _choose(fn: FunctionEmitter, dtype: str, condition: str, make: Callable[[], str]) -> str:
    """make() where condition holds, else 0 (of dtype, which may be a vector)."""
    type_ = register_type(dtype)
    read, done, before = fn.new_label("read"), fn.new_label("done"), fn.label
    fn.branch(condition, read, done)
    fn.start(read)
    with fn.region():
        value = make()
    after = fn.label
    fn.jump(done)
    fn.start(done)
    zero = "false" if type_ == "i1" else with_zero(type_)
    return fn.effect(f"phi {type_} [ {zero}, %{before} ], [ {value}, %{after} ]")


def _load_broadcast(fn: FunctionEmitter, buffer: Buffer, at: Broadcast, mask: str | None) -> str:
    type_ = register_type(buffer.dtype)
    condition = None if mask is None else any_of(fn, f"<{at.lanes} x i1> {mask}")
    value = fn.broadcast(guarded_load(fn, buffer, at.value, condition), type_, at.lanes)
    if mask is None:
        return value
    return fn.select(mask, f"<{at.lanes} x i1>", value, "zeroinitializer", f"<{at.lanes} x {type_}>")


def _first(ramp: Ramp) -> Expr:
    """Lowest index of a ramp of stride 1 or -1."""
    assert isinstance(ramp.stride, IntImm)
    return (
        ramp.base
        if ramp.stride.value == 1
        else binary("sub", ramp.base, IntImm(ramp.lanes - 1, ramp.base.dtype))
    )


def _is_reversed(ramp: Ramp) -> bool:
    return isinstance(ramp.stride, IntImm) and ramp.stride.value == -1


def reverse(fn: FunctionEmitter, x: str, type_: str, lanes: int) -> str:
    order = ", ".join(f"i32 {k}" for k in reversed(range(lanes)))
    return fn.value(f"shufflevector {type_} {x}, {type_} poison, <{lanes} x i32> <{order}>")


def _load_contiguous(fn: FunctionEmitter, buffer: Buffer, ramp: Ramp, mask: str | None) -> str:
    type_ = memory_type(dt.with_lanes(buffer.dtype, ramp.lanes))
    at, align = index(fn, _first(ramp)), alignment(buffer)
    if mask is None:
        loaded = fn.effect(f"load {type_}, ptr {address(fn, buffer, at)}, align {align}")
    else:
        lanes_mask = f"<{ramp.lanes} x i1>"
        if _is_reversed(ramp):
            mask = reverse(fn, mask, lanes_mask, ramp.lanes)
        symbol = fn.module.declare(
            f"llvm.masked.load.{suffix(type_)}.p0", type_, f"ptr, {lanes_mask}, {type_}"
        )
        where = address(fn, buffer, at, inbounds=False)
        loaded = fn.effect(
            f"call {type_} {symbol}(ptr align {align} {where}, {lanes_mask} {mask}, {type_} zeroinitializer)"
        )
    return reverse(fn, loaded, type_, ramp.lanes) if _is_reversed(ramp) else loaded


def _load_strided(fn: FunctionEmitter, buffer: Buffer, ramp: Ramp) -> str:
    """One scalar load per lane: no slower than a gather instruction, and known to every target."""
    element, type_ = memory_type(buffer.dtype), memory_type(dt.with_lanes(buffer.dtype, ramp.lanes))
    out = "poison"
    for lane in range(ramp.lanes):
        where = address(fn, buffer, lane_index(fn, ramp, lane))
        loaded = fn.effect(f"load {element}, ptr {where}, align {alignment(buffer)}")
        out = fn.value(f"insertelement {type_} {out}, {element} {loaded}, i64 {lane}")
    return out


def lane_index(fn: FunctionEmitter, ramp: Ramp, lane: int) -> str:
    """The i64 operand of base + lane * stride."""
    if lane == 0:
        return index(fn, ramp.base)
    offset = binary("mul", ramp.stride, IntImm(lane, ramp.stride.dtype))
    return index(fn, binary("add", ramp.base, offset))


def _addresses(fn: FunctionEmitter, buffer: Buffer, at: Expr, lanes: int) -> str:
    element = register_type(dt.element_of(at.dtype))
    operand, type_ = fn.expr(at), f"<{lanes} x {element}>"
    if dt.is_unsigned(at.dtype) and element != "i64":
        operand, type_ = fn.value(f"zext {type_} {operand} to <{lanes} x i64>"), f"<{lanes} x i64>"
    return fn.value(
        f"getelementptr {memory_type(buffer.dtype)}, ptr {pointer(fn, buffer)}, {type_} {operand}"
    )


def _gather(fn: FunctionEmitter, buffer: Buffer, at: Expr, mask: str | None, lanes: int) -> str:
    type_ = memory_type(dt.with_lanes(buffer.dtype, lanes))
    where = _addresses(fn, buffer, at, lanes)
    symbol = fn.module.declare(f"llvm.masked.gather.{suffix(type_)}.v{lanes}p0", type_,
                               f"<{lanes} x ptr>, <{lanes} x i1>, {type_}")
    return fn.effect(f"call {type_} {symbol}(<{lanes} x ptr> align {alignment(buffer)} {where}, "
                     f"<{lanes} x i1> {mask or 'splat (i1 true)'}, {type_} zeroinitializer)")


@emits(STATEMENTS, Store)
def emit_store(fn: FunctionEmitter, s: Store) -> None:
    """A scalar or vector store; lanes whose predicate is false keep their value."""
    at = flat_index(fn, s.buffer, s.indices)
    lanes = dt.lanes_of(at.dtype)
    dtype = dt.with_lanes(s.buffer.dtype, lanes)
    if dt.element_of(s.value.dtype) != s.buffer.dtype:
        raise CodegenError(
            f"{fn.name}: a {s.value.dtype} value is stored to {s.buffer.name}, which holds {s.buffer.dtype}"
        )
    if lanes == 1:
        _store_scalar(fn, s, at)
        return
    value = fn.expr(s.value)
    if dt.lanes_of(s.value.dtype) == 1:
        value = fn.broadcast(value, register_type(s.buffer.dtype), lanes)
    value = to_memory(fn, value, dtype)
    mask = predicate_of(fn, s.predicate, lanes)
    ramp = as_ramp(at)
    if depends_on_data(at, fn.dependent):
        mask = checked_lanes(fn, s.buffer, at, mask, lanes)
    if isinstance(ramp, Ramp) and isinstance(ramp.stride, IntImm) and ramp.stride.value in (1, -1):
        _store_contiguous(fn, s.buffer, ramp, value, mask)
    elif isinstance(ramp, Ramp) and mask is None:
        _store_strided(fn, s.buffer, ramp, value)
    else:
        _scatter(fn, s.buffer, at, value, mask, lanes)


def _store_scalar(fn: FunctionEmitter, s: Store, at: Expr) -> None:
    condition = None if s.predicate is None else fn.expr(s.predicate)
    _only_if(fn, condition, lambda: _store_element(fn, s, at))


def _store_element(fn: FunctionEmitter, s: Store, at: Expr) -> None:
    value, element = to_memory(fn, fn.expr(s.value), s.buffer.dtype), memory_type(s.buffer.dtype)
    where = index(fn, at)

    def put() -> None:
        fn.do(f"store {element} {value}, ptr {address(fn, s.buffer, where)}, align {alignment(s.buffer)}")
    _only_if(fn, inside(fn, s.buffer, at, where), put)


def _only_if(fn: FunctionEmitter, condition: str | None, emit: Callable[[], None]) -> None:
    if condition is None:
        emit()
        return
    write, done = fn.new_label("write"), fn.new_label("done")
    fn.branch(condition, write, done)
    fn.start(write)
    with fn.region():
        emit()
    fn.jump(done)
    fn.start(done)


def _store_contiguous(fn: FunctionEmitter, buffer: Buffer, ramp: Ramp, value: str, mask: str | None) -> None:
    type_, lanes = memory_type(dt.with_lanes(buffer.dtype, ramp.lanes)), ramp.lanes
    if _is_reversed(ramp):
        value = reverse(fn, value, type_, lanes)
    where = address(fn, buffer, index(fn, _first(ramp)), inbounds=mask is None)
    align = alignment(buffer)
    if mask is None:
        fn.do(f"store {type_} {value}, ptr {where}, align {align}")
        return
    if _is_reversed(ramp):
        mask = reverse(fn, mask, f"<{lanes} x i1>", lanes)
    symbol = fn.module.declare(
        f"llvm.masked.store.{suffix(type_)}.p0", "void", f"{type_}, ptr, <{lanes} x i1>"
    )
    fn.do(f"call void {symbol}({type_} {value}, ptr align {align} {where}, <{lanes} x i1> {mask})")


def _store_strided(fn: FunctionEmitter, buffer: Buffer, ramp: Ramp, value: str) -> None:
    element, type_ = memory_type(buffer.dtype), memory_type(dt.with_lanes(buffer.dtype, ramp.lanes))
    for lane in range(ramp.lanes):
        one = fn.value(f"extractelement {type_} {value}, i64 {lane}")
        where = address(fn, buffer, lane_index(fn, ramp, lane))
        fn.do(f"store {element} {one}, ptr {where}, align {alignment(buffer)}")


def _scatter(fn: FunctionEmitter, buffer: Buffer, at: Expr, value: str, mask: str | None, lanes: int) -> None:
    """Lanes in order: of several lanes with one index the last one wins."""
    type_ = memory_type(dt.with_lanes(buffer.dtype, lanes))
    where = _addresses(fn, buffer, at, lanes)
    symbol = fn.module.declare(f"llvm.masked.scatter.{suffix(type_)}.v{lanes}p0", "void",
                               f"{type_}, <{lanes} x ptr>, <{lanes} x i1>")
    fn.do(f"call void {symbol}({type_} {value}, <{lanes} x ptr> align {alignment(buffer)} {where}, "
          f"<{lanes} x i1> {mask or 'splat (i1 true)'})")
