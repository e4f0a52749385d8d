"""What schedule primitives, replay of a trace, printing and parsing cost.

    python benchmarks/primitives.py

Milliseconds for every primitive, most of them on a nest of four loops; for the replay of a trace of 64 primitives;
for printing and parsing a function of about 200 lines. Two numbers each: the median of the wall clock, and the least
processor time, which a loaded machine disturbs less. Exit status 1 where a primitive is not measured.
"""
from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright import te
from tilewright.schedule import Schedule
from tilewright.schedule.primitive import PRIMITIVES
from tilewright.script import from_source
from tilewright.te.prim_func import create_prim_func
from tilewright.tir.stmt import PrimFunc
from tilewright.tir.tensor_intrin import TensorIntrin

REPEATS = 25


# ---- the programs: four loops, or as many as the primitive can take

def batch_matmul_relu() -> PrimFunc:
    """D[b, i, j] = max(sum_k A[b, i, k] * B[b, k, j], 0): four loops around the product."""
    a = te.placeholder((16, 128, 128), name="A")
    b = te.placeholder((16, 128, 128), name="B")
    k = te.reduce_axis((0, 128), name="k")
    c = te.compute((16, 128, 128), lambda n, i, j: te.sum(a[n, i, k] * b[n, k, j], axis=k), name="C")
    d = te.compute((16, 128, 128), lambda n, i, j: te.max(c[n, i, j], 0.0), name="D")
    return create_prim_func([a, b, d], name="bmm_relu")


def pooling() -> PrimFunc:
    """P is A between rows and columns of zeros, C the maxima of its windows: four loops around the first."""
    a = te.placeholder((4, 8, 62, 62), name="A")
    p = te.compute((4, 8, 64, 64), lambda n, c, i, j: te.if_then_else(
        te.all(i >= 1, i < 63, j >= 1, j < 63), a[n, c, i - 1, j - 1], 0.0), name="P")
    c = te.compute((4, 8, 62, 64), lambda n, c, i, j: te.max(te.max(p[n, c, i, j], p[n, c, i + 1, j]),
                                                             p[n, c, i + 2, j]), name="C")
    return create_prim_func([a, c], name="pooling")


def gather() -> PrimFunc:
    """G[n, c, i, j] reads rows at an index that is long to compute."""
    a = te.placeholder((4, 8, 200, 64), name="A")
    return create_prim_func([a, te.compute((4, 8, 64, 64), lambda n, c, i, j: a[n, c, i // 2 + j * 2, j], name="G")])


def triple() -> TensorIntrin:
    """Eight elements times three."""
    x = te.placeholder((8,), name="X")
    y = te.compute((8,), lambda i: x[i] * 3.0, name="Y")
    return te.decl_tensor_intrin(y.op, lambda ins, outs: te.call_packed("triple", ins[0], outs[0])).compute


def tripled() -> PrimFunc:
    """Y = 3 A: four loops around what `triple` computes."""
    a = te.placeholder((4, 8, 64, 64), name="A")
    return create_prim_func([a, te.compute((4, 8, 64, 64), lambda n, c, i, j: a[n, c, i, j] * 3.0, name="Y")])


# ---- the calls, each with the query of its loops

@dataclass(frozen=True)
class Case:
    """A call of a primitive on a new schedule of func, after `prepare`, whose cost does not count."""
    name: str
    func: PrimFunc
    run: Callable[[Schedule], object]
    prepare: Callable[[Schedule], object] = lambda sch: None
    note: str = ""

    def schedule(self) -> Schedule:
        sch = Schedule(self.func)
        self.prepare(sch)
        return sch


def _loop(sch: Schedule, block: str, k: int) -> Any:
    return sch.get_loops(block)[k]


def product_cases(func: PrimFunc) -> list[Case]:
    """What acts on the loops, the reduction or the order of the product."""
    calls: dict[str, Callable[[Schedule], object]] = {
        "split": lambda s: s.split(_loop(s, "C", 1), [None, 8]),
        "fuse": lambda s: s.fuse(*s.get_loops("C")[:2]),
        "reorder": lambda s: s.reorder(*[s.get_loops("C")[k] for k in (1, 3, 2)]),
        "merge": lambda s: s.merge(_loop(s, "C", 1), _loop(s, "D", 1)),
        "loop_partition": lambda s: s.loop_partition(_loop(s, "C", 1), [2, None]),
        "add_unit_loop": lambda s: s.add_unit_loop("C"),
        "parallel": lambda s: s.parallel(_loop(s, "C", 0)),
        "vectorize": lambda s: s.vectorize(_loop(s, "C", 2)),
        "unroll": lambda s: s.unroll(_loop(s, "C", 3)),
        "bind": lambda s: s.bind(_loop(s, "C", 0), "blockIdx.x"),
        "annotate": lambda s: s.annotate(_loop(s, "C", 0), "key", 1),
        "prefetch": lambda s: s.prefetch("C", 0, _loop(s, "C", 2), 2),
        "reorder_block_iter_var": lambda s: s.reorder_block_iter_var("C", [3, 1, 2, 0]),
        "transform_block_layout": lambda s: s.transform_block_layout("D", "lambda n, i, j: (n, i * 128 + j)"),
        "blockize": lambda s: s.blockize(_loop(s, "C", 2)),
        "decompose_reduction": lambda s: s.decompose_reduction("C", _loop(s, "C", 3)),
        "rfactor": lambda s: s.rfactor(_loop(s, "C", 3), 0),
        "pad_einsum": lambda s: s.pad_einsum("C", [1, 32, 32, 32]),
        "compute_at": lambda s: s.compute_at("C", _loop(s, "D", 1)),
        "reverse_compute_at": lambda s: s.reverse_compute_at("D", _loop(s, "C", 1)),
    }
    return [Case(name, func, run) for name, run in calls.items()]


def memory_cases(func: PrimFunc) -> list[Case]:
    """What acts on the buffers of the product, or copies them."""
    turned, split = "lambda n, i, j: (j, n, i)", "lambda n, i, j: (j // 8, n, i, j % 8)"
    ragged = "lambda n, i, j: (j // 24, n, i, j % 24)"
    calls: dict[str, Callable[[Schedule], object]] = {
        "set_scope": lambda s: s.set_scope("C", 0, "local"),
        "storage_align": lambda s: s.storage_align("C", 0, 1, 32, 1),
        "set_axis_separator": lambda s: s.set_axis_separator("C", ("write", 0), [1]),
        "cache_read": lambda s: s.cache_read("C", 0, "local"),
        "cache_write": lambda s: s.cache_write("C", 0, "local"),
        "unsafe_set_dtype": lambda s: s.unsafe_set_dtype("C", 0, "float16"),
        "compute_in_place": lambda s: s.compute_in_place("D", 0),
        "read_at": lambda s: s.read_at(_loop(s, "D", 1), "D", 0, "shared"),
        "write_at": lambda s: s.write_at(_loop(s, "D", 1), "D", 0, "shared"),
        "reindex": lambda s: s.reindex("C", ("read", 0)),
        "reindex_cache_read": lambda s: s.reindex_cache_read("D", 0, "local", turned),
        "reindex_cache_write": lambda s: s.reindex_cache_write("D", 0, "local", turned),
        "transform_layout": lambda s: s.transform_layout("C", ("write", 0), split),
    }
    return [*(Case(name, func, run) for name, run in calls.items()),
            Case("transform_layout", func, lambda s: s.transform_layout("C", ("write", 0), ragged, 0.0),
                 note="with padding"),
            Case("cache_inplace", func, lambda s: s.cache_inplace("C_update", "C", "local"),
                 lambda s: s.decompose_reduction("C", _loop(s, "C", 3)))]


def query_cases(func: PrimFunc) -> list[Case]:
    """What changes no program."""
    calls: dict[str, Callable[[Schedule], object]] = {
        "get_block": lambda s: s.get_block("C"),
        "get_blocks": lambda s: s.get_blocks(),
        "get_loops": lambda s: s.get_loops("C"),
        "get_child_blocks": lambda s: s.get_child_blocks("root"),
        "get_output_blocks": lambda s: s.get_output_blocks("root"),
        "get_producers": lambda s: s.get_producers("D"),
        "get_consumers": lambda s: s.get_consumers("C"),
        "sample_categorical": lambda s: s.sample_categorical([1, 2, 4], [0.2, 0.3, 0.5]),
        "sample_perfect_tile": lambda s: s.sample_perfect_tile(_loop(s, "C", 1), 4),
        "sample_partitioned_tile": lambda s: s.sample_partitioned_tile(_loop(s, "C", 1), 4, 2, 4),
        "sample_compute_location": lambda s: s.sample_compute_location("C"),
        "enter_postproc": lambda s: s.enter_postproc(),
    }
    return [Case(name, func, run) for name, run in calls.items()]


def cases() -> list[Case]:
    """Every primitive at least once."""
    func, pool, three = batch_matmul_relu(), pooling(), triple()
    return [
        *product_cases(func), *memory_cases(func),
        Case("unannotate", func, lambda s: s.unannotate(_loop(s, "C", 0), "key"),
             lambda s: s.annotate(_loop(s, "C", 0), "key", 1)),
        Case("reverse_compute_inline", func, lambda s: s.reverse_compute_inline("D_local"),
             lambda s: s.cache_write("D", 0, "local")),
        Case("compute_inline", pool, lambda s: s.compute_inline("P")),
        Case("decompose_padding", pool, lambda s: s.decompose_padding("P", _loop(s, "P", 1))),
        Case("rolling_buffer", pool, lambda s: s.rolling_buffer("P", 0),
             lambda s: s.compute_at("P", _loop(s, "C", 2))),
        Case("cache_index", gather(), lambda s: s.cache_index("G", "global", 0)),
        Case("tensorize", tripled(), lambda s: s.tensorize(_loop(s, "Y", 4), three),
             lambda s: s.split(_loop(s, "Y", 3), [None, 8])),
        *query_cases(func),
    ]


# ---- a trace, a text

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


@dataclass(frozen=True)
class Cost:
    """Milliseconds: the median of the wall clock, and the least processor time."""
    wall: float
    cpu: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall + other.wall, self.cpu + other.cpu)

    def row(self, what: str) -> str:
        return f"{what:44}{self.wall:8.2f}{self.cpu:8.2f}"


def measure(prepare: Callable[[], Any], run: Callable[[Any], object], repeats: int = REPEATS) -> Cost:
    """The cost of run(prepare()), without that of prepare."""
    walls, cpus = [], []
    for _ in range(repeats):
        given = prepare()
        start, busy = time.perf_counter(), time.process_time()
        run(given)
        cpus.append(1e3 * (time.process_time() - busy))
        walls.append(1e3 * (time.perf_counter() - start))
    return Cost(statistics.median(walls), min(cpus))


def main() -> None:
    chosen = cases()
    missing = PRIMITIVES.keys() - {case.name for case in chosen}
    if missing:
        sys.exit(f"not measured: {', '.join(sorted(missing))}")
    print(f"{'milliseconds':44}{'wall':>8}{'cpu':>8}")
    for case in chosen:
        print(measure(case.schedule, case.run).row(f"{case.name} {case.note}"))
    func = batch_matmul_relu()
    sch = long_trace(func)
    print(measure(lambda: Schedule(func), sch.trace.apply_to_schedule).row(f"replay of a trace of {len(sch.trace)}"))
    long = long_function()
    text = str(long)
    lines = len(text.splitlines())
    shown, read = measure(lambda: long, str), measure(lambda: text, from_source)
    print(shown.row(f"printing a function of {lines} lines"))
    print(read.row(f"parsing a function of {lines} lines"))
    print((shown + read).row("both"))


if __name__ == "__main__":
    main()
