"""Memory of buffers: other dimensions, or another order of them."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import detect_iter_map
from tilewright.arith.regions import intervals_of
from tilewright.schedule.index_map import IndexMap, PadValue, new_shape
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives import caching
from tilewright.schedule.primitives.layout_padding import Change, give_padding
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV
from tilewright.support.errors import described, legal, require
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer
from tilewright.tir.expr import Call, Expr, IntImm, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.node import Node, rewrite, walk
from tilewright.tir.stmt import Block, BlockRealize, PrimFunc, Store


def buffer_as_position(arguments: dict[str, Any]) -> Buffer:
    """The buffer that is meant, in the arguments as its position among the regions of the block."""
    realize = arguments["sch"].realize(arguments["block"])
    block, old = realize.block, chosen_buffer(realize, arguments["buffer"])
    if isinstance(arguments["buffer"], Buffer):
        arguments["buffer"] = next((kind, n) for kind, regions in (("write", block.writes), ("read", block.reads))
                                   for n, r in enumerate(regions) if r.buffer is old)
    return old


def _as_text(arguments: dict[str, Any]) -> None:
    """index_map and pad_value as texts, buffer as a position: a function in a trace could not be printed or stored."""
    old = buffer_as_position(arguments)
    mapped = arguments["index_map"] = IndexMap.of(arguments["index_map"], len(old.shape))
    pad = arguments.get("pad_value")
    if callable(pad) or isinstance(pad, float) and not math.isfinite(pad):
        arguments["pad_value"] = PadValue.of(pad, mapped.rank)


@primitive(as_text=_as_text)
def transform_layout(sch: Schedule, block: BlockRV, buffer: tuple[str, int] | str | Buffer,
                     index_map: Callable[..., Any] | str, pad_value: Any = None, *,
                     assume_injective_transform: bool = False, of_arguments: bool = False) -> None:
    """Store a buffer in another order, or with other dimensions.

        B_packed[k, j]
    ->
        B_packed[j // 32, k, j % 32]        # index_map: lambda k, j: (j // 32, k, j % 32)

    buffer: ("read", n) or ("write", n) among the regions of block, a name, or the buffer itself. index_map gives the
    new indices of the element at the old ones; every access of the function is rewritten. IndexMap.AXIS_SEPARATOR
    among them starts a new physical dimension. Where a split does not divide an extent the new buffer has padding:
    elements that nothing reads. pad_value, a number or a function of the new indices, is written to them: by the
    block that makes the buffer, which then runs over the new shape, if that is all that its loops do; else by a new
    block NAME_pad before the first use. assume_injective_transform: take index_map to be one to one without a proof.
    An argument of the function keeps its layout, since its caller relies on it, unless of_arguments is given: then the
    signature changes, as it always does in TVM. Padding of an argument that is only read belongs to the caller: a
    block NAME_pad assumes that pad_value is in it.

    Legal when
    - the function allocates the buffer, or of_arguments is given and the arguments tell all variables of its extents
      afterwards;
    - only loads and stores of elements use it;
    - what a block is said to write of it is an exact box in the new layout as well;
    - index_map gives no two elements the same place.
    """
    realize = sch.realize(block)
    old = chosen_buffer(realize, buffer)
    given = any(old is b for b in sch.func.buffers)
    require(not given or of_arguments is True, f"{old.name} is an argument of the function", realize,
            hint="cache_read or cache_write makes a copy whose layout may change; of_arguments=True changes what the "
                 "caller gives")
    require(not old.strides, f"{old.name} has strides of its own", realize)
    mapped = IndexMap.of(index_map, len(old.shape))
    axes = tuple(Var(name, extent.dtype) for name, extent in zip(mapped.parameters, old.shape))
    indices = mapped.apply(axes)
    analyzer = sch.analyzer_at(None)
    domains = {v: (IntImm(0, v.dtype), extent) for v, extent in zip(axes, old.shape)}
    inverse = detect_iter_map(indices, domains, None, analyzer)
    known = inverse is not None and inverse.is_injective
    legal(known or assume_injective_transform is True,
          f"the map ({', '.join(map(str, axes))}) -> ({', '.join(map(str, indices))}) is not known to give every "
          f"element of {old.name} a place of its own", realize,
          hint="build it from axes, //, % by constants, and sums of multiples")
    new = old.replace(shape=new_shape(analyzer, indices, domains), data=None, axis_separators=mapped.axis_separators)
    pad = None if pad_value is None else PadValue.of(pad_value, len(indices))
    require(pad is None or known, f"the padding of {old.name} is not known: index_map is not shown to be one to one",
            realize, hint="leave out pad_value")
    transform = _Transform(old, new, mapped, analyzer)
    _require_exact_writes(sch, transform)
    change = Change(old, new, mapped, axes, domains, inverse)
    before = sch.index
    if given:
        sch.set_function(_with_argument(sch.func, old, new))
    sch.set_body(rewrite(sch.func.body, transform.step))
    if pad is not None:
        give_padding(sch, before, change, pad)


def _with_argument(func: PrimFunc, old: Buffer, new: Buffer) -> PrimFunc:
    """func with the argument new for old. Refuses where this leaves a variable of the extents unknown."""
    arguments = {p: new if b is old else b for p, b in func.buffer_map.items()}
    told = {*func.params, *(d for b in arguments.values() for d in b.shape if isinstance(d, Var))}
    for v in (n for d in old.shape for n in walk(d) if isinstance(n, Var)):
        require(v in told, f"with the new layout of {old.name} no argument tells {v.name}",
                hint=f"pass {v.name} as an argument, or keep it a whole extent")
    return func.replace(buffer_map=arguments)


def chosen_buffer(realize: BlockRealize, which: tuple[str, int] | str | Buffer) -> Buffer:
    """The buffer of a block that ("read", n), ("write", n), a name or a Buffer means. Refuses what means none."""
    block = realize.block
    regions: Mapping[str, Sequence[BufferRegion]] = {"read": block.reads, "write": block.writes}
    if isinstance(which, (str, Buffer)):
        return caching.chosen(realize, (*block.writes, *block.reads), which, "has").buffer
    kind, n = which if isinstance(which, (tuple, list)) and len(which) == 2 else (None, None)
    known = isinstance(kind, str) and kind in regions and type(n) is int
    require(known, f'the buffer is {described(which)}, not ("read", n), ("write", n) or a name', realize)
    return caching.chosen(realize, regions[kind], n, f"{kind}s").buffer


def is_element(region: Sequence[Range]) -> bool:
    """True for the region of one element."""
    return all(isinstance(r.extent, IntImm) and r.extent.value == 1 for r in region)


def _require_exact_writes(sch: Schedule, transform: _Transform) -> None:
    """What a block is said to write must not grow: others take it to be written."""
    for b in (n for n in walk(sch.func.body) if isinstance(n, Block)):
        for w in b.writes:
            legal(w.buffer is not transform.old or transform.keeps(w.region),
                  f"block {b.name} writes a part of {transform.old.name} that is no box in the new layout", b)


class _Transform:
    """Rewrites every access to `old` into one to `new`."""

    def __init__(self, old: Buffer, new: Buffer, mapped: IndexMap, analyzer: Analyzer) -> None:
        self.old, self.new, self.mapped, self.analyzer = old, new, mapped, analyzer
        self.made: dict[tuple[int, ...], tuple[list[Expr], tuple[Expr, ...]]] = {}     # the old too: ids stay unique

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """The new indices of the element at the old ones, simplified; the same expressions where it is asked again."""
        key = tuple(map(id, indices))
        if key not in self.made:
            self.made[key] = list(indices), tuple(self.analyzer.simplify(e) for e in self.mapped.apply(indices))
        return self.made[key][1]

    def _box(self, region: Sequence[Range]) -> tuple[list[Expr], dict[Var, tuple[Expr, Expr]]]:
        """The new indices of a point of region, and the ranges of its coordinates."""
        points = [Var(f"x{d}", r.min.dtype) for d, r in enumerate(region)]
        return list(self.mapped.apply(points)), {x: (r.min, r.extent) for x, r in zip(points, region, strict=True)}

    def keeps(self, region: Sequence[Range]) -> bool:
        """True when region is an element, the whole buffer (which may gain padding), or exactly a box of the new."""
        whole = all(self.analyzer.equal(r.min, IntImm(0, r.min.dtype)) and self.analyzer.equal(r.extent, d)
                    for r, d in zip(region, self.old.shape, strict=True))
        if whole or is_element(region):
            return True
        indices, domains = self._box(region)
        found = detect_iter_map(indices, domains, None, self.analyzer)
        return found is not None and found.is_bijective

    def region(self, region: Sequence[Range]) -> tuple[Range, ...]:
        """The box that holds region in the new layout; the whole of a dimension where none is known."""
        if is_element(region):
            return tuple(Range(e, IntImm(1, e.dtype)) for e in self.at([r.min for r in region]))
        indices, domains = self._box(region)
        out = []
        for hull, dim in zip(intervals_of(indices, domains, self.analyzer), self.new.shape, strict=True):
            known = hull is not None and not any(n in domains for x in hull for n in walk(x))
            out.append(Range(*hull) if hull is not None and known else Range(IntImm(0, dim.dtype), dim))
        return tuple(out)

    def step(self, n: Node) -> Node | None:
        if isinstance(n, (Load, Store)) and n.buffer is self.old:
            return n.replace(buffer=self.new, indices=self.at(n.indices))
        if isinstance(n, BufferRegion) and n.buffer is self.old:
            return BufferRegion(self.new, self.region(n.region))
        if isinstance(n, MatchBuffer):
            require(n.source.buffer is not self.new, f"{self.old.name} is viewed as another buffer")
            require(n.buffer is not self.old, f"{self.old.name} is a view of {n.source.buffer.name}")
        if isinstance(n, Call) and n.op == "access_ptr":
            require(not any(isinstance(x, Load) and x.buffer is self.new for x in walk(n)),
                    f"{self.old.name} is passed by its address")
        if isinstance(n, Block) and any(b is self.old for b in n.alloc_buffers):
            return n.replace(alloc_buffers=tuple(self.new if b is self.old else b for b in n.alloc_buffers))
        return None
