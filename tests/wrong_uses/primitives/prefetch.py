"""Wrong uses of prefetch."""
from __future__ import annotations

from ..programs import blocks
from ..wrong_use import Section, watch

SECTION = Section("Prefetching")
wrong = SECTION.wrong


def product():
    sch = blocks()
    block = sch.get_block("C")
    loops = sch.get_loops(block)
    return watch(sch), block, *loops


@wrong("`prefetch(C, 2, k)`: C reads two buffers", r"block C reads 2 buffer\(s\), there is no number 2")
def prefetch_of_no_buffer():
    sch, block, _, _, k = product()
    sch.prefetch(block, 2, k)


@wrong("`prefetch` at a loop of another block", r"loop \w+ is not around block C")
def prefetch_elsewhere():
    sch, block, i, _, k = product()
    other = sch.cache_read(block, 0, "local")
    sch.prefetch(block, 0, sch.get_loops(watch(sch) and other)[0])


@wrong("`prefetch` at a parallel loop", r"loop i is parallel: its iterations have no order")
def prefetch_in_parallel():
    sch, block, i, _, _ = product()
    sch.parallel(i)
    watch(sch).prefetch(block, 0, i)


@wrong("`prefetch(C, 0, k, 0)`: not ahead", r"the offset 0 is not a positive number of iterations")
def prefetch_now():
    sch, block, _, _, k = product()
    sch.prefetch(block, 0, k, 0)


@wrong("`prefetch` twice", r"loop k prefetches A that far ahead already")
def prefetch_twice():
    sch, block, _, _, k = product()
    sch.prefetch(block, 0, k)
    watch(sch).prefetch(block, 0, k)
