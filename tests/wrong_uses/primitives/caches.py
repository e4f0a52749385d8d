"""Wrong uses of cache_read, cache_write, cache_inplace, cache_index, reindex and its cached forms, and rfactor."""
from __future__ import annotations

import tilewright as tw
from tilewright import te
from tilewright.schedule.index_map import IndexMap
from tilewright.tir.buffer import BufferRegion, MatchBuffer, decl_buffer
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.node import rewrite, substitute
from tilewright.tir.stmt import Block, BlockRealize, Evaluate, For, IfThenElse, Seq, Store, loop, seq
from tilewright.tir.symbols import replace_buffers

from ..programs import N, blocks, chain, placeholders, script, staged
from ..wrong_use import Section, watch

SECTION = Section("Caches, new indices and rfactor")
wrong = SECTION.wrong


def product():
    """sch, block C, loops i, j, k of the matrix product"""
    sch = blocks()
    return sch, sch.get_block("C"), *sch.get_loops("C")


def scheduled(*tensors):
    """A schedule of a program whose arguments are the placeholders and the last of tensors."""
    args = [t for t in tensors if t is tensors[-1] or not t.op.axis]
    return watch(tw.Schedule(te.create_prim_func(args, name="main")))


def rewritten(sch, fn):
    """A schedule of sch's function with its body rewritten."""
    return watch(tw.Schedule(sch.func.with_body(rewrite(sch.func.body, fn))))


def vector(name="A", n=N, dtype="float32"):
    return te.placeholder((n,), dtype, name=name)


def whole(buffer):
    return BufferRegion(buffer, tuple(Range(IntImm(0), d) for d in buffer.shape))


def viewed(sch, name, buffer_name):
    """sch with a view of a buffer that the block `name` uses."""
    def view(n):
        if not isinstance(n, Block) or n.name != name:
            return None
        buffer = next(r.buffer for r in (*n.reads, *n.writes) if r.buffer.name == buffer_name)
        return n.replace(match_buffers=(MatchBuffer(decl_buffer(buffer.shape, buffer.dtype, "V"), whole(buffer)),))
    return rewritten(sch, view)


# ---- cache_read, cache_write

@wrong("`cache_read` for a block that does not read the buffer",
       r"block C does not read A")
def cache_read_of_a_stranger():
    sch = watch(blocks(chain))
    sch.cache_read("B", "A", "local", ["C"])


@wrong("`cache_read(C_update, \"C\")`: the block writes it, too",
       r"block C_update writes C as well as reading it")
def cache_read_of_an_update():
    sch, block, i, _, _ = product()
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
    a = vector()
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
    a = vector(n=2 * N)
    b = te.compute((2 * N,), lambda i: a[i] + 1.0, name="B")
    partly(scheduled(a, b, te.compute((N,), lambda i: b[2 * i], name="C")), "B").cache_read("C", "B", "local")


def partly(sch, name):
    """sch with the block `name` running for the first rows only."""
    def less(n):
        rows = isinstance(n, BlockRealize) and n.block.name == name
        return n.replace(predicate=n.iter_values[0] < 3) if rows else None
    return rewritten(sch, less)


@wrong("`cache_read` of a buffer that another block in the same loop writes for later iterations",
       r"block U writes A between the copy and block C")
def cache_read_of_a_recurrence():
    recurrence().cache_read("C", "A", "local", ["C"])


def recurrence():
    """for i: C[i] = A[i - 1 or 0], U: A[i] = X[i]"""
    a, x = vector(), vector("X")
    c = te.compute((N,), lambda i: a[te.max(i - 1, 0)] * 2.0, name="C")
    u = te.compute((N,), lambda i: x[i] * 5.0, name="U")
    func = te.create_prim_func([a, x, c, u])
    body = replace_buffers(func.body, {func.buffers[3]: func.buffers[0]})
    first, second = body.block.body.stmts
    both = seq([first.body, substitute(second.body, {second.loop_var: first.loop_var})])
    return watch(tw.Schedule(func.with_body(rewrite(body, lambda n: first.replace(body=both) if isinstance(n, Seq)
                                                    and n.stmts == (first, second) else None))))


@wrong("`cache_write` of a block that stores at two places",
       r"block B does not store to B at one place in each iteration")
def cache_write_of_two_places():
    def twice(n):
        if not isinstance(n, Block) or n.name != "B":
            return None
        other = n.body.replace(indices=(n.body.indices[0], IntImm(0)))
        return n.replace(body=seq([n.body, other]))
    rewritten(blocks(chain), twice).cache_write("B", 0, "local")


@wrong("`cache_write` of a block that stores under a condition",
       r"block B stores to B in some iterations only; the copy would take elements that it has not written")
def cache_write_of_some_elements():
    def guarded(n):
        return n.replace(body=IfThenElse(n.iter_vars[0].var < 5, n.body)) if isinstance(n, Block) and n.name == "B" \
            else None
    rewritten(blocks(chain), guarded).cache_write("B", 0, "local")


@wrong("`cache_write` of a block that was moved, so that it fills no box",
       r"the points at which block C uses C_local or C there are no box")
def cache_write_of_no_box():
    sch = diagonal()
    sch.cache_write("C", 0, "local")


def diagonal():
    """C[i, j] = A[i, j] in loops of which the inner one starts where the outer stands"""
    a, _ = placeholders()
    c = te.compute((N, N), lambda i, j: a[i, j] + 1.0, name="C")
    sch = tw.Schedule(te.create_prim_func([a, c]))

    def skew(n):
        if not isinstance(n, BlockRealize) or n.block.name != "C":
            return None
        i, j = n.iter_values
        return n.replace(iter_values=(i, (i + j) % N))
    return rewritten(sch, skew)


# ---- reindex

@wrong("`reindex(C, (\"read\", 0))` of a buffer that is read at two places",
       r"block C does not read B at one place in each iteration")
def reindex_of_two_places():
    a = vector(n=N + 2)
    b = te.compute((N + 2,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((N,), lambda i: b[i] + b[i + 2], name="C")
    scheduled(a, b, c).reindex("C", ("read", 0))


@wrong("`reindex(C, (\"read\", 0))` of a read that is not known to stay inside",
       r"whether the element of A that block C uses exists is checked when it is used, and the copy uses all")
def reindex_of_what_may_not_exist():
    a, m = vector(), te.var("m")
    c = te.compute((m,), lambda i: te.if_then_else(i < 4, a[i + m], 0.0), name="C")
    assert "checked_index" in str(te.create_prim_func([a, c]))
    scheduled(a, c).reindex("C", ("read", 0))


@wrong("`reindex(C, (\"read\", 7))`", r"block C has no buffer \['read', 7\]|block C has no buffer \('read', 7\)")
def reindex_of_no_buffer():
    sch, block, *_ = product()
    watch(sch).reindex(block, ("read", 7))


@wrong("`reindex` of elements that depend on data",
       r"which element of T block C uses depends on data")
def reindex_of_data():
    t, index = vector("T"), vector("I", dtype="int32")
    scheduled(t, index, te.compute((N,), lambda i: t[index[i]], name="C")).reindex("C", "T")


@wrong("`reindex_cache_read(C_update, \"C\", ...)`: the block writes it, too",
       r"block C_update writes C as well as reading it")
def reindex_cache_read_of_an_update():
    sch, block, i, _, _ = product()
    sch.decompose_reduction(block, i)
    watch(sch).reindex_cache_read(block, "C", "local", lambda i, j, k: (i, j))


@wrong("`reindex_cache_read(C, 0, \"local\", lambda i, j, k: (i // 2, k))`: two elements in one place",
       r"the new indices \(vi // 2, vk\) are not known to be a place of its own for every element of A")
def reindex_cache_read_mixed():
    sch, block, *_ = product()
    watch(sch).reindex_cache_read(block, 0, "local", lambda i, j, k: (i // 2, k))


@wrong("`reindex_cache_read` with a separator in the map", r"index_map has a separator")
def reindex_cache_read_separated():
    sch, block, *_ = product()
    watch(sch).reindex_cache_read(block, 0, "local", lambda i, j, k: (i, IndexMap.AXIS_SEPARATOR, k))


@wrong("`reindex_cache_write(C, 0, \"local\", lambda i, j, k: (i, j, k))`: with the reduction",
       r"the new indices depend on the reduction vk")
def reindex_cache_write_reduced():
    sch, block, *_ = product()
    watch(sch).reindex_cache_write(block, 0, "local", lambda i, j, k: (i, j, k))


# ---- cache_index, cache_inplace

@wrong("`cache_index(C, \"global\", -1)`", r"cse_thresh is -1, not a number of repetitions")
def cache_index_never():
    sch, block, *_ = product()
    watch(sch).cache_index(block, "global", -1)


def update(name="C"):
    """The chain of two products, its first one decomposed: B_update reads and writes B, which the function allocates"""
    a, b = placeholders()
    k = te.reduce_axis((0, N), name="k")
    c = te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((N, N), lambda i, j: c[i, j] + 1.0, name="D")
    sch = tw.Schedule(te.create_prim_func([a, b, d]))
    sch.decompose_reduction("C", sch.get_loops("C")[0])
    return sch


@wrong("`cache_inplace(C, \"A\", ...)`: the block does not write it", r"block C reads A and does not write it")
def cache_inplace_of_an_input():
    sch, block, *_ = product()
    watch(sch).cache_inplace(block, "A", "local")


@wrong("`cache_inplace` of a buffer with strides of its own", r"C has strides of its own")
def cache_inplace_of_strides():
    sch = update()
    old = sch.get(sch.get_block("C_update")).writes[0].buffer
    strided = old.replace(strides=(IntImm(2 * N), IntImm(2)), data=None)
    watch(tw.Schedule(sch.func.with_body(replace_buffers(sch.func.body, {old: strided})))).cache_inplace(
        "C_update", "C", "local")


@wrong("`cache_inplace` of elements that are written only in part",
       r"the copy would read elements of C that may not be written by then")
def cache_inplace_too_early():
    partly(update(), "C_init").cache_inplace("C_update", "C", "local")


@wrong("`cache_inplace` of a block in a branch with others", r"block C_update shares a branch with other blocks")
def cache_inplace_in_a_branch():
    sch = update()

    def branch(n):
        root = isinstance(n, Block) and n.name == "root"
        return n.replace(body=IfThenElse(IntImm(1, "bool"), n.body)) if root else None
    rewritten(sch, branch).cache_inplace("C_update", "C", "local")


# ---- rfactor

@wrong("`rfactor(i, 0)` of a loop of the output", r"loop i drives no reduction axis of block C")
def rfactor_output():
    sch, _, i, _, _ = product()
    watch(sch).rfactor(i, 0)


@wrong("`rfactor(k, 3)` of a matrix", r"factor_axis is 3; C has 2 dimension\(s\)")
def rfactor_axis():
    sch, _, _, _, k = product()
    watch(sch).rfactor(k, 3)


@wrong("`rfactor` of a loop around several blocks", r"loop i has 2 blocks below it")
def rfactor_of_two():
    sch, block, _, j, _ = product()
    sch.decompose_reduction(block, j)
    watch(sch).rfactor(sch.get_loops(block)[0], 0)


@wrong("`rfactor` of a block without a reduction", r"block B is not a reduction with an init")
def rfactor_of_elements():
    sch = watch(blocks(chain))
    sch.rfactor(sch.get_loops("B")[0], 0)


@wrong("`rfactor` of a combiner that is not known", r"block B is not known to combine terms by an associative operator")
def rfactor_of_differences():
    def difference(n):
        if not isinstance(n, Block) or n.name != "B":
            return None
        return n.replace(body=n.body.replace(value=n.body.value.a - n.body.value.b))
    a = vector()
    k = te.reduce_axis((0, N), name="k")
    sch = rewritten(scheduled(a, te.compute((), lambda: te.sum(a[k], axis=k), name="B")), difference)
    sch.rfactor(sch.get_loops("B")[0], 0)


@wrong("`rfactor` below a loop fused with one that never runs, of a reduction over nothing",
       r"loop i_k_0_fused never runs, and block B is to start all the same")
def rfactor_of_nothing():
    a = te.placeholder((4, 3), "int32", name="A")
    k = te.reduce_axis((0, 0), name="k")
    sch = tw.Schedule(te.create_prim_func([a, te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")]))
    i, k = sch.get_loops("B")
    outer, inner = sch.split(k, [None, 2])
    sch.fuse(i, outer)
    watch(sch).rfactor(inner, 0)


@wrong("`rfactor` of a block with a view (match_buffer)", r"block C has views of buffers \(match_buffer\)")
def rfactor_of_a_view():
    sch = viewed(blocks(), "C", "A")
    sch.rfactor(sch.get_loops("C")[2], 0)


@wrong("`rfactor` below a loop of the reduction that holds other statements",
       r"a loop of the reduction of block C has other statements in it, too")
def rfactor_in_company():
    sch, block, i, j, k = product()
    ko, ki = sch.split(k, [None, 4])
    copy = sch.cache_read(block, 0, "local")
    sch.compute_at(copy, ko)
    watch(sch).rfactor(ki, 0)


@wrong("`rfactor` where a loop drives output and reduction axes",
       r"loop \w+ drives output and reduction axes of block C")
def rfactor_of_a_mixed_loop():
    sch, _, i, j, k = product()
    j_k = sch.fuse(j, k)
    watch(sch).rfactor(j_k, 0)


@wrong("`rfactor` where an extent depends on another loop", r"the extent of loop k depends on other loops")
def rfactor_of_a_triangle():
    sch = blocks()
    i = sch.loops_above("C")[0].loop_var

    def triangle(n):
        return n.replace(extent=i + 1) if isinstance(n, For) and n.loop_var.name == "k" else None
    sch = rewritten(sch, triangle)
    sch.rfactor(sch.get_loops("C")[2], 0)


@wrong("`rfactor` of a loop of threads", r"loop k is thread_binding")
def rfactor_of_threads():
    def bound(n):
        k = isinstance(n, For) and n.loop_var.name == "k"
        return n.replace(kind="thread_binding", thread_tag="threadIdx.x") if k else None
    sch = rewritten(blocks(), bound)
    sch.rfactor(sch.get_loops("C")[2], 0)


@wrong("`rfactor` under a condition on output and reduction loops",
       r"the condition i \+ k < 20 of block C mixes output and reduction loops")
def rfactor_under_a_condition():
    def guarded(n):
        if not isinstance(n, BlockRealize) or n.block.name != "C":
            return None
        return n.replace(predicate=n.iter_values[0] + n.iter_values[2] < 20)
    sch = rewritten(blocks(), guarded)
    sch.rfactor(sch.get_loops("C")[2], 0)


@wrong("`rfactor` where every step of the reduction runs twice",
       r"the loops around block C may run a step of the reduction twice")
def rfactor_twice():
    def again(n):
        return loop(Var("t"), 2, n) if isinstance(n, For) and n.loop_var.name == "k" else None
    sch = rewritten(blocks(), again)
    sch.rfactor(sch.get_loops("C")[3], 0)


# ---- s.rfactor

@wrong("`s.rfactor` of a placeholder", r"s\.rfactor\(A, k, 0\): A is a placeholder: nothing is reduced")
def stage_rfactor_placeholder():
    s, (a, _, c) = staged()
    watch(s).rfactor(a, c.op.reduce_axis[0])


@wrong("`s.rfactor` of a stage without a reduction", r"s\.rfactor\(B, i, 0\): B is not a reduction")
def stage_rfactor_elements():
    s, (_, b, _) = staged(chain)
    watch(s).rfactor(b, b.op.axis[0])


@wrong("`s.rfactor` of an output axis", r"s\.rfactor\(C, i, 0\): i is not a loop of the reduction of C")
def stage_rfactor_output():
    s, (_, _, c) = staged()
    watch(s).rfactor(c, c.op.axis[0])


@wrong("`s.rfactor(C, k, 5)`", r"s\.rfactor\(C, k, 5\): factor_axis is 5; C has 2 dimension\(s\)")
def stage_rfactor_axis():
    s, (_, _, c) = staged()
    watch(s).rfactor(c, c.op.reduce_axis[0], 5)


@wrong("`s.rfactor` after the output's loops were changed",
       r"s\.rfactor\(C, k, 0\): the output loops of C were scheduled before \(s\[C\]\.split\(i, factor=4\) at")
def stage_rfactor_late():
    s, (_, _, c) = staged()
    s[c].split(c.op.axis[0], factor=4)
    watch(s).rfactor(c, c.op.reduce_axis[0])


@wrong("`s.rfactor` after a loop was unrolled",
       r"s\.rfactor\(C, k, 0\): how the loops of C run was said before \(s\[C\]\.unroll\(k\) at")
def stage_rfactor_marked():
    s, (_, _, c) = staged()
    s[c].unroll(c.op.reduce_axis[0])
    watch(s).rfactor(c, c.op.reduce_axis[0])


@wrong("`s.rfactor` of a stage in whose loops another is computed",
       r"s\.rfactor\(C, k, 0\): B is computed at k")
def stage_rfactor_around():
    a, _ = placeholders()
    k = te.reduce_axis((0, N), name="k")
    b = te.compute((N, N), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((N,), lambda i: te.sum(b[i, k], axis=k), name="C")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], k)
    watch(s).rfactor(c, k)


@wrong("`s.rfactor` after another reduction axis was split",
       r"s\[C\]\.split\(p, factor=4\) \(.*\) changed loops of the reduction that q does not come from")
def stage_rfactor_beside():
    a, _ = placeholders()
    p, q = te.reduce_axis((0, N), name="p"), te.reduce_axis((0, N), name="q")
    c = te.compute((), lambda: te.sum(a[p, q], axis=[p, q]), name="C")
    s = te.create_schedule(c.op)
    s[c].split(p, factor=4)
    watch(s).rfactor(c, q)




@wrong("`cache_write` of a block in a loop that may have no iterations",
       r"B would be copied where loop k has no iterations and block P wrote nothing")
def cache_write_of_nothing():
    sch = script("""
for k in range(n):
    with T.block("P"):
        vi = T.axis.spatial(1, 0)
        B[vi, 0] = 3
""", "B: T.Buffer((8, 8), 'int32'), n: T.int32")
    sch.cache_write("P", 0, "local")


@wrong("`cache_write(block, [], scope)`", r"cache_write\(block=C, .*\): no buffer is given")
def cache_write_nothing():
    sch, c, *_ = product()
    watch(sch).cache_write(c, [], "local")


@wrong("`cache_write` of two buffers that are written at other indices",
       r"X\.v0 and X\.v1 are not written and used alike")
def cache_write_unlike():
    a = vector()
    x, y = te.compute((N,), lambda i: (a[i], a[i] + 1), name="X")
    sch = tw.Schedule(te.create_prim_func([a, x, y]))
    sch = rewritten(sch, lambda n: n.replace(indices=(N - 1 - n.indices[0],)) if isinstance(n, Store)
                    and n.buffer.name == "X.v1" else None)
    sch.cache_write("X", [0, 1], "local")


# ---- caches that consumers of a result read, buffers of another dtype

@wrong("`cache_write` for a consumer that reads something else", r"block B does not read C")
def cache_write_stranger():
    sch = watch(blocks(chain))
    sch.cache_write("C", 0, "local", consumer_blocks=["B"])


@wrong("`cache_write` for a consumer inside of another block", r"block B and block P are not inside the same block")
def cache_write_nested_consumer():
    sch = script("""
P = T.alloc_buffer((8, 8), "int32")
for i, j in T.grid(8, 8):
    with T.block("P"):
        vi, vj = T.axis.remap("SS", [i, j])
        P[vi, vj] = A[vi, vj] + 1
for i in range(8):
    with T.block("row"):
        vr = T.axis.spatial(8, i)
        for j in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, vr)
                vj = T.axis.spatial(8, j)
                B[vi, vj] = P[vi, vj] * 2
""")
    sch.cache_write("P", 0, "local", consumer_blocks=["B"])


@wrong("`cache_write` for a consumer of what another block writes as well",
       r"block B may read elements of P that block P has not written by then")
def cache_write_two_writers():
    sch = watch(script("""
P = T.alloc_buffer((16,), "int32")
for i in range(16):
    with T.block("first"):
        v = T.axis.spatial(16, i)
        P[v] = 1
for i in range(8):
    with T.block("P"):
        v = T.axis.spatial(8, i)
        P[v] = 2
for i in range(16):
    with T.block("B"):
        v = T.axis.spatial(16, i)
        B[v] = P[v]
""", "B: T.Buffer((16,), 'int32')"))
    sch.cache_write("P", 0, "local", consumer_blocks=["B"])


@wrong("`cache_write` for a consumer that stands before the block",
       r"block B may read elements of P that block P has not written by then")
def cache_write_earlier_consumer():
    sch = watch(script("""
for i in range(16):
    with T.block("B"):
        v = T.axis.spatial(16, i)
        B[v] = P[v]
for i in range(16):
    with T.block("P"):
        v = T.axis.spatial(16, i)
        P[v] = 2
""", "P: T.Buffer((16,), 'int32'), B: T.Buffer((16,), 'int32')"))
    sch.cache_write("P", 0, "local", consumer_blocks=["B"])


@wrong("`unsafe_set_dtype` of an argument", r"C is no memory of the function's own")
def dtype_of_an_argument():
    watch(blocks(chain)).unsafe_set_dtype("C", 0, "float16")


@wrong("`unsafe_set_dtype` to what is no dtype", r"'half' is not a dtype")
def dtype_that_is_none():
    watch(blocks(chain)).unsafe_set_dtype("B", 0, "half")


@wrong("`unsafe_set_dtype` to vectors", r"'float32x4' is no dtype of elements")
def dtype_of_vectors():
    watch(blocks(chain)).unsafe_set_dtype("B", 0, "float32x4")


@wrong("`unsafe_set_dtype` of a buffer with a view (match_buffer)", r"the function uses B other than by its elements")
def dtype_of_a_view():
    viewed(blocks(chain), "C", "B").unsafe_set_dtype("B", 0, "float16")
