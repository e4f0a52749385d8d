"""cache_read: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

import tilewright as tw
from tests.fuzz.moves import SCOPES, Action, Chooser, find_block, move
from tests.schedule.case import Case
from tests.schedule.core_support import matmul as matmul_function
from tests.wrong_uses.programs import N, blocks, chain, matmul, script
from tests.wrong_uses.schedule_programs import (
    float_vector,
    partly,
    product,
    rewritten,
    scheduled,
    unwatched_product,
    viewed,
)
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.tir.expr import IntImm
from tilewright.tir.node import rewrite, substitute
from tilewright.tir.stmt import Block, Evaluate, Seq, seq
from tilewright.tir.symbols import replace_buffers

CASE = Case("cache_read")
wrong = CASE.wrong


@CASE.example
def example():
    """
    b0 = sch.cache_read(block='C', read_buffer_index='A', storage_scope='local')

    @T.prim_func
    def matmul(A: T.Buffer((4, 5), "int32"), B: T.Buffer((5, 6), "int32"), C: T.Buffer((4, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        A_local = T.alloc_buffer((4, 5), "int32", scope="local")
        for ax0, ax1 in T.grid(4, 5):
            with T.block("A_local"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(A[v0, v1])
                T.writes(A_local[v0, v1])
                A_local[v0, v1] = A[v0, v1]
        for i, j, r in T.grid(4, 6, 5):
            with T.block("C"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                T.reads(A_local[vi, vr], B[vr, vj])
                T.writes(C[vi, vj])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + A_local[vi, vr] * B[vr, vj]
    """
    sch = Schedule(matmul_function())
    sch.cache_read("C", "A", "local")
    return sch


@wrong("`cache_read(block, 5, \"local\")`: a buffer that the block does not have",
       r"cache_read\(block=C, read_buffer_index=5, storage_scope='local'\): block C reads 2 buffer\(s\), there")
def cache_read_far():
    sch, block, _, _, _ = product()
    sch.cache_read(block, 5, "local")


@wrong("`cache_read(block, \"Q\", \"local\")`: a buffer by a wrong name",
       r"cache_read\(block=C, read_buffer_index='Q', storage_scope='local'\): block C reads no buffer 'Q'")
def cache_read_name():
    sch, block, _, _, _ = product()
    sch.cache_read(block, "Q", "local")


@wrong("`cache_read(block, [0], \"local\")`: a buffer by a list",
       r"cache_read\(.*\): the buffer is \[0\], not a position, a name or a Buffer")
def cache_read_list():
    sch, block, _, _, _ = product()
    sch.cache_read(block, [0], "local")


@wrong("`cache_read(B, \"A\", \"local\", i)`: a loop for the consumers",
       r"consumer_blocks is loop i, not a list of blocks")
def cache_read_for_a_loop():
    sch = watch(blocks(chain))
    sch.cache_read("B", "A", "local", sch.get_loops("B")[0])


@wrong("`cache_read` for a block that does not read the buffer",
       r"block C does not read A")
def cache_read_of_a_stranger():
    sch = watch(blocks(chain))
    sch.cache_read("B", "A", "local", ["C"])


@wrong("`cache_read(C_update, \"C\")`: the block writes it, too",
       r"block C_update writes C as well as reading it")
def cache_read_of_an_update():
    sch, block, i, _, _ = unwatched_product()
    sch.decompose_reduction(block, i)
    watch(sch).cache_read(block, "C", "local")


@wrong("`cache_read` of a buffer that a block only says it reads",
       r"block C reads A in a way that cannot be seen")
def cache_read_of_nothing():
    def quiet(n):
        return n.replace(body=Evaluate(IntImm(0))) if isinstance(n, Block) and n.name == "C" else None
    rewritten(blocks(), quiet).cache_read("C", "A", "local")


@wrong("`cache_read` of a buffer that the block takes the address of, by its data pointer",
       r"block C uses the address of A")
def cache_read_of_a_pointer():
    def point(n):
        if not isinstance(n, Block) or n.name != "C":
            return None
        return n.replace(body=seq([n.body, Evaluate(n.reads[0].buffer.data)]))
    rewritten(blocks(), point).cache_read("C", "A", "local")


@wrong("`cache_read` of a buffer that the block views as another (match_buffer)",
       r"block C views A as another buffer")
def cache_read_of_a_view():
    viewed(blocks(), "C", "A").cache_read("C", "A", "local")


@wrong("`cache_read` where producer and consumers share a loop, and a consumer stands behind it",
       r"B is not complete before its first consumer")
def cache_read_of_parts():
    a = float_vector()
    b = te.compute((N,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((N,), lambda i: b[i] * 2.0, name="C")
    d = te.compute((N,), lambda i: b[i] * 3.0 + c[i], name="D")
    sch = tw.Schedule(te.create_prim_func([a, d]))
    sch.compute_at("C", sch.get_loops("D")[0])
    sch.reverse_compute_at("C", sch.get_loops("B")[0])
    watch(sch).cache_read("C", "B", "local")


@wrong("`cache_read` of elements that are written only in part",
       r"the copy would read elements of B that may not be written by then")
def cache_read_too_early():
    a = float_vector(n=2 * N)
    b = te.compute((2 * N,), lambda i: a[i] + 1.0, name="B")
    partly(scheduled(a, b, te.compute((N,), lambda i: b[2 * i], name="C")), "B").cache_read("C", "B", "local")


@wrong("`cache_read` of a buffer that another block in the same loop writes for later iterations",
       r"block U writes A between the copy and block C")
def cache_read_of_a_recurrence():
    recurrence().cache_read("C", "A", "local", ["C"])


def recurrence():
    """for i: C[i] = A[i - 1 or 0], U: A[i] = X[i]"""
    a, x = float_vector(), float_vector("X")
    c = te.compute((N,), lambda i: a[te.max(i - 1, 0)] * 2.0, name="C")
    u = te.compute((N,), lambda i: x[i] * 5.0, name="U")
    func = te.create_prim_func([a, x, c, u])
    body = replace_buffers(func.body, {func.buffers[3]: func.buffers[0]})
    first, second = body.block.body.stmts
    both = seq([first.body, substitute(second.body, {second.loop_var: first.loop_var})])
    return watch(tw.Schedule(func.with_body(rewrite(body, lambda n: first.replace(body=both) if isinstance(n, Seq)
                                                    and n.stmts == (first, second) else None))))


@wrong("`cache_read` in a block that starts a reduction", r"block C_o around block C has an init")
def cache_below_init():
    sch = tw.Schedule(te.create_prim_func(list(matmul())))
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i, j)
    sch.blockize(i)
    watch(sch).cache_read("C", 0, "local")


@wrong("`cache_read` of what only the start of a reduction reads, which may not run",
       r"the copy would read elements of B that may not be written by then")
def cache_read_of_a_start():
    sch = script("""
B = T.alloc_buffer((8,), "int32")
for i in range(2):
    with T.block("P"):
        vi = T.axis.spatial(8, i)
        B[vi] = vi
for i, k in T.grid(8, 2):
    with T.block("R"):
        vi = T.axis.spatial(8, i)
        vk = T.axis.reduce(3, k + 1)
        with T.init():
            D[vi] = B[vi]
        D[vi] = D[vi] + vk
""", "D: T.Buffer((8,), 'int32')")
    sch.cache_read("R", "B", "shared")


@wrong("`cache_read` of a box that other iterations of a vectorized loop write",
       r"cannot vectorize loop i: two of its iterations may touch the same element of B")
def cache_read_of_a_wide_box():
    sch = script("""
for i in T.vectorized(6):
    with T.block("P"):
        vi = T.axis.spatial(6, i)
        B[vi] = vi
    for j, k in T.grid(2, 4):
        with T.block("R"):
            vi = T.axis.spatial(6, i + j + k)
            T.where(i + j + k < 6 and j + k * 4 < 1 and j * 4 + k < 1)
            D[vi] = B[vi]
""", "B: T.Buffer((6,), 'int32'), D: T.Buffer((6,), 'int32')")
    sch.cache_read("R", "B", "global")


def _run(sch: Schedule, name: str, position: int, scope: str, consumers: list[str] | None) -> None:
    blocks = None if consumers is None else [find_block(sch, b) for b in consumers]
    sch.cache_read(find_block(sch, name), position, scope, consumer_blocks=blocks)


@move("cache_read", 4, 0.3, _run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, name = chooser.rng, chooser.rng.choice(names)
    block = sch.realize(name).block
    if not block.reads or len(names) > 9:
        return None
    consumers = [name] if rng.random() < 0.3 else None
    return ("cache_read", name, rng.randrange(len(block.reads)), rng.choice(SCOPES), consumers)
