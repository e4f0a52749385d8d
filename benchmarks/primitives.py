"""What schedule primitives, replay of a trace, printing and parsing cost.

    python benchmarks/primitives.py

Milliseconds, the median of repeats, for every primitive on a nest of four loops; for the replay of a trace of 64
primitives; for printing and parsing a function of about 200 lines.
"""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from tilewright import te
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.te.prim_func import create_prim_func
from tilewright.tir.stmt import PrimFunc

REPEATS = 25


def batch_matmul_relu() -> PrimFunc:
    """D[b, i, j] = max(sum_k A[b, i, k] * B[b, k, j], 0): four loops around the product."""
    a = te.placeholder((16, 128, 128), name="A")
    b = te.placeholder((16, 128, 128), name="B")
    k = te.reduce_axis((0, 128), name="k")
    c = te.compute((16, 128, 128), lambda n, i, j: te.sum(a[n, i, k] * b[n, k, j], axis=k), name="C")
    d = te.compute((16, 128, 128), lambda n, i, j: te.max(c[n, i, j], 0.0), name="D")
    return create_prim_func([a, b, d], name="bmm_relu")


def _loop(sch: Schedule, block: str, k: int) -> object:
    return sch.get_loops(block)[k]


CALLS: dict[str, Callable[[Schedule], object]] = {
    "split": lambda s: s.split(_loop(s, "C", 1), [None, 8]),
    "fuse": lambda s: s.fuse(*s.get_loops("C")[:2]),
    "reorder": lambda s: s.reorder(*[s.get_loops("C")[k] for k in (1, 3, 2)]),
    "parallel": lambda s: s.parallel(_loop(s, "C", 0)),
    "vectorize": lambda s: s.vectorize(_loop(s, "C", 2)),
    "unroll": lambda s: s.unroll(_loop(s, "C", 3)),
    "bind": lambda s: s.bind(_loop(s, "C", 0), "blockIdx.x"),
    "annotate": lambda s: s.annotate(_loop(s, "C", 0), "key", 1),
    "set_scope": lambda s: s.set_scope("C", 0, "local"),
    "storage_align": lambda s: s.storage_align("C", 0, 1, 32, 1),
    "set_axis_separator": lambda s: s.set_axis_separator("C", ("write", 0), [1]),
    "decompose_reduction": lambda s: s.decompose_reduction("C", _loop(s, "C", 3)),
    "compute_at": lambda s: s.compute_at("C", _loop(s, "D", 1)),
    "reverse_compute_at": lambda s: s.reverse_compute_at("D", _loop(s, "C", 1)),
    "reverse_compute_inline": lambda s: s.reverse_compute_inline(s.cache_write("D", 0, "local")),
    "cache_read": lambda s: s.cache_read("C", 0, "local"),
    "cache_write": lambda s: s.cache_write("C", 0, "local"),
    "transform_layout": lambda s: s.transform_layout("C", ("write", 0), "lambda n, i, j: (j // 8, n, i, j % 8)"),
    "merge": lambda s: s.merge(_loop(s, "C", 1), _loop(s, "D", 1)),
    "loop_partition": lambda s: s.loop_partition(_loop(s, "C", 1), [2, None]),
    "reorder_block_iter_var": lambda s: s.reorder_block_iter_var("C", [3, 1, 2, 0]),
    "add_unit_loop": lambda s: s.add_unit_loop("C"),
    "rfactor": lambda s: s.rfactor(_loop(s, "C", 3), 0),
    "cache_index": lambda s: s.cache_index("C", "global", 0),
    "reindex": lambda s: s.reindex("C", ("read", 0)),
    "pad_einsum": lambda s: s.pad_einsum("C", [1, 32, 32, 32]),
    "blockize": lambda s: s.blockize(_loop(s, "C", 2)),
    "sample_categorical": lambda s: s.sample_categorical([1, 2, 4], [0.2, 0.3, 0.5]),
    "sample_perfect_tile": lambda s: s.sample_perfect_tile(_loop(s, "C", 1), 4),
    "sample_compute_location": lambda s: s.sample_compute_location("C"),
    "get_loops": lambda s: s.get_loops("C"),
    "get_child_blocks": lambda s: s.get_child_blocks("root"),
}


def long_trace(func: PrimFunc) -> Schedule:
    """A schedule of 64 primitives on one product: splits, orders, annotations, and queries."""
    sch = Schedule(func)
    block = sch.get_block("C")
    n, i, j, k = sch.get_loops(block)
    while len(sch.trace) < 56:
        i, inner = sch.split(i, [None, 2]) if len(sch.trace) % 3 else sch.split(i, [None, 1])
        j, low = sch.split(j, [None, 1])
        sch.annotate(inner, "step", len(sch.trace))
        sch.reorder(inner, j)
        sch.fuse(j, low)
        n, i, *_, j, k = sch.get_loops(block)
    while len(sch.trace) < 64:
        sch.annotate(k, f"mark{len(sch.trace)}", 1)
    return sch


def long_function() -> PrimFunc:
    """A function of about 200 printed lines: elementwise steps, each with two loops."""
    a = te.placeholder((64, 64), name="A")
    steps = [a]
    for n in range(28):
        steps.append(te.compute((64, 64), lambda i, j, x=steps[-1], n=n: x[i, j] * 2.0 + n, name=f"T{n}"))
    return create_prim_func([a, steps[-1]], name="steps")


def milliseconds(prepare: Callable[[], object], run: Callable[[object], object], repeats: int = REPEATS) -> float:
    """The median time of run(prepare()), without that of prepare."""
    times = []
    for _ in range(repeats):
        given = prepare()
        start = time.perf_counter()
        run(given)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def main() -> None:
    func = batch_matmul_relu()
    print(f"{'primitive, with the query of its loops':40} ms")
    for name, call in CALLS.items():
        print(f"{name:40} {milliseconds(lambda: Schedule(func), call):.2f}")
    sch = long_trace(func)
    replay = milliseconds(lambda: Schedule(func), sch.trace.apply_to_schedule)
    print(f"{f'replay of a trace of {len(sch.trace)}':40} {replay:.1f}")
    long = long_function()
    text = str(long)
    lines = len(text.splitlines())
    shown, read = milliseconds(lambda: long, str), milliseconds(lambda: text, from_source)
    print(f"{f'printing a function of {lines} lines':40} {shown:.1f}")
    print(f"{f'parsing a function of {lines} lines':40} {read:.1f}")
    print(f"{'both':40} {shown + read:.1f}")


if __name__ == "__main__":
    main()
