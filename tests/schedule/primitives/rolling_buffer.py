"""rolling_buffer: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from typing import Any

from tests.fuzz.moves import Action, Chooser, find_block, find_loop, move
from tests.schedule.case import Case
from tests.schedule.compute_support import stencil
from tests.wrong_uses.programs import N
from tests.wrong_uses.schedule_programs import int_vector, rewritten, scheduled, window
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.arith.linear import linear
from tilewright.schedule import Schedule
from tilewright.support.errors import ScheduleError
from tilewright.tir.buffer import BufferRegion
from tilewright.tir.expr import IntImm
from tilewright.tir.iter_var import Range
from tilewright.tir.stmt import Block, BlockRealize, For

CASE = Case("rolling_buffer")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.rolling_buffer(block='B', write_buffer_index=0)

    @T.prim_func
    def main(A: T.Buffer((22, 6), "int32"), C: T.Buffer((20, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        B = T.alloc_buffer((3, 6), "int32")
        for i in range(20):
            for i_1, j in T.grid(3, 6):
                with T.block("B"):
                    vi = T.axis.opaque(22, i + i_1)
                    vj = T.axis.spatial(6, j)
                    T.where(i == 0 or i_1 >= 2)
                    T.reads(A[vi, vj])
                    T.writes(B[vi % 3, vj])
                    B[vi % 3, vj] = A[vi, vj] * 3
            for j in range(6):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(B[0:3, vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = B[vi % 3, vj] + B[(vi + 2) % 3, vj]
    """
    sch = Schedule(stencil())
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.rolling_buffer("B", 0)
    return sch


@wrong("`rolling_buffer(block, 1)` of a block that writes one buffer",
       r"block B writes 1 buffer\(s\), there is no number 1")
def rolling_number():
    scheduled(*window()).rolling_buffer("B", 1)


@wrong("`rolling_buffer` of an output", r"C is an argument of the function")
def rolling_output():
    scheduled(*window()).rolling_buffer("C", 0)


@wrong("`rolling_buffer` of a buffer that nothing reads", r"nothing reads B")
def rolling_unread():
    sch = scheduled(*window())
    root = sch.root.block
    sch = rewritten(sch, lambda n: n.replace(body=root.body.stmts[0]) if n is root else None)
    sch.rolling_buffer("B", 0)


@wrong("`rolling_buffer` before compute_at", r"compute do not overlap")
def rolling_apart():
    scheduled(*window()).rolling_buffer("B", 0)


def slid(program=window, position=0):
    """sch with block B computed at a loop of block C"""
    sch = scheduled(*program())
    sch.compute_at("B", sch.get_loops("C")[position])
    return watch(sch)


@wrong("`rolling_buffer` below a parallel loop", r"iterations of the parallel loop i have no order")
def rolling_parallel():
    sch = slid()
    sch.parallel(sch.get_loops("C")[0])
    watch(sch).rolling_buffer("B", 0)


@wrong("`rolling_buffer` of a block that runs only for some iterations", r"block B runs only where ")
def rolling_guarded():
    sch = slid()

    def sometimes(n):
        if isinstance(n, BlockRealize) and n.block.name == "B":
            return n.replace(predicate=n.iter_values[0] % 2 < 1)
        return None
    rewritten(sch, sometimes).rolling_buffer("B", 0)


@wrong("`rolling_buffer` of a block that leaves out elements", r"block B may leave out elements of the part of B")
def rolling_sparse():
    sch = slid()

    def doubled(n):
        if isinstance(n, BlockRealize) and n.block.name == "B":
            loops = sch.loops_above("B")
            return n.replace(iter_values=(loops[0].loop_var + loops[1].loop_var * 2,))
        return n.replace(extent=IntImm(2)) if isinstance(n, For) and n.extent.value == 3 else None
    rewritten(sch, doubled).rolling_buffer("B", 0)


@wrong("`rolling_buffer` with a reader that looks further",
       r"block C reads elements of B that its iteration does not compute")
def rolling_far():
    sch = slid()

    def further(n):
        wide = isinstance(n, BufferRegion) and n.buffer.name == "B" and n.region[0].extent.value == 3
        return n.replace(region=tuple(Range(r.min, IntImm(5)) for r in n.region)) if wide else None
    rewritten(sch, further).rolling_buffer("B", 0)


@wrong("`rolling_buffer` where a loop moves two dimensions", r"loop i moves two dimensions of what block B writes")
def rolling_diagonal():
    a = te.placeholder((N, N), "int32", name="A")
    b = te.compute((N, N), lambda i, j: a[i, j] * 3, name="B")
    c = te.compute((N - 2,), lambda i: b[i, i] + b[i + 1, i + 1], name="C")
    slid(lambda: (a, b, c)).rolling_buffer("B", 0)


@wrong("`rolling_buffer` where the window moves with a bound loop",
       r"the window moves with loop i_0, which is bound to")
def rolling_bound():
    sch = scheduled(*window())
    outer, inner = sch.split(sch.get_loops("C")[0], [None, 4])
    sch.compute_at("B", inner)
    sch.bind(outer, "blockIdx.x")
    watch(sch).rolling_buffer("B", 0)


@wrong("`rolling_buffer` of a block that writes two buffers", r"block \w+ writes more than one buffer")
def rolling_two_results():
    a = int_vector()
    b, c = te.compute((N,), lambda i: (a[i] + 1, a[i] * 2), name="B")
    sch = scheduled(a, te.compute((N - 1,), lambda i: b[i] + b[i + 1] + c[i], name="D"))
    sch.rolling_buffer(sch.get_blocks()[0], 0)


@wrong("`rolling_buffer` of a buffer that a reader passes by its address", r"block C uses B other than by its elements")
def rolling_address():
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = te.extern([(8,)], [b], lambda ins, outs: te.call_packed("copy", ins[0], outs[0]), dtype="float32", name="C")
    scheduled(a, b, c).rolling_buffer("B", 0)


@wrong("`rolling_buffer` of a buffer that a block inside another one reads", r"block outer holds other blocks")
def rolling_nested():
    sch = slid()

    def wrapped(n):
        if not isinstance(n, BlockRealize) or n.block.name != "C":
            return None
        i, = sch.get_loops("C")
        outer = Block("outer", (), n.block.reads, n.block.writes, n.replace(iter_values=(IntImm(0),)))
        return BlockRealize((), IntImm(1, "bool"), outer) if i else None
    rewritten(sch, wrapped).rolling_buffer("B", 0)


@wrong("`rolling_buffer` where the bounds of a loop depend on the one that the window moves with",
       r"the bounds of loop j depend on loop i")
def rolling_triangle():
    a = te.placeholder((N + 2, N), "int32", name="A")
    b = te.compute((N + 2, N), lambda i, j: a[i, j] * 3, name="B")
    sch = slid(lambda: (a, b, te.compute((N, N), lambda i, j: b[i, j] + b[i + 2, j], name="C")), 1)
    i, j = sch.loops_above("C")

    def triangular(n):
        return n.replace(extent=i.loop_var + 1) if isinstance(n, For) and n.loop_var is j.loop_var else None
    rewritten(sch, triangular).rolling_buffer("B", 0)


@wrong("`rolling_buffer` of the first of a chain before the last",
       r"block B writes B, which block C reads, and is not known")
def rolling_first():
    a, b, c = window()
    d = te.compute((N - 2,), lambda i: c[i] + c[i + 2], name="D")
    sch = scheduled(a, b, c, d)
    i, = sch.get_loops("D")
    sch.compute_at("C", i)
    sch.compute_at("B", i)
    sch.rolling_buffer("B", 0)
    watch(sch).rolling_buffer("C", 0)


def _run_rolling_buffer(sch: Schedule, block: str, where: Any) -> None:
    """Compute block at a loop, if one is given, and let its buffer be circular; or neither."""
    saved = sch.snapshot()
    try:
        if where is not None:
            sch.compute_at(find_block(sch, block), find_loop(sch, where))
        sch.rolling_buffer(find_block(sch, block), 0)
    except ScheduleError:
        sch.restore(saved)
        raise


def _slides(sch: Schedule, producer: str, consumer: str) -> bool:
    """True when the consumer reads several elements along a dimension, or a sum of variables."""
    written = [w.buffer for w in sch.realize(producer).block.writes]
    regions = [r for r in sch.realize(consumer).block.reads if any(r.buffer is b for b in written)]
    return any(isinstance(d.extent, IntImm) and d.extent.value > 1 or len(linear(d.min)[0]) > 1
               for r in regions for d in r.region)


@move("rolling_buffer", 2, 1, _run_rolling_buffer, last=0.8)
def rolling_buffer(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """Of a block at a loop where its windows overlap, if there is one; sometimes at any."""
    rng = chooser.rng
    actions: list[Action] = []
    for name in names:
        for consumer in sch.consumers(name):
            if _slides(sch, name, consumer) or rng.random() < 0.1:
                actions.append(("rolling_buffer", name, None))
                actions += [("rolling_buffer", name, (consumer, n)) for n in range(len(sch.loops_above(consumer)))]
    rng.shuffle(actions)
    if actions and rng.random() < 0.1:
        return actions[0]
    for action in actions[:6]:
        trial = sch.copy()
        try:
            _run_rolling_buffer(trial, *action[1:])
        except ScheduleError:
            continue
        return action
    return None
