"""Wrong uses of stages: rfactor, memory, places and tensor intrinsics."""
from __future__ import annotations

import functools

from tilewright import te

from .programs import N, chain, placeholders, staged
from .stages import matmul_stages
from .wrong_use import Section, watch

SECTION = Section("Stages: memory, places and tensor intrinsics")
wrong = SECTION.wrong


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


def chain_stages():
    """s, B, C of B = A + 1, C = B * 2, watched"""
    s, (_, b, c) = staged(chain)
    return watch(s), b, c


def two_outputs():
    """s, the two results of one operation, and a reader of both"""
    a, b = placeholders()
    x, y = te.compute((N, N), lambda i, j: (a[i, j] + 1.0, b[i, j] + 2.0), name="X")
    z = te.compute((N, N), lambda i, j: x[i, j] + y[i, j], name="Z")
    return watch(te.create_schedule(z.op)), x, y


@wrong("`cache_write` of one of two outputs", r"s\.cache_write\(\w+[.\w]*, 'local'\): X has 2 output\(s\)")
def cache_write_of_two():
    s, x, _ = two_outputs()
    s.cache_write(x, "local")


@wrong("`compute_inline` of an operation with two outputs", r"s\[X\]\.compute_inline\(\): X has 2 outputs")
def inline_of_two():
    s, x, _ = two_outputs()
    s[x].compute_inline()


@wrong("`cache_write` where another stage is computed at the reduction",
       r"s\.cache_write\(C, 'local'\): k is no loop of C from then on, and s\[B\]\.compute_at\(s\[C\], k\) \(")
def cache_write_below():
    a, _ = placeholders()
    b = te.compute((N, N), lambda i, j: a[i, j] + 1.0, name="B")
    k = te.reduce_axis((0, N), name="k")
    c = te.compute((N,), lambda i: te.sum(b[i, k], axis=k), name="C")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], k)
    watch(s).cache_write(c, "local")


@wrong("`vectorize` of an axis of no stage", r"s\[C\]\.vectorize\(q\): q is not an axis of C")
def unknown_axis():
    s, c, _, _, _ = matmul_stages()
    s[c].vectorize(te.reduce_axis((0, 4), name="q"))


@wrong("`split` of an axis with a pragma", r"s\[C\]\.split\(i, factor=4\): i has a pragma \(")
def split_pragma():
    s, c, i, _, _ = matmul_stages()
    s[c].pragma(i, "auto_unroll_max_step", 16)
    watch(s)[c].split(i, factor=4)


@wrong("`split` of an axis at which a stage is computed",
       r"s\[C\]\.split\(i, factor=4\): B is computed at i \(")
def split_place():
    s, b, c = chain_stages()
    s[b].compute_at(s[c], s[c].op.axis[0])
    watch(s)[c].split(s[c].op.axis[0], factor=4)


def prefetching():
    """s, B, C of B = A + 1, C = B * 2, where C prefetches B, watched"""
    s, b, c = chain_stages()
    s[c].prefetch(b, c.op.axis[0], 1)
    return watch(s), b, c


@wrong("`split` of an axis along which a tensor is prefetched",
       r"s\[C\]\.split\(i, factor=4\): s\[C\]\.prefetch\(B, i, 1\) \(.*\) is about i")
def split_prefetch():
    s, _, c = prefetching()
    s[c].split(c.op.axis[0], factor=4)


@wrong("`cache_read` of a tensor that is prefetched",
       r"s\.cache_read\(B, 'local', \[C\]\): C reads B no longer from then on, and s\[C\]\.prefetch\(B, i, 1\) \(")
def cache_read_of_what_is_prefetched():
    s, b, c = prefetching()
    s.cache_read(b, "local", [c])


@wrong("`cache_write` where a tensor is prefetched",
       r"s\.cache_write\(C, 'local'\): C reads B no longer from then on, and s\[C\]\.prefetch\(B, i, 1\) \(")
def cache_write_prefetching():
    s, _, c = prefetching()
    s.cache_write(c, "local")


@wrong("`compute_at` of a stage inside itself", r"s\[B\]\.compute_at\(s\[B\], i\): a stage cannot be computed inside")
def at_itself():
    s, b, _ = chain_stages()
    s[b].compute_at(s[b], s[b].op.axis[0])


@wrong("`compute_at` of two stages inside one another",
       r"s\[X\]\.compute_at\(s\[B\], i\): B is computed inside X, so this would be a cycle")
def at_cycle():
    a, _ = placeholders()
    b = te.compute((N, N), lambda i, j: a[i, j] + 1.0, name="B")
    x = te.compute((N, N), lambda i, j: b[i, j] * 2.0, name="X")
    c = te.compute((N, N), lambda i, j: x[i, j] - 1.0, name="C")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[x], s[x].op.axis[0])
    watch(s)[x].compute_at(s[b], s[b].op.axis[0])


@wrong("`storage_align` of a loop that is not an axis of the operation",
       r"s\[C\]\.storage_align\(i\.outer, 32, 0\): i\.outer is not an axis of the operation C")
def align_loop():
    s, c, i, _, _ = matmul_stages()
    outer, _ = s[c].split(i, factor=4)
    watch(s)[c].storage_align(outer, 32, 0)


@wrong("`storage_align(i, 4, 4)`: the offset is not below the factor",
       r"s\[C\]\.storage_align\(i, 4, 4\): factor is 4 and offset 4, not integers with 0 <= offset < factor")
def align_offset():
    s, c, i, _, _ = matmul_stages()
    s[c].storage_align(i, 4, 4)


@wrong("`prefetch` of a tensor that the stage does not read", r"s\[C\]\.prefetch\(C, i, 1\): C does not read C")
def prefetch_stranger():
    s, c, i, _, _ = matmul_stages()
    s[c].prefetch(c, i, 1)


@wrong("`prefetch(A, i, 0)`: no iteration ahead",
       r"s\[C\]\.prefetch\(A, i, 0\): the offset 0 is not a positive number of iterations")
def prefetch_now():
    s, c, i, _, _ = matmul_stages()
    s[c].prefetch(c.op.input_tensors[0], i, 0)


@wrong("`set_store_predicate`", r"s\[C\]\.set_store_predicate\(.*\): where the predicate is false, elements of C would")
def store_predicate():
    s, c, i, _, _ = matmul_stages()
    s[c].set_store_predicate(i.var.equal(0))


@wrong("`env_threads(i)`: a loop in place of a thread axis", r"s\[C\]\.env_threads\(i\): .* is not a thread axis")
def threads_of_loop():
    s, c, i, _, _ = matmul_stages()
    s[c].env_threads(i)


@wrong("`env_threads` of a thread axis that no loop is bound to",
       r"s\[C\]\.env_threads\(threadIdx\.x\): no loop is bound to threadIdx\.x")
def threads_unbound():
    s, tensors = staged()
    s[tensors[-1]].env_threads([te.thread_axis("threadIdx.x")])
    watch(s).replay(list(tensors))


@functools.cache
def row_sum():
    """y[i] = sum of x[i, k] over 4 steps, 4 rows, without an update"""
    x = te.placeholder((4, 4), name="x")
    k = te.reduce_axis((0, 4), name="k")
    y = te.compute((4,), lambda i: te.sum(x[i, k], axis=k), name="y")
    return te.decl_tensor_intrin(y.op, lambda ins, outs: te.call_packed("f", ins[0], outs[0]), name="rows")


@wrong("`tensorize` of one stage at two axes", r"s\[C\]\.tensorize\(j, rows\): C is tensorized at i \(")
def tensorize_twice():
    s, c, i, j, _ = matmul_stages()
    s[c].tensorize(i, row_sum())
    watch(s)[c].tensorize(j, row_sum())


@wrong("`transform_layout` of a stage that is tensorized",
       r"s\[C\]\.transform_layout\(<lambda>\): s\[C\]\.tensorize\(i, rows\) \(.*\) is about i")
def layout_of_tensorized():
    s, c, i, _, _ = matmul_stages()
    s[c].tensorize(i, row_sum())
    watch(s)[c].transform_layout(lambda i, j: [j, i])


@wrong("`cache_write` of a stage that is tensorized",
       r"s\[C\]\.tensorize\(i, rows\) \(.*\) is about loops of the computation, which the cache takes")
def cache_write_of_tensorized():
    s, c, i, _, _ = matmul_stages()
    s[c].tensorize(i, row_sum())
    watch(s).cache_write(c, "local")


@wrong("`tensorize(i, 3)`", r"s\[C\]\.tensorize\(i, 3\): 3 is no tensor intrinsic")
def tensorize_number():
    s, c, i, _, _ = matmul_stages()
    s[c].tensorize(i, 3)


@wrong("`tensorize(i, \"missing\")`: a name that is not registered",
       r"s\[C\]\.tensorize\(i, 'missing'\): no tensor intrinsic 'missing' is registered")
def tensorize_unknown():
    s, c, i, _, _ = matmul_stages()
    s[c].tensorize(i, "missing")


@wrong("`tensorize` inside a loop of the reduction, by an intrinsic without an update",
       r"loops outside of i\.inner run steps of the reduction, and rows has no update")
def tensorize_steps():
    a = te.placeholder((N, N), name="A")
    k = te.reduce_axis((0, N), name="k")
    c = te.compute((N,), lambda i: te.sum(a[i, k], axis=k), name="C")
    s = te.create_schedule(c.op)
    io, ii = s[c].split(c.op.axis[0], factor=4)
    ko, ki = s[c].split(k, factor=4)
    s[c].reorder(io, ko, ii, ki)
    s[c].tensorize(ii, row_sum())
    watch(s).replay([a, c])


@wrong("`cache_write([], scope)`", r"s\.cache_write\(\[\], 'local'\): no tensor is given")
def cache_write_of_none():
    s, _, _ = chain_stages()
    s.cache_write([], "local")


@wrong("`cache_write` of outputs of two operations", r"s\.cache_write\(\[B, C\], 'local'\): B has 1 output\(s\)")
def cache_write_of_two_operations():
    s, b, c = chain_stages()
    s.cache_write([b, c], "local")


@wrong("`cache_write` after a split that leaves a rest", r"is not one to one from the extents \(16, 16\) onto a box")
def cache_write_ragged():
    s, c, i, _, _ = matmul_stages()
    s[c].split(i, factor=5)
    watch(s).cache_write(c, "local")


@wrong("`cache_write` after `fuse()` of nothing", r"s\.cache_write\(C, 'local'\): singleton is no axis of C")
def cache_write_unit():
    s, c, _, _, _ = matmul_stages()
    s[c].fuse()
    watch(s).cache_write(c, "local")


@wrong("`cache_write` after `fuse` of axes of symbolic extents",
       r"s\.cache_write\(C, 'local'\): the extent of i is not a constant, and other loops depend on it")
def cache_write_of_symbolic_loops():
    n = te.var("n")
    a = te.placeholder((n, n), name="A")
    c = te.compute((n, n), lambda i, j: a[i, j], name="C")
    s = te.create_schedule(c.op)
    s[c].fuse(*c.op.axis)
    watch(s).cache_write(c, "local")


@wrong("`transform_layout` by a function of too few indices",
       r"transform_layout\(<lambda>\): index_map takes 1 indices, not 2")
def layout_of_few():
    s, b, _ = chain_stages()
    s[b].transform_layout(lambda i: [i])


@wrong("`transform_layout` of a computation by a map that leaves gaps",
       r"lambda i, j: \(i // 5, i % 5, j\) is not one to one from the extents \(16, 16\) onto a box")
def layout_with_gaps():
    s, b, _ = chain_stages()
    s[b].transform_layout(lambda i, j: [i // 5, i % 5, j])


@wrong("`transform_layout` after a split",
       r"s\[C\]\.transform_layout\(<lambda>\): the loops of C were scheduled before \(s\[C\]\.split\(i, factor=4\) at")
def layout_after_split():
    s, c, i, _, _ = matmul_stages()
    s[c].split(i, factor=4)
    watch(s)[c].transform_layout(lambda i, j: [j, i])


@wrong("`rfactor` after `transform_layout`", r"s\.rfactor\(C, k, 0\): the layout of C was changed before \(")
def rfactor_after_layout():
    s, c, _, _, k = matmul_stages()
    s[c].transform_layout(lambda i, j: [j, i])
    watch(s).rfactor(c, k)


@wrong("`create_group` of outputs that do not read the inputs",
       r"s\.create_group\(\[B\], \[C\]\): no stage lies between the inputs and the outputs")
def group_of_nothing():
    s, b, c = chain_stages()
    s.create_group(outputs=b, inputs=c)


def long_chain():
    """s, and the stages A to F, each of which reads the one before"""
    tensors = [te.placeholder((N,), name="A")]
    for name in "BCDEF":
        before = tensors[-1]
        tensors.append(te.compute((N,), lambda i, before=before: before[i] + 1.0, name=name))
    return watch(te.create_schedule(tensors[-1].op)), *tensors


@wrong("`create_group` of a part of another group",
       r"s\.create_group\(\[D\], \[B\]\): a part of group\(B, C\) cannot be in")
def group_of_a_part():
    s, a, b, c, d, _, _ = long_chain()
    s.create_group(outputs=c, inputs=a)
    s.create_group(outputs=d, inputs=b)


@wrong("`compute_at` of a stage of a group outside of it",
       r"s\[B\]\.compute_at\(s\[E\], i\): E is outside of group\(B, C\)")
def out_of_the_group():
    s, a, b, c, _, e, _ = long_chain()
    s.create_group(outputs=c, inputs=a)
    watch(s)[b].compute_at(s[e], e.op.axis[0])


@wrong("`compute_at` of a group inside of itself",
       r"group\(B, C\)\.compute_at\(s\[C\], i\): a stage cannot be computed inside itself")
def group_in_itself():
    s, a, _, c, _, _, _ = long_chain()
    s.create_group(outputs=c, inputs=a).compute_at(s[c], c.op.axis[0])


def weighted():
    """s, and the constant that it reads"""
    a, weights = te.placeholder((N,), name="A"), te.constant([1.0] * N, name="weights")
    c = te.compute((N,), lambda i: a[i] * weights[i].astype("float32"), name="C")
    return watch(te.create_schedule(c.op)), c, weights


@wrong("`cache_read` of a constant",
       r"s\.cache_read\(weights, 'local', \[C\]\): weights is a constant: it is in no memory")
def cache_of_constant():
    s, c, weights = weighted()
    s.cache_read(weights, "local", [c])


@wrong("`transform_layout` of a constant", r"weights is a constant: it is in no memory")
def layout_of_constant():
    s, _, weights = weighted()
    s[weights].transform_layout(lambda i: [i // 4, i % 4])
