"""compute_inline: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

import tilewright as tw
from tests.fuzz.moves import Action, Chooser, find_block, move
from tests.schedule.case import Case
from tests.schedule.compute_support import stencil
from tests.wrong_uses.programs import N, blocks, chain, matmul, script
from tests.wrong_uses.schedule_programs import DOUBLED, VECTORS_OF_16, over_8, producer_and_consumer
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.tir.buffer import Load, MatchBuffer, decl_buffer
from tilewright.tir.expr import Call, IntImm, Ramp
from tilewright.tir.node import rewrite
from tilewright.tir.stmt import Block, Evaluate, seq

CASE = Case("compute_inline")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.compute_inline(block='B')

    @T.prim_func
    def main(A: T.Buffer((22, 6), "int32"), C: T.Buffer((20, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i, j in T.grid(20, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi:vi + 3, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj] * 3 + A[vi + 2, vj] * 3
    """
    sch = Schedule(stencil())
    sch.compute_inline("B")
    return sch


@wrong("`compute_inline` of the output",
       r"compute_inline\(block=C\): block C writes C, an output of the function")
def inline_output():
    sch = blocks(chain)
    watch(sch).compute_inline(sch.get_block("C"))


@wrong("`compute_inline` of a reduction",
       r"compute_inline\(block=C\): block C is a reduction: its buffer holds partial sums until the last step")
def inline_reduction():
    a, b, c = matmul()
    d = te.compute((N, N), lambda i, j: c[i, j] + 1.0, name="D")
    sch = tw.Schedule(te.create_prim_func([a, b, d]))
    watch(sch).compute_inline(sch.get_block("C"))


@wrong("`compute_inline` that makes an expression too long",
       r"compute_inline\(block=C1\): block Y would have 31247 operations, \d+ inside one another; it may have 20000")
def inline_too_much():
    x = te.placeholder((64,), name="X")
    y = x
    for n in range(3):
        y = te.compute((64,), lambda i, y=y: sum(y[(i + k) % 64] for k in range(10)), name=f"C{n}")
    out = te.compute((64,), lambda i: sum(y[(i * k) % 64] for k in range(2)), name="Y")
    sch = tw.Schedule(te.create_prim_func([x, out]))
    sch.compute_inline(sch.get_block("C2"))
    sch.compute_inline(sch.get_block("C0"))
    watch(sch).compute_inline(sch.get_block("C1"))


def block_rewritten(sch, name, fn):
    """sch with the block `name` rewritten by fn."""
    def change(n):
        return fn(n) if isinstance(n, Block) and n.name == name else None
    return watch(tw.Schedule(sch.func.with_body(rewrite(sch.func.body, change))))


@wrong("`compute_inline(\"root\")`", r"the root block cannot be moved")
def inline_root():
    watch(blocks()).compute_inline("root")


@wrong("`compute_inline` of a block that holds another", r"block \w+ holds other blocks")
def inline_outer():
    sch = blocks(chain)
    outer = sch.blockize(sch.get_loops("B")[1])
    watch(sch).compute_inline(outer)


@wrong("`compute_inline` inside a block of what is read outside of it", r"block B writes B, an output of the function")
def inline_inner():
    sch = blocks(chain)
    sch.blockize(sch.get_loops("B")[1])
    watch(sch).compute_inline("B")


@wrong("`compute_inline` of a block of two stores", r"block P is more than one store of one value")
def inline_two_stores():
    producer_and_consumer("X[vi] = A[vi]\nX[vi] = A[vi] + 1").compute_inline("P")


@wrong("`compute_inline` of a value that may wrap into an index, where it would not",
       r"the index vi \* 3 \* 1103515245 % 8 of block Q may wrap around in int32 while it loads from X")
def inline_wrapping_index():
    producer_and_consumer("X[vi] = vi * 3", "B[vi] = A[X[vi] * 1103515245 % 8]").compute_inline("P")


@wrong("`compute_inline` into a block that writes what the vanishing one reads",
       r"block Q writes A, which block P reads")
def inline_into_writer():
    producer_and_consumer("X[vi] = A[vi]", "A[vi] = X[7 - vi]").compute_inline("P")


@wrong("`compute_inline` past a block that writes what the vanishing one reads",
       r"block W writes A between block P, which reads it, and block Q")
def inline_past_writer():
    producer_and_consumer("X[vi] = A[vi]", between=over_8("A[vi] = 0", "W")).compute_inline("P")


@wrong("`compute_inline` into a block that views the buffer as another (match_buffer)",
       r"block Q views X as another buffer")
def inline_into_view():
    def view(block):
        region = block.reads[0]
        shape = tuple(r.extent for r in region.region)
        return block.replace(match_buffers=(MatchBuffer(decl_buffer(shape, "int32", "V"), region),))
    block_rewritten(producer_and_consumer("X[vi] = A[vi]"), "Q", view).compute_inline("P")


@wrong("`compute_inline` into a block that only says that it reads the buffer",
       r"block Q reads X in a way that cannot be seen")
def inline_into_nothing():
    block_rewritten(producer_and_consumer("X[vi] = A[vi]"), "Q",
                    lambda block: block.replace(body=Evaluate(IntImm(0)), writes=())).compute_inline("P")


@wrong("`compute_inline` into a block that takes the address of the buffer",
       r"block Q uses X otherwise than by reading elements")
def inline_into_address():
    block_rewritten(producer_and_consumer("X[vi] = A[vi]"), "Q", lambda block: block.replace(
        body=seq([block.body, Evaluate(block.reads[0].buffer.data)]))).compute_inline("P")


@wrong("`compute_inline` into a block that calls a function with the address of an element",
       r"block Q uses the address of X")
def inline_into_call_by_address():
    sch = producer_and_consumer("X[vi] = A[vi]")
    block_rewritten(sch, "Q", lambda block: block.replace(body=seq([block.body, Evaluate(
        Call("access_ptr", (Load(block.reads[0].buffer, (IntImm(0),)), IntImm(4)), "handle"))]))).compute_inline("P")


@wrong("`compute_inline` into a block that reads vectors", r"block Q reads vectors of X")
def inline_into_vectors():
    def wide(block):
        buffer = block.reads[0].buffer
        load = Load(buffer, (Ramp(IntImm(0), IntImm(1), 4),))
        return block.replace(body=seq([block.body, Evaluate(load)]))
    block_rewritten(producer_and_consumer("X[vi] = A[vi]"), "Q", wide).compute_inline("P")


@wrong("`compute_inline` of a block of which another overwrites the result",
       r"X is written by block P and by block W, so P alone does not give its values")
def inline_second_writer():
    producer_and_consumer("X[vi] = A[vi]", between=over_8("X[vi] = 0", "W")).compute_inline("P")


@wrong("`compute_inline` of a block whose buffer a statement outside of every block reads",
       r"(?s)a statement outside of every block touches B.*hint: put it into a block")
def loose_reader():
    sch = script(DOUBLED + "for i in range(16):\n    C[i] = B[15 - i]\n", VECTORS_OF_16)
    sch.compute_inline("B")


def _run(sch: Schedule, name: str) -> None:
    sch.compute_inline(find_block(sch, name))


@move("compute_inline", 4, 0, _run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    fitting = [n for n in names if sch.consumers(n)]
    return ("compute_inline", chooser.rng.choice(fitting)) if fitting else None
