"""Random blockize and tensorize; the intrinsics are made of the blocks themselves, some with a mistake."""
from __future__ import annotations

import zlib
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.regions import interval_of
from tilewright.schedule import Schedule
from tilewright.script.regions import infer
from tilewright.support.errors import ScheduleError, TilewrightError
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, BufferRegion, Load, decl_buffer
from tilewright.tir.expr import Expr, IntImm, Let, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, IterVar, Range
from tilewright.tir.node import rewrite, statements, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, For, LetStmt, PrimFunc, Stmt, Store, loop, seq
from tilewright.tir.tensor_intrin import TensorIntrin

from ..schedules import Action, Chooser, Unresolved, find_block, find_loop, move

TRUE = IntImm(1, "bool")
MOST_POINTS = 4096                                    # of a region that is tensorized


def _run_blockize(sch: Schedule, where: Any, units: bool) -> None:
    target = find_loop(sch, where) if isinstance(where[1], int) else [find_block(sch, b) for b in where]
    sch.blockize(target, preserve_unit_iters=units)


@move("blockize", early=0.4, late=1.5, run=_run_blockize)
def draw_blockize(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng = chooser.rng
    name = rng.choice(names)
    loops = sch.loops_above(name)
    if rng.random() < 0.15:
        beside = [n for n in names if sch.index.scope_of(sch.realize(n)) is sch.index.scope_of(sch.realize(name))]
        return ("blockize", [name, rng.choice(beside)], True)
    if not loops:
        return None
    place = len(loops) - 1 - min(rng.choice([0, 0, 1, 1, 2, 3]), len(loops) - 1)
    return ("blockize", (name, place), rng.random() < 0.7)


def _run_tensorize(sch: Schedule, where: Any, kind: str, units: bool) -> None:
    """kind: which implementation, or which mistake in the description."""
    loop_rv = find_loop(sch, tuple(where))
    trial = sch.copy()
    outer = trial.blockize(loop_rv, preserve_unit_iters=units)
    intrin = intrinsic_of(trial.realize(outer).block, kind)
    if intrin is None:
        raise Unresolved("the block cannot be described on its own")
    text = f"{intrin.desc}\n{intrin.impl}"               # names count: they go into the function
    name = f"fuzz.{zlib.crc32(text.encode()):x}.{len(text)}"
    TensorIntrin.register(name, intrin.desc, intrin.impl, override=True)
    sch.tensorize(loop_rv, name, preserve_unit_iters=units)


@move("tensorize", early=0.5, late=3, run=_run_tensorize)
def draw_tensorize(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng = chooser.rng
    name = rng.choice(names)
    loops = sch.loops_above(name)
    if not loops:
        return None
    place = len(loops) - 1 - min(rng.choice([0, 0, 1, 1, 2, 3]), len(loops) - 1)
    kind = rng.choice(["loops", "loops", "blocks", "blocks", "reversed", "wrong extent", "wrong value"])
    action = ("tensorize", (name, place), kind, rng.random() < 0.7)
    try:                                             # what has no description is not worth a call
        trial = sch.copy()
        outer = trial.blockize(find_loop(trial, (name, place)), preserve_unit_iters=action[3])
        return action if intrinsic_of(trial.realize(outer).block, kind) is not None else None
    except (ScheduleError, Unresolved):
        return None


# ---- an intrinsic that computes what a block computes

def intrinsic_of(outer: Block, kind: str) -> TensorIntrin | None:
    """Description and implementation of the inner block of outer on compact buffers; None where it has none."""
    inner = [s for s in statements(outer.body) if isinstance(s, BlockRealize)]
    if len(inner) != 1 or inner[0].block.match_buffers:
        return None
    block = inner[0].block
    sizes = [iv.dom.extent for iv in block.iter_vars if iv.dom is not None]
    if not all(isinstance(n, IntImm) and 0 < n.value <= 64 for n in sizes):
        return None
    points = 1
    for n in sizes:
        points *= int(n)
    if points > MOST_POINTS or any(iv.iter_type not in (DATA_PARALLEL, COMM_REDUCE) for iv in block.iter_vars):
        return None
    try:
        return _Describer(block).intrinsic(kind)
    except (_Undescribed, TilewrightError):
        return None


class _Undescribed(Exception):
    pass


class _Describer:
    def __init__(self, block: Block) -> None:
        self.block, self.analyzer = block, Analyzer()
        self.axes = {iv.var: (IntImm(0, iv.var.dtype), iv.dom.extent) for iv in block.iter_vars if iv.dom is not None}
        self.origin: dict[Buffer, list[Expr]] = {}
        self.shape: dict[Buffer, list[int]] = {}
        zero = {v: IntImm(0, v.dtype) for v in self.axes}
        for part in (block.init, block.body):
            for n in walk(part) if part is not None else ():
                if isinstance(n, (Load, Store)):
                    self.access(n, zero)

    def access(self, n: Any, zero: dict[Var, Expr]) -> None:
        origin = self.origin.setdefault(n.buffer, [substitute(i, zero) for i in n.indices])
        shape = self.shape.setdefault(n.buffer, [1] * len(origin))
        for d, (i, low) in enumerate(zip(n.indices, origin, strict=True)):
            rest = self.relative(i, low)
            hull = interval_of(rest, self.axes, self.analyzer)
            if hull is None or not all(isinstance(e, IntImm) for e in hull) or int(hull[0]) < 0:
                raise _Undescribed
            shape[d] = max(shape[d], int(hull[0]) + int(hull[1]))

    def relative(self, i: Expr, low: Expr) -> Expr:
        rest = self.analyzer.simplify(binary("sub", i, low))
        if any(isinstance(n, Load) or isinstance(n, Var) and n not in self.axes for n in walk(rest)):
            raise _Undescribed
        return rest

    def intrinsic(self, kind: str) -> TensorIntrin:
        desc = self.function("desc", True, False, kind)
        impl = self.function("impl", kind in ("blocks", "wrong extent"), kind == "reversed", "")
        return TensorIntrin(desc, impl)

    def function(self, name: str, blocks: bool, backwards: bool, mistake: str) -> PrimFunc:
        """The block alone, as loops around a block or as plain loops."""
        buffers = {b: decl_buffer(self.shape[b], b.dtype, b.name, scope=b.scope) for b in self.shape}
        fresh = {v: Var(v.name, v.dtype) for v in self.axes}

        def local(n: Any) -> Any:
            if isinstance(n, (Load, Store)) and n.buffer in buffers:
                # operands are rewritten first, so indices that read memory are none of ours
                at = [substitute(self.relative(i, low), fresh)
                      for i, low in zip(n.indices, self.origin[n.buffer], strict=True)]
                return n.replace(buffer=buffers[n.buffer], indices=tuple(at))
            return None
        old = (self.block.init, self.block.body)
        parts = [None if p is None else substitute(rewrite(p, local), fresh) for p in old]
        inside = [n for p in parts if p is not None for n in walk(p)]
        own = {*fresh.values(), *(n.loop_var for n in inside if isinstance(n, For)),
               *(n.var for n in inside if isinstance(n, (Let, LetStmt)))}
        if any(isinstance(n, Var) and n not in own for n in inside):             # of a block around, or a size
            raise _Undescribed
        if mistake == "wrong value":
            parts[1] = rewrite(parts[1], _off_by_one)
        extent = {v: int(size) + (mistake == "wrong extent") for v, (_, size) in self.axes.items()}
        if mistake == "wrong extent" and not extent:
            raise _Undescribed
        whole = [BufferRegion(b, tuple(Range(IntImm(0), d) for d in b.shape)) for b in buffers.values()]
        if blocks:
            body = self.nest(parts, fresh, extent)
        else:
            body = self.loops(parts, fresh, extent, backwards)
        params = {Var(b.name, "handle"): b for b in buffers.values()}
        root = Block("root", (), tuple(whole), tuple(whole), body)
        return PrimFunc(tuple(params), BlockRealize((), TRUE, root), params, {"global_symbol": name})

    def nest(self, parts: list[Any], fresh: dict[Var, Var], extent: dict[Var, int]) -> Stmt:
        axes = tuple(IterVar(Range(IntImm(0, v.dtype), IntImm(extent[v], v.dtype)), fresh[v], iv.iter_type)
                     for v, iv in zip(self.axes, self.block.iter_vars, strict=True))
        drivers = [Var(f"l{k}", v.dtype) for k, v in enumerate(self.axes)]

        block = Block("inner", axes, (), (), parts[1], parts[0])
        reads, writes = infer(block)
        block = block.replace(reads=reads, writes=writes)
        body: Stmt = BlockRealize(tuple(drivers), TRUE, block)
        for driver, v in zip(reversed(drivers), reversed(list(self.axes)), strict=True):
            body = loop(driver, extent[v], body)
        return body

    def loops(self, parts: list[Any], fresh: dict[Var, Var], extent: dict[Var, int], backwards: bool) -> Stmt:
        """The loops of the outputs around those of the reduction, which keep their order."""
        kinds = {iv.var: iv.iter_type for iv in self.block.iter_vars}
        outer = [v for v in self.axes if kinds[v] != COMM_REDUCE]
        steps = [v for v in self.axes if kinds[v] == COMM_REDUCE]
        body: Stmt = parts[1]
        for v in reversed(steps):
            body = loop(fresh[v], extent[v], body)
        if parts[0] is not None:
            body = seq([parts[0], body])
        for v in outer if backwards else reversed(outer):
            body = loop(fresh[v], extent[v], body)
        return body


def _off_by_one(n: Any) -> Any:
    return n.replace(value=binary("add", n.value, n.value)) if isinstance(n, Store) else None
