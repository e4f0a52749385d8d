"""One example of each primitive: a schedule whose last step is that primitive. test_goldens.py keeps what it prints."""
from __future__ import annotations

from collections.abc import Callable

from tilewright import te
from tilewright.schedule import Schedule
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import TensorIntrin

from .compute_support import chain, stencil
from .core_support import matmul, matmul_relu, scale

EXAMPLES: dict[str, Callable[[], Schedule]] = {}


def example(fn: Callable[[], Schedule]) -> Callable[[], Schedule]:
    """fn is the example of the primitive that it is named after."""
    EXAMPLES[fn.__name__.removesuffix("_")] = fn
    return fn


def padded(n: int = 8) -> Schedule:
    """P[i] = A[i - 1] in bounds, else 0; C = P + 1"""
    a = te.placeholder((n,), "int32", name="A")
    p = te.compute((n + 2,), lambda i: te.if_then_else(te.all(i >= 1, i <= n), a[i - 1], 0), name="P")
    return Schedule(create_prim_func([a, te.compute((n + 2,), lambda i: p[i] + 1, name="C")]))


def transposed() -> Schedule:
    """C[i, j] = A[j, i + 1] * 2"""
    a = te.placeholder((6, 5), "int32", name="A")
    return Schedule(create_prim_func([a, te.compute((4, 6), lambda i, j: a[j, i + 1] * 2, name="C")]))


def row_sums() -> Schedule:
    """B[i] = sum of A[i, k]"""
    a, k = te.placeholder((4, 12), "int32", name="A"), te.reduce_axis((0, 12), name="k")
    return Schedule(create_prim_func([a, te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")]))


def two_outputs() -> Schedule:
    """B = A + 1, C = A * 2"""
    a = te.placeholder((6,), "int32", name="A")
    return Schedule(create_prim_func([a, te.compute((6,), lambda i: a[i] + 1, name="B"),
                                      te.compute((6,), lambda i: a[i] * 2, name="C")]))


# ---- queries

@example
def get_block():
    sch = Schedule(scale())
    sch.get_block("B")
    return sch


@example
def get_blocks():
    sch = Schedule(chain())
    sch.get_blocks()
    return sch


@example
def get_loops():
    sch = Schedule(matmul())
    sch.get_loops("C")
    return sch


@example
def get_producers():
    sch = Schedule(chain())
    sch.get_producers("C")
    return sch


@example
def get_consumers():
    sch = Schedule(chain())
    sch.get_consumers("B")
    return sch


@example
def get_child_blocks():
    sch = Schedule(chain())
    sch.get_child_blocks("root")
    return sch


@example
def get_output_blocks():
    sch = Schedule(chain())
    sch.get_output_blocks("root")
    return sch


@example
def enter_postproc():
    sch = Schedule(scale())
    sch.enter_postproc()
    return sch


# ---- loops

@example
def split():
    sch = Schedule(scale())
    sch.split(sch.get_loops("B")[0], [None, 4])
    return sch


@example
def fuse():
    sch = Schedule(matmul())
    sch.fuse(*sch.get_loops("C")[:2])
    return sch


@example
def reorder():
    sch = Schedule(matmul())
    i, _, k = sch.get_loops("C")
    sch.reorder(k, i)
    return sch


@example
def merge():
    sch = two_outputs()
    sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    return sch


@example
def loop_partition():
    sch = Schedule(scale())
    sch.loop_partition(sch.get_loops("B")[0], [2, None])
    return sch


@example
def parallel():
    sch = Schedule(scale())
    sch.parallel(sch.get_loops("B")[0])
    return sch


@example
def vectorize():
    sch = Schedule(scale())
    sch.vectorize(sch.get_loops("B")[0])
    return sch


@example
def unroll():
    sch = Schedule(scale())
    sch.unroll(sch.get_loops("B")[0])
    return sch


@example
def bind():
    sch = Schedule(scale())
    sch.bind(sch.get_loops("B")[0], "threadIdx.x")
    return sch


@example
def annotate():
    sch = Schedule(scale())
    sch.annotate("B", "layout", [1, "rows"])
    return sch


@example
def unannotate():
    sch = Schedule(scale())
    loop, = sch.get_loops("B")
    sch.annotate(loop, "first", 1)
    sch.annotate(loop, "second", 2)
    sch.unannotate(loop, "first")
    return sch


@example
def prefetch():
    sch = Schedule(matmul())
    sch.prefetch("C", 1, sch.get_loops("C")[2], 2)
    return sch


# ---- blocks

@example
def reorder_block_iter_var():
    sch = Schedule(matmul())
    sch.reorder_block_iter_var("C", [2, 0, 1])
    return sch


@example
def add_unit_loop():
    sch = Schedule(scale())
    sch.add_unit_loop("B")
    return sch


@example
def transform_block_layout():
    sch = transposed()
    sch.transform_block_layout("C", lambda i, j: (i * 6 + j,))
    return sch


@example
def blockize():
    sch = Schedule(scale(12))
    sch.blockize(sch.split(sch.get_loops("B")[0], [3, 4])[1])
    return sch


@example
def tensorize():
    x = te.placeholder((4,), "int32", name="X")
    y = te.compute((4,), lambda i: x[i] * 3, name="Y")
    intrin = te.decl_tensor_intrin(y.op, lambda ins, outs: te.call_packed("triple", ins[0], outs[0])).compute
    TensorIntrin.register("test.example_triple", intrin.desc, intrin.impl, override=True)
    sch = Schedule(scale(12))
    sch.tensorize(sch.split(sch.get_loops("B")[0], [3, 4])[1], "test.example_triple")
    return sch


@example
def compute_at():
    sch = Schedule(stencil())
    sch.compute_at("B", sch.split(sch.get_loops("C")[0], [5, 4])[0])
    return sch


@example
def reverse_compute_at():
    sch = Schedule(matmul_relu())
    sch.reverse_compute_at("D", sch.get_loops("C")[0])
    return sch


@example
def compute_inline():
    sch = Schedule(stencil())
    sch.compute_inline("B")
    return sch


@example
def reverse_compute_inline():
    sch = Schedule(chain())
    sch.reverse_compute_inline("C")
    return sch


# ---- reductions

@example
def decompose_reduction():
    sch = Schedule(matmul())
    sch.decompose_reduction("C", sch.get_loops("C")[1])
    return sch


@example
def rfactor():
    sch = row_sums()
    sch.rfactor(sch.split(sch.get_loops("B")[1], [3, 4])[1], 0)
    return sch


@example
def pad_einsum():
    sch = Schedule(matmul(4, 6, 5))
    sch.pad_einsum("C", [1, 4, 4])
    return sch


@example
def decompose_padding():
    sch = padded()
    sch.decompose_padding("P", sch.get_loops("P")[0])
    return sch


# ---- buffers

@example
def cache_read():
    sch = Schedule(matmul())
    sch.cache_read("C", "A", "local")
    return sch


@example
def cache_write():
    sch = Schedule(matmul())
    sch.cache_write("C", 0, "local")
    return sch


@example
def cache_inplace():
    sch = Schedule(matmul())
    sch.decompose_reduction("C", sch.get_loops("C")[0])
    sch.cache_inplace("C_update", "C", "local")
    return sch


@example
def cache_index():
    a = te.placeholder((30,), "int32", name="A")
    sch = Schedule(create_prim_func([a, te.compute((8, 4), lambda i, j: a[i // 2 + j * 3], name="B")]))
    sch.cache_index("B", "global")
    return sch


@example
def reindex():
    sch = transposed()
    sch.reindex("C", ("read", 0))
    return sch


@example
def reindex_cache_read():
    sch = transposed()
    sch.reindex_cache_read("C", "A", "local", lambda i, j: (j // 2, i, j % 2))
    return sch


@example
def reindex_cache_write():
    sch = Schedule(matmul())
    sch.reindex_cache_write("C", 0, "local", lambda i, j, k: (j // 2, i, j % 2))
    return sch


@example
def rolling_buffer():
    sch = Schedule(stencil())
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.rolling_buffer("B", 0)
    return sch


@example
def transform_layout():
    sch = Schedule(stencil())
    sch.transform_layout("B", ("write", 0), lambda i, j: (j // 2, i, j % 2))
    return sch


@example
def set_scope():
    sch = Schedule(chain())
    sch.set_scope("B", 0, "local")
    return sch


@example
def unsafe_set_dtype():
    sch = Schedule(chain())
    sch.unsafe_set_dtype("B", 0, "int64")
    return sch


@example
def read_at():
    sch = Schedule(chain())
    outer, _ = sch.split(sch.get_loops("C")[0], [None, 5])
    sch.read_at(outer, "C", 0, "local")
    return sch


@example
def write_at():
    sch = Schedule(chain())
    outer, _ = sch.split(sch.get_loops("B")[0], [None, 5])
    sch.write_at(outer, "B", 0, "local")
    return sch


@example
def storage_align():
    sch = Schedule(stencil())
    sch.storage_align("B", 0, 0, 8, 1)
    return sch


@example
def set_axis_separator():
    sch = Schedule(stencil())
    sch.set_axis_separator("B", ("write", 0), [1])
    return sch


# ---- choices

@example
def sample_categorical():
    sch = Schedule(scale())
    sch.sample_categorical([1, 2, 5], [0.2, 0.5, 0.3], decision=2)
    return sch


@example
def sample_perfect_tile():
    sch = Schedule(scale(64))
    sch.sample_perfect_tile(sch.get_loops("B")[0], 2, decision=[8, 8])
    return sch


@example
def sample_partitioned_tile():
    sch = Schedule(scale(64))
    sch.sample_partitioned_tile(sch.get_loops("B")[0], 3, 1, 4, decision=[8, 2, 4])
    return sch


@example
def sample_compute_location():
    sch = Schedule(chain())
    sch.sample_compute_location("B", decision=0)
    return sch
