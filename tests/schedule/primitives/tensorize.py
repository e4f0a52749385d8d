"""tensorize: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

import functools
import zlib
from typing import Any

from tests.fuzz.moves import Action, Chooser, Unresolved, find_loop, move
from tests.schedule.case import Case
from tests.schedule.core_support import scale
from tests.wrong_uses.programs import blocks, chain
from tests.wrong_uses.schedule_programs import (
    blockless,
    elementwise,
    inner_of_split,
    scheduled_function,
    vector_intrinsic,
)
from tests.wrong_uses.wrong_use import watch
from tilewright import te, tir
from tilewright.arith.analyzer import Analyzer
from tilewright.arith.regions import interval_of
from tilewright.schedule import Schedule
from tilewright.script import tir as T
from tilewright.script.inferred_regions import infer
from tilewright.support.errors import ScheduleError, TilewrightError
from tilewright.tir import TensorIntrin
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, BufferRegion, Load, decl_buffer
from tilewright.tir.expr import Expr, IntImm, Let, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, IterVar, Range
from tilewright.tir.node import rewrite, statements, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, For, LetStmt, PrimFunc, Stmt, Store, loop, seq

CASE = Case("tensorize")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.tensorize(block_or_loop=l2, tensor_intrin='test.example_triple')

    @T.prim_func
    def scale(A: T.Buffer((12,), "int32"), B: T.Buffer((12,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i_0 in range(3):
            with T.block("B_o"):
                vi_o = T.axis.spatial(3, i_0)
                T.reads(A[vi_o * 4:vi_o * 4 + 4])
                T.writes(B[vi_o * 4:vi_o * 4 + 4])
                X_s0 = T.int32()
                X_offset = T.int32()
                X = T.match_buffer(A[vi_o * 4:vi_o * 4 + 4], (4,), "int32", strides=(X_s0,), elem_offset=X_offset)
                Y_s0 = T.int32()
                Y_offset = T.int32()
                Y = T.match_buffer(B[vi_o * 4:vi_o * 4 + 4], (4,), "int32", strides=(Y_s0,), elem_offset=Y_offset)
                T.call_packed("triple", T.access_ptr(X[0], 4, T.strides(X_s0, dtype="handle")), T.access_ptr(Y[0], 4, T.strides(Y_s0, dtype="handle")))
    """  # noqa: E501
    x = te.placeholder((4,), "int32", name="X")
    y = te.compute((4,), lambda i: x[i] * 3, name="Y")
    intrin = te.decl_tensor_intrin(y.op, lambda ins, outs: te.call_packed("triple", ins[0], outs[0])).compute
    TensorIntrin.register("test.example_triple", intrin.desc, intrin.impl, override=True)
    sch = Schedule(scale(12))
    sch.tensorize(sch.split(sch.get_loops("B")[0], [3, 4])[1], "test.example_triple")
    return sch


@functools.cache
def product(steps=4):
    """C[i] = sum of A[i, k], int32, 4 by `steps`"""
    a = te.placeholder((4, steps), "int32", name="a")
    k = te.reduce_axis((0, steps), name="k")
    c = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="c")
    return te.decl_tensor_intrin(c.op, lambda i, o: te.call_packed("f")).compute


def sums(n=16, k=8):
    """C[i] = sum of A[i, k]"""
    a = te.placeholder((n, k), "int32", name="A")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n,), lambda i: te.sum(a[i, r], axis=r), name="C")
    return Schedule(te.create_prim_func([a, c]))


@T.prim_func
def repeated(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    for i, _z in T.grid(4, 2):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = A[vi] + 1


@T.prim_func
def backwards(A: T.Buffer((4, 4), "int32"), C: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(4, 3 - k)
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def symbolic(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (4, n), "int32")
    C = T.match_buffer(c, (4,), "int32")
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = A[vi, 0] + 1


@wrong("`tensorize(i, \"missing\")`", r"no tensor intrinsic 'missing' is registered")
def tensorize_missing():
    sch = watch(elementwise())
    sch.tensorize(sch.get_loops("C")[0], "missing")


@wrong("`tensorize(i, intrin)` with a description without a block",
       r"the description of blockless has no block inside its root block")
def tensorize_blockless():
    sch = watch(elementwise())
    sch.tensorize(sch.get_loops("C")[0], TensorIntrin(blockless, blockless))


@wrong("`tensorize(i, intrin)` with a description that runs its points twice",
       r"the description of repeated does not run each point of block C once")
def tensorize_repeating_description():
    sch = watch(elementwise(4))
    sch.tensorize(sch.get_loops("C")[0], TensorIntrin(repeated, repeated))


@wrong("`tensorize(i, intrin)` with an extent that is not constant",
       r"the extent n of an intrinsic's buffer is not a constant")
def tensorize_symbolic():
    a = te.placeholder((4, 8), "int32", name="A")
    c = te.compute((4,), lambda i: a[i, 0] + 1, name="C")
    sch = scheduled_function(te.create_prim_func([a, c]))
    sch.tensorize(sch.get_loops("C")[0], TensorIntrin(symbolic, symbolic))


@wrong("`tensorize(root, intrin)`", r"the root block cannot be tensorized")
def tensorize_root():
    sch = watch(elementwise())
    sch.tensorize("root", vector_intrinsic())


@wrong("`tensorize(C_o, intrin)` of what is tensorized already", r"block C_o has views of buffers \(match_buffer\)")
def tensorize_twice():
    sch = elementwise()
    sch.tensorize(inner_of_split(sch), vector_intrinsic())
    watch(sch).tensorize("C_o", vector_intrinsic())


@wrong("`tensorize(r_1, intrin)` of a part of a reduction, by an intrinsic that starts it",
       r"steps of the reduction run outside of the part that is to be tensorized")
def tensorize_part_of_reduction():
    sch = sums()
    i0, i1 = sch.split(sch.get_loops("C")[0], [None, 4])
    r0, r1 = sch.split(sch.get_loops("C")[-1], [None, 4])
    sch.reorder(i0, r0, i1, r1)
    watch(sch).tensorize(i1, product())


@wrong("`tensorize(i_1, intrin)` of a ragged tile", r"block C runs only where .*, so it may compute a part only")
def tensorize_ragged():
    sch = elementwise(14)
    inner = inner_of_split(sch)
    watch(sch).tensorize(inner, vector_intrinsic())


@wrong("`tensorize(i, intrin)` of points that run twice",
       r"the loops inside do not run each point of block C exactly once")
def tensorize_repeated():
    sch = scheduled_function(repeated)
    sch.tensorize(sch.get_loops("C")[0], vector_intrinsic())


@wrong("`tensorize(i, intrin)` of a sum that starts at the last of its steps",
       r"block C may not start its reduction: .* need not be 0 there, and \w+ starts it")
def tensorize_backwards():
    sch = scheduled_function(backwards)
    sch.tensorize(sch.get_loops("C")[0], product())


@wrong("`tensorize(i, intrin)` with a description that starts a sum at the last of its steps",
       r"the description of backwards: block C may not start its reduction")
def tensorize_description_backwards():
    sch = watch(sums(4, 4))
    sch.tensorize(sch.get_loops("C")[0], TensorIntrin(backwards, backwards))


@wrong("`tensorize(i_1, intrin)` with another operator", r"the description has the expression `1`, the program `7`")
def tensorize_other_value():
    sch = elementwise(reads=lambda a, i: a[i] + 7)
    inner = inner_of_split(sch)
    watch(sch).tensorize(inner, vector_intrinsic())


@wrong("`tensorize(i_1, intrin)` with another extent", r"the description has the axes .*data-parallel 4.*extents .*8")
def tensorize_other_extent():
    sch = elementwise()
    inner = inner_of_split(sch, factor=8)
    watch(sch).tensorize(inner, vector_intrinsic())


@wrong("`tensorize([B, C], intrin)` of two blocks", r"the description has 1 block\(s\), the program 2 \(B, C\)")
def tensorize_two_blocks():
    sch = blocks(chain)
    sch.compute_at("B", sch.get_loops("C")[0])
    both = sch.blockize([sch.get_block("B"), sch.get_block("C")])
    watch(sch).tensorize(both, vector_intrinsic())


@wrong("`tensorize(i_1, intrin)` by an intrinsic that takes a buffer for nothing",
       r"the description does not use its parameter x1")
def tensorize_unused():
    sch = elementwise()
    one = vector_intrinsic()
    spare = tir.decl_buffer((4,), "int32", "x1")
    handle = tir.Var("x1", "handle")
    desc, impl = (f.replace(params=(*f.params, handle), buffer_map={**f.buffer_map, handle: spare})
                  for f in (one.desc, one.impl))
    inner = inner_of_split(sch)
    watch(sch).tensorize(inner, TensorIntrin(desc, impl))


@wrong("`tensorize(i_1, intrin)` that writes what it reads elsewhere",
       r"A stands for y, which is written, and for x0")
def tensorize_in_place():
    @T.prim_func
    def update(A: T.Buffer((16,), "int32")):
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                A[vi] = A[vi] + 1
    sch = Schedule(update)
    inner = inner_of_split(sch)
    watch(sch).tensorize(inner, vector_intrinsic())


@wrong("`tensorize(i_1, intrin)` by an intrinsic that reaches beyond the buffer",
       r"x0 would be vi_o \* 4 \+ 16 to .* \+ 8 of dimension 0 of A, which has the extent 32")
def tensorize_beyond():
    sch = elementwise(reads=lambda a, i: a[i + 16] + 1)
    inner = inner_of_split(sch)
    watch(sch).tensorize(inner, vector_intrinsic(extent=8))


@wrong("`tensorize(i_1, intrin)` of every second element, by a call on compact memory",
       r"A has the stride 2 along dimension 0, the buffer x0 of the intrinsic is compact and so has the stride 1")
def tensorize_strided():
    sch = elementwise(reads=lambda a, i: a[2 * i] + 1)
    inner = inner_of_split(sch)
    watch(sch).tensorize(inner, vector_intrinsic(call=True))


@wrong("`tensorize(i_1, intrin)` at an offset that is no multiple of offset_factor",
       r"x0 starts at the offset .* of A, which is not known to be a multiple of 4 \(offset_factor\)")
def tensorize_offset():
    sch = elementwise(reads=lambda a, i: a[i + 2] + 1)
    inner = inner_of_split(sch)
    watch(sch).tensorize(inner, vector_intrinsic(factor=4))


@T.prim_func
def viewing(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "int32")
    C = T.match_buffer(c, (4,), "int32")
    for i in range(2):
        with T.block("half"):
            vi = T.axis.spatial(2, i)
            T.reads(A[vi * 2:vi * 2 + 2])
            T.writes(C[vi * 2:vi * 2 + 2])
            V = T.match_buffer(A[vi * 2:vi * 2 + 2], (2,), "int32")
            for j in range(2):
                C[vi * 2 + j] = V[j] + 1


@wrong("`tensorize(i_1, intrin)` of every second element, by an intrinsic that has views of its own",
       r"the implementation views parts of A, which lies across the dimensions of A in another order")
def tensorize_viewing():
    sch = elementwise(reads=lambda a, i: a[2 * i] + 1)
    inner = inner_of_split(sch)
    watch(sch).tensorize(inner, TensorIntrin(vector_intrinsic().desc, viewing))


@T.prim_func
def diagonal(A: T.Buffer((4,), "int32"), C: T.Buffer((4, 4), "int32")):
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi, vi] = A[vi] + 1


@wrong("`tensorize(i_1, intrin)` with a description that writes a diagonal",
       r"block C of the description of diagonal is not known to write every element of a box of C")
def tensorize_diagonal():
    sch = elementwise()
    inner = inner_of_split(sch)
    watch(sch).tensorize(inner, TensorIntrin(diagonal, diagonal))


@wrong("`tensorize(i_1, intrin)` that writes every second element", r"C is written in steps of 2 elements")
def tensorize_gaps():
    @T.prim_func
    def spread(A: T.Buffer((32,), "int32"), C: T.Buffer((64,), "int32")):
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi * 2] = A[vi] + 1
    sch = Schedule(spread)
    inner = inner_of_split(sch)
    watch(sch).tensorize(inner, vector_intrinsic())


@wrong("`tensorize(i_1, intrin)` of a block that computes with memory of its own",
       r"x, which stands for x0, is memory of a block that is to be replaced")
def tensorize_own_memory():
    @T.prim_func
    def scratch(C: T.Buffer((16,), "int32")):
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                x = T.alloc_buffer((16,), "int32")
                C[vi] = x[vi] + 1
    sch = Schedule(scratch)
    inner = inner_of_split(sch)
    watch(sch).tensorize(inner, vector_intrinsic())


def doubled(shape, reads, name):
    """A schedule of B[i, j] = reads(A, i, j) * 2, of 16 by 16"""
    a = te.placeholder(shape, name="A")
    b = te.compute((16, 16), lambda i, j: reads(a, i, j) * 2.0, name=name)
    return Schedule(te.create_prim_func([a, b]))


@functools.cache
def vectors(shape, lanes):
    """y = x * 2 of a shape, by one vector"""
    x = te.placeholder(shape, name="x")
    y = te.compute(shape, lambda *i: x(*i) * 2.0, name="y")
    at = [0] * len(shape)
    return te.decl_tensor_intrin(y.op, lambda i, o: o[0].vstore(at, i[0].vload(at, f"float32x{lanes}") * 2.0)).compute


@wrong("an intrinsic that loads a vector along an axis that is not the operand's last",
       r"vectors along the last axis of x, which is dimension 0 of A of 2 dimension\(s\)")
def vector_across_rows():
    sch = doubled((16, 16), lambda a, i, j: a[j, i], "B")
    inner = inner_of_split(sch, "B", 8)
    watch(sch).tensorize(inner, vectors((8,), 8))


@wrong("an intrinsic that loads a vector from every other element",
       r"vectors along the last axis of x, which is dimension 1, in steps of 2, of A of 2 dimension\(s\)")
def vector_of_steps():
    sch = doubled((16, 32), lambda a, i, j: a[i, 2 * j], "B")
    inner = inner_of_split(sch, "B", 8)
    watch(sch).tensorize(inner, vectors((8,), 8))


@wrong("an intrinsic that loads four rows of four as one vector, on a wider matrix",
       r"A has the stride 16 along dimension 0, the buffer x of the intrinsic is compact and so has the stride 4")
def vector_over_rows():
    sch = doubled((16, 16), lambda a, i, j: a[i, j], "B")
    (i0, i1), (j0, j1) = (sch.split(loop, [None, 4]) for loop in sch.get_loops("B"))
    sch.reorder(i0, j0, i1, j1)
    watch(sch).tensorize(i1, vectors((4, 4), 16))


TRUE = IntImm(1, "bool")


MOST_POINTS = 4096                                    # of a region that is tensorized


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
