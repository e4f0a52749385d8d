"""Which values a kernel receives, in which order, and the signature by which its calls are checked."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.lowering.outline import REGION, regions_of
from tilewright.runtime.signature import OPERATORS, Dim, Param, Signature
from tilewright.support.errors import CodegenError, with_hint
from tilewright.support.names import NameSupply
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Binary, Call, Cast, Expr, IntImm, Var
from tilewright.tir.node import Node, walk
from tilewright.tir.stmt import PrimFunc, Store, seq


@dataclass(frozen=True)
class KernelLayout:
    """The arguments of `@NAME__kernel`: an address per buffer, the scalar parameters, then the symbols
    of the shapes.

    `symbols` are in the order in which a buffer's shape (then strides) first has them as a whole extent.
    """
    name: str
    buffers: tuple[Buffer, ...]
    scalars: tuple[Var, ...]
    symbols: tuple[Var, ...]
    signature: Signature

    @property
    def values(self) -> tuple[Var, ...]:
        return self.scalars + self.symbols


def kernel_layout(func: PrimFunc, regions: Sequence[PrimFunc] = ()) -> KernelLayout:
    """The layout of func, some of whose regions may be functions. Raises CodegenError for parameters that native code
    cannot take.
    """
    func = func.with_body(seq([func.body, *(r.body for r in regions)]))
    names, supply = {}, NameSupply()
    scalars = [p for p in func.params if p not in func.buffer_map]
    for p in func.params:
        names[p] = supply.fresh(_shown(func.buffer_map[p].name if p in func.buffer_map else p.name))
    symbols: dict[Var, None] = {}
    for buffer in func.buffers:
        for extent in (*buffer.shape, *buffer.strides):
            if isinstance(extent, Var) and extent not in names:
                names[extent] = supply.fresh(_shown(extent.name))
                symbols[extent] = None
    uses = _Uses.of(func)
    written = _written(func, uses)
    stored = {s.buffer.data for s in uses.stores} & {b.data for b in func.buffers}
    pointwise = _pointwise(func, uses, stored, written)
    params = [_param(func, p, names, written, stored, pointwise) for p in func.params]
    signature = Signature(func.name, tuple(params), {names[s]: s.dtype for s in symbols})
    ordered = {names[s]: s for s in symbols}
    assert tuple(ordered) == signature.symbols, "the signature binds its symbols in another order"
    return KernelLayout(func.name, func.buffers, tuple(scalars), tuple(symbols), signature)


def layouts(funcs: Sequence[PrimFunc]) -> dict[PrimFunc, KernelLayout]:
    """The functions that are no regions of others, each with its layout. Raises CodegenError for two of one name."""
    names = [f.name for f in funcs]
    if len(set(names)) != len(names):
        raise CodegenError(f"two functions of one module have one name: {', '.join(sorted(names))}")
    return {f: kernel_layout(f, regions_of(f, funcs)) for f in funcs if REGION not in f.attrs}


def result_code(dtype: str | None) -> int:
    """How `tw_run` (runtime/native/packed.ll) gives a result of dtype; None: there is none."""
    if dtype is None or dt.is_float(dtype):
        return 0 if dtype is None else 3
    return {"bool": 2, "uint64": 4}.get(dtype, 1)


def _shown(name: str) -> str:
    """name as a zero-terminated text of Unicode can hold it."""
    return name.encode(errors="backslashreplace").decode().replace("\0", "\\0")


def _param(func: PrimFunc, p: Var, names: dict[Var, str], written: set[Var], stored: set[Var],
           pointwise: set[Var]) -> Param:
    buffer = func.buffer_map.get(p)
    if buffer is None:
        if p.dtype == "handle" or dt.lanes_of(p.dtype) > 1:
            raise CodegenError(with_hint(f"{func.name}: parameter {p.name} is a {p.dtype} without a buffer",
                                         "give it a Buffer in buffer_map"))
        if dt.is_float(p.dtype) and dt.bits_of(p.dtype) == 8:
            raise CodegenError(with_hint(f"{func.name}: the scalar parameter {p.name} is a {p.dtype}, a format of "
                                         "tensors only", "pass a float32 and cast it inside"))
        return Param(names[p], p.dtype)
    shape = tuple(_dim(func, e, names) for e in buffer.shape)
    strides = tuple(_dim(func, e, names) for e in buffer.strides) or None
    if isinstance(buffer.elem_offset, IntImm) and buffer.elem_offset.value:
        raise CodegenError(with_hint(f"{func.name}: parameter {buffer.name} has the elem_offset {buffer.elem_offset}, "
                                     "but a call gives the address of element 0", "leave it out, or use a variable"))
    return Param(names[p], buffer.dtype, shape, strides, buffer.data in written,
                 exclusive=buffer.data in stored, pointwise=buffer.data in pointwise,
                 updated=buffer.name in func.attrs.get("updated", ()))


def _dim(func: PrimFunc, e: Expr, names: dict[Var, str]) -> Dim:
    if isinstance(e, IntImm):
        return e.value
    if isinstance(e, Var) and e in names:
        return names[e]
    if isinstance(e, Cast):
        return _dim(func, e.value, names)
    if isinstance(e, Binary) and e.op in OPERATORS:
        return e.op, _dim(func, e.a, names), _dim(func, e.b, names)
    raise CodegenError(
        with_hint(
            f"{func.name}: the extent {e} of a parameter cannot be checked at a call",
            "extents are sums, products, quotients, min and max of shape variables and scalar parameters; "
            "each variable must stand alone as one extent or be a parameter",
        )
    )


@dataclass(frozen=True)
class _Uses:
    """What a function does with memory, by data Vars: its stores, how many loads there are, what it hands to others."""
    stores: tuple[Store, ...]
    loads: Mapping[Var, int]
    handed: frozenset[Var]

    @classmethod
    def of(cls, func: PrimFunc) -> _Uses:
        stores: list[Store] = []
        loads: Counter[Var] = Counter()
        handed: set[Var] = set()
        for node in walk(func.body):
            if isinstance(node, Store):
                stores.append(node)
            elif isinstance(node, Load):
                loads[node.buffer.data] += 1
            elif isinstance(node, Call) and node.op in ("call_extern", "call_packed"):
                handed |= {v for a in node.args for n in walk(a) for v in _address(n)}
        return cls(tuple(stores), loads, frozenset(handed))


def _address(node: Node) -> tuple[Var, ...]:
    """The data Var of the memory whose address node is, if it is one."""
    if isinstance(node, Call) and node.op == "access_ptr" and isinstance(node.args[0], Load):
        return (node.args[0].buffer.data,)
    return (node,) if isinstance(node, Var) and node.dtype == "handle" else ()


def _written(func: PrimFunc, uses: _Uses) -> set[Var]:
    """The data Vars of buffers that the function stores to, or hands to a function that might.

    The attribute "only_read" of a function lists parameters that those which it calls do not store to.
    """
    only_read = func.attrs.get("only_read", ())
    found = {s.buffer.data for s in uses.stores} | uses.handed
    return found - {b.data for p, b in func.buffer_map.items() if p.name in only_read}


def _pointwise(func: PrimFunc, uses: _Uses, stored: set[Var], written: set[Var]) -> set[Var]:
    """The data Vars of arguments that may lie in the same memory as the one stored argument.

    Every store to that one reads them at the index stored to, nothing else reads them, and the stored argument is
    not read at all.
    """
    if len(stored) != 1:
        return set()
    target, = stored
    candidates = {b.data for b in func.buffers} - stored - written
    if target in uses.loads:
        return set()
    here: Counter[Var] = Counter()
    for s in (s for s in uses.stores if s.buffer.data is target):
        read: set[Var] = set()
        for n in walk(s.value) if candidates else ():
            if isinstance(n, Load) and n.buffer.data in candidates:
                read.add(n.buffer.data)
                here[n.buffer.data] += 1
                if not structural_equal(n.indices[0], s.indices[0]):
                    candidates.discard(n.buffer.data)
        candidates &= read
    return {v for v in candidates if here[v] == uses.loads[v]}
