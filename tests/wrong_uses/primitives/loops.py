"""Wrong uses of merge, loop_partition, block axes, unit loops, storage_align and set_axis_separator."""
from __future__ import annotations

import tilewright as tw
from tilewright import te
from tilewright.tir.expr import IntImm
from tilewright.tir.symbols import replace_buffers

from ..programs import N, blocks, chain
from ..wrong_use import Section, watch

SECTION = Section("Consecutive loops, block axes and storage")
wrong = SECTION.wrong


def pair(program=chain):
    """sch, block B, block C of B = A + 1, C = B * 2, watched"""
    sch = blocks(program)
    found = sch.get_block("B"), sch.get_block("C")
    return watch(sch), *found


def three_stages():
    """A, B, C, D, D[i] = C[i] + B[i] after C[i] = A[15 - i]"""
    a = te.placeholder((N,), name="A")
    b = te.compute((N,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((N,), lambda i: b[N - 1 - i] * 2.0, name="C")
    d = te.compute((N,), lambda i: c[i] + b[i], name="D")
    return a, b, c, d


@wrong("`merge(loop)` of one loop", r"merge\(i\): 1 loop is given; merge takes two or more")
def merge_one():
    sch, b, _ = pair()
    sch.merge(sch.get_loops(b)[0])


@wrong("`merge(i, i)`", r"merge\(i, i\): loop i is given twice")
def merge_twice():
    sch, b, _ = pair()
    i, _ = sch.get_loops(b)
    sch.merge(i, i)


@wrong("`merge(i, j)` of loops nested in one another", r"loops i, j are not in nests that stand side by side")
def merge_nested():
    sch, b, _ = pair()
    sch.merge(*sch.get_loops(b))


@wrong("`merge` of loops of different extents", r"loop i_0 has extent 4, and loop i has 16")
def merge_extents():
    sch, b, c = pair()
    i0, _ = sch.split(sch.get_loops(b)[0], [4, 4])
    watch(sch).merge(i0, sch.get_loops(c)[0])


@wrong("`merge` of loops at different depths", r"loops i, j are 1, 2 loops deep in their nests")
def merge_depths():
    sch, b, c = pair()
    sch.merge(sch.get_loops(b)[0], sch.get_loops(c)[1])


@wrong("`merge` of a parallel loop", r"merge\(i, i\): loop i is parallel; only a serial loop can be merged")
def merge_parallel():
    sch, b, c = pair()
    i, k = sch.get_loops(b)[0], sch.get_loops(c)[0]
    sch.parallel(i)
    watch(sch).merge(i, k)


@wrong("`merge` of loops with another nest between them", r"other statements stand between the nests of loops i, i")
def merge_apart():
    sch = blocks(three_stages)
    sch.get_block("B")
    b, d = sch.get_loops("B")[0], sch.get_loops("D")[0]
    watch(sch).merge(b, d)


@wrong("`merge` of a loop beside which other statements stand", r"loop j is not the innermost of a perfect nest")
def merge_imperfect():
    sch, b, c = pair()
    i, j = sch.get_loops(b)
    sch.cache_read(b, 0, "local")
    sch.compute_at("A_local", i)
    watch(sch).merge(j, sch.get_loops(c)[1])


@wrong("`merge` of a producer with a consumer that reads ahead",
       r"a later iteration of one loop touches elements of B before an earlier one of the other would")
def merge_reads_ahead():
    sch = blocks(three_stages)
    b, c = sch.get_loops("B")[0], sch.get_loops("C")[0]
    watch(sch).merge(b, c)


@wrong("`loop_partition(i, [2**40, None])`", r"the factors cover 1099511627776 iterations, int32 counts 2147483647")
def partition_huge():
    sch, b, _ = pair()
    sch.loop_partition(sch.get_loops(b)[0], [2**40, None])


@wrong("`loop_partition(i, [10, 10])`: more than the loop has",
       r"loop_partition\(loop=i, factors=\[10, 10\]\): the factors cover 20 iterations, loop i has 16")
def partition_long():
    sch, b, _ = pair()
    sch.loop_partition(sch.get_loops(b)[0], [10, 10])


@wrong("`loop_partition(i, [None, 16])`: nothing is left to infer",
       r"the factors cover 16 iterations, loop i has 16[^$]*an inferred part has one iteration at least")
def partition_nothing_left():
    sch, b, _ = pair()
    sch.loop_partition(sch.get_loops(b)[0], [None, 16])


@wrong("`loop_partition` of an annotated loop", r"loop i is annotated with note")
def partition_annotated():
    sch, b, _ = pair()
    i, _ = sch.get_loops(b)
    sch.annotate(i, "note", 1)
    watch(sch).loop_partition(i, [4, None])


@wrong("`reorder_block_iter_var(block, [0, 0])`",
       r"new_order is \[0, 0\], not a permutation of the 2 iter vars of block B")
def iter_vars_twice():
    sch, b, _ = pair()
    sch.reorder_block_iter_var(b, [0, 0])


@wrong("`add_unit_loop(root)`", r"add_unit_loop\(block_or_loop='root'\): the root block has no loops")
def unit_loop_of_root():
    sch, _, _ = pair()
    sch.add_unit_loop("root")


@wrong("`get_child_blocks(3)`", r"expected a block, got 3")
def children_of_number():
    sch, _, _ = pair()
    sch.get_child_blocks(3)


@wrong("`storage_align` of a buffer that is not written", r"block B writes no buffer 1")
def align_unknown():
    sch, b, _ = pair()
    sch.storage_align(b, 1, 0, 8, 1)


@wrong("`storage_align` of an argument", r"C is an argument of the function, which lies as the caller laid it")
def align_argument():
    sch, _, c = pair()
    sch.storage_align(c, 0, 0, 8, 1)


@wrong("`storage_align` of an axis that there is not", r"axis is 2, B has 2 dimension\(s\)")
def align_axis():
    sch, b, _ = pair()
    sch.storage_align(b, 0, 2, 8, 1)


@wrong("`storage_align` by a factor of 0", r"factor is 0, not a positive integer")
def align_factor():
    sch, b, _ = pair()
    sch.storage_align(b, 0, 0, 0, 0)


@wrong("`storage_align` with an offset of the factor", r"offset is 8, not an integer from 0 to 7")
def align_offset():
    sch, b, _ = pair()
    sch.storage_align(b, 0, 0, 8, 8)


@wrong("`storage_align` of a buffer with strides", r"B has strides of its own")
def align_strided():
    sch, b, _ = pair()
    old = sch.get(b).writes[0].buffer
    body = replace_buffers(sch.func.body, {old: old.replace(strides=(IntImm(32), IntImm(1)), data=None)})
    strided = tw.Schedule(sch.func.with_body(body))
    strided.storage_align("B", 0, 0, 8, 1)


@wrong("`set_axis_separator(block, (\"write\", 0), 1)`", r"axis_separators is 1, not a list of axes")
def separators_number():
    sch, b, _ = pair()
    sch.set_axis_separator(b, ("write", 0), 1)


@wrong("`set_axis_separator` with separators that fall", r"the separators \[2, 1\] do not rise from 0 to 2")
def separators_fall():
    sch, b, _ = pair()
    sch.set_axis_separator(b, ("write", 0), [2, 1])


@wrong("`set_axis_separator` of a buffer that the block does not use", r"block B has no buffer 'Z'")
def separators_of_nothing():
    sch, b, _ = pair()
    sch.set_axis_separator(b, "Z", [1])


@wrong("`compute_at(block, loop, index=-3)`", r"index is -3, not -1 \(late\), -2 \(early\) or a position")
def place_unknown():
    sch, b, c = pair()
    sch.compute_at(b, sch.get_loops(c)[0], index=-3)


@wrong("`compute_at(block, loop, index=1)` after its consumer", r"position 1 in loop i is not between")
def place_late():
    sch, b, c = pair()
    sch.compute_at(b, sch.get_loops(c)[0], index=1)


@wrong("`fuse` of a part of an output axis with the loop of a sum of nothing",
       r"would be fused with one that drives a part of axis vi of block C, which starts its reduction over nothing")
def fuse_part_with_nothing():
    a = te.placeholder((8, 0), name="A")
    k = te.reduce_axis((0, 0), name="k")
    sch = blocks(lambda: (a, te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="C")))
    i, k = sch.get_loops(sch.get_block("C"))
    _, inner = sch.split(i, [None, 2])
    watch(sch).fuse(inner, k)


@wrong("`split` without the condition that it needs", r"the factors do not divide the extent 16 of loop i")
def split_without_condition():
    sch = watch(blocks(chain))
    sch.split(sch.get_loops("B")[0], [None, 5], disable_predication=True)
