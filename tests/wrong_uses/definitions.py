"""Wrong tensor expressions: refused where they are written."""
from __future__ import annotations

import numpy as np

from tilewright import te

from .programs import N, placeholders
from .wrong_use import Section

SECTION = Section("Tensor expressions")
wrong = SECTION.wrong


@wrong("`te.sum(...) + 1`: a reduction inside an expression", "")
def nested_reduction():
    a, _ = placeholders()
    k = te.reduce_axis((0, N), name="k")
    te.compute((N,), lambda i: te.sum(a[i, k], axis=k) + 1.0, name="C")


@wrong("`te.compute((16, 16), lambda i: ...)`: fewer parameters than dimensions", "")
def lambda_arity():
    a, _ = placeholders()
    te.compute((N, N), lambda i: a[i, i], name="C")


@wrong("`A[i]` of a matrix used as a number", "")
def too_few_indices():
    a, _ = placeholders()
    te.compute((N,), lambda i: a[i] + 1.0, name="C")


@wrong("`A[i, j, k]` of a matrix", "")
def too_many_indices():
    a, _ = placeholders()
    te.compute((N,), lambda i: a[i, i, i], name="C")


@wrong("a tensor used as a number: `A + 1.0`", "")
def tensor_as_number():
    a, _ = placeholders()
    te.compute((N,), lambda i: a + 1.0, name="C")


@wrong("a float as an index: `A[i * 0.5, 0]`", "")
def float_index():
    a, _ = placeholders()
    te.compute((N,), lambda i: a[i * 0.5, 0], name="C")


@wrong("a slice as an index: `A[i, 0:4]`", "")
def slice_index():
    a, _ = placeholders()
    te.compute((N,), lambda i: a[i, 0:4], name="C")


@wrong("a constant index outside the shape: `A[16, j]`", "")
def constant_index_outside():
    a, _ = placeholders()
    te.compute((N,), lambda j: a[N, j], name="C")


@wrong("an index that runs outside the shape: `A[i + 1, 0]` for i up to 16", "")
def index_runs_outside():
    a, _ = placeholders()
    c = te.compute((N,), lambda i: a[i + 1, 0], name="C")
    te.create_prim_func([a, c])


@wrong("a Python `if` on an expression", "")
def python_if():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: a[i, j] if a[i, j] > 0.0 else 0.0, name="C")


@wrong("`and` between conditions", "")
def python_and():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: te.if_then_else(i > 2 and j > 2, a[i, j], 0.0), name="C")


@wrong("a chained comparison: `0 < i < 4`", "")
def chained_comparison():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: te.if_then_else(0 < i < 4, a[i, j], 0.0), name="C")


@wrong("int32 and float32 tensors of different kinds mixed where no promotion is defined: `f32 + f16`'s bits `&`", "")
def bitwise_of_floats():
    a, b = placeholders()
    te.compute((N, N), lambda i, j: a[i, j] & b[i, j], name="C")


@wrong("int8 + uint8", "")
def mixed_signs():
    a, b = te.placeholder((N,), "int8", name="A"), te.placeholder((N,), "uint8", name="B")
    te.compute((N,), lambda i: a[i] + b[i], name="C")


@wrong("float16 + bfloat16", "")
def mixed_halves():
    a, b = te.placeholder((N,), "float16", name="A"), te.placeholder((N,), "bfloat16", name="B")
    te.compute((N,), lambda i: a[i] + b[i], name="C")


@wrong("`te.exp` of an integer", "")
def exp_of_integer():
    a = te.placeholder((N,), "int32", name="A")
    te.compute((N,), lambda i: te.exp(a[i]), name="C")


@wrong("a dtype that does not exist: `float33`", "")
def unknown_dtype():
    te.placeholder((N,), "float33", name="A")


@wrong("a dtype that is not a string or type: `dtype=7`", "")
def dtype_is_a_number():
    te.placeholder((N,), 7, name="A")


@wrong("a negative extent", "")
def negative_extent():
    te.placeholder((N, -1), name="A")


@wrong("a float as an extent", "")
def float_extent():
    te.placeholder((N, 2.5), name="A")


@wrong("`None` as an extent", "")
def none_extent():
    te.placeholder((N, None), name="A")


@wrong("a string as an extent", "")
def string_extent():
    te.placeholder(("n",), name="A")


@wrong("an extent that no int64 holds: `2**70`", "")
def huge_extent():
    te.placeholder((2**70,), name="A")


@wrong("a literal that the dtype does not hold: `int8 + 1000`", "")
def literal_does_not_fit():
    a = te.placeholder((N,), "int8", name="A")
    te.compute((N,), lambda i: a[i] + 1000, name="C")


@wrong("`te.sum(x, axis=i)` over a spatial axis", "")
def sum_over_spatial_axis():
    a, _ = placeholders()
    c = te.compute((N, N), lambda i, j: a[i, j], name="C")
    te.compute((N,), lambda i: te.sum(a[i, 0], axis=c.op.axis[0]), name="D")


@wrong("`te.sum(x, axis=0)`: a number as an axis", "")
def sum_over_number():
    a, _ = placeholders()
    te.compute((N,), lambda i: te.sum(a[i, 0], axis=0), name="C")


@wrong("`te.sum(x)` without an axis", "")
def sum_without_axis():
    a, _ = placeholders()
    te.compute((N,), lambda i: te.sum(a[i, 0]), name="C")


@wrong("one reduction axis given twice", "")
def axis_twice():
    a, _ = placeholders()
    k = te.reduce_axis((0, N), name="k")
    te.compute((N,), lambda i: te.sum(a[i, k], axis=[k, k]), name="C")


@wrong("a reduction axis outside its reduction", "")
def axis_escapes():
    a, _ = placeholders()
    k = te.reduce_axis((0, N), name="k")
    te.compute((N,), lambda i: a[i, k], name="C")


@wrong("a reduction axis that ends before it begins", "")
def empty_reduction_range():
    te.reduce_axis((4, 0), name="k")


@wrong("a reduction axis of one number: `te.reduce_axis(16)`", "")
def reduction_range_is_a_number():
    te.reduce_axis(16, name="k")


@wrong("a combiner that changes the dtype", "")
def combiner_changes_dtype():
    a, _ = placeholders()
    k = te.reduce_axis((0, N), name="k")
    weird = te.comm_reducer(lambda x, y: (x + y).astype("float64"), lambda dtype: te.const(0, dtype), name="weird")
    te.compute((N,), lambda i: weird(a[i, k], axis=k), name="C")


@wrong("a function that returns None", "")
def body_is_none():
    te.compute((N,), lambda i: None, name="C")


@wrong("a function that returns an array", "")
def body_is_array():
    te.compute((N,), lambda i: np.zeros(3), name="C")


@wrong("a body that is no function: `te.compute((16,), 1.0)`", "")
def body_is_number():
    te.compute((N,), 1.0, name="C")


@wrong("a string where an expression is expected", "")
def string_operand():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: a[i, j] + "1", name="C")


@wrong("a tensor that is no number in a sum of Python's: `sum(A)`", "")
def iterate_tensor():
    a, _ = placeholders()
    sum(a)


@wrong("branches of different kinds: `te.if_then_else(c, 1.0, True)` on strings", "")
def branch_is_string():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: te.if_then_else(a[i, j] > 0.0, "yes", 0.0), name="C")


@wrong("a number as a condition: `te.if_then_else(A[i, j], ...)`", "")
def condition_is_float():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: te.if_then_else(a[i, j], 1.0, 0.0), name="C")


@wrong("`te.create_schedule(16)`", "")
def schedule_of_number():
    te.create_schedule(16)


@wrong("an unknown thread axis: `te.thread_axis(\"threadIdx.w\")`", "")
def unknown_thread_axis():
    te.thread_axis("threadIdx.w")


@wrong("a cast to a dtype that does not exist", "")
def cast_to_unknown():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: a[i, j].astype("floaty"), name="C")


@wrong("a shape of an expression of floats", "")
def shape_of_float_variable():
    n = te.var("n", "float32")
    te.placeholder((n,), name="A")


@wrong("division by the constant 0: `i // 0`", "")
def division_by_zero():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: a[i // 0, j], name="C")


@wrong("shift by more bits than there are: `x << 40` of int32", "")
def shift_too_far():
    a = te.placeholder((N,), "int32", name="A")
    te.compute((N,), lambda i: a[i] << 40, name="C")


@wrong("`te.extern` whose function returns a number", "")
def extern_gives_number():
    a, _ = placeholders()
    te.extern((N, N), [a], lambda ins, outs: 3, name="C")


@wrong("`te.extern` with an array as input", "")
def extern_of_array():
    te.extern((N, N), [np.zeros((N, N))], lambda ins, outs: te.call_packed("f", ins[0], outs[0]), name="C")


@wrong("an infinite nested type: `te.compute` with a tuple of different reductions", "")
def different_reductions():
    a, _ = placeholders()
    k = te.reduce_axis((0, N), name="k")
    te.compute((N,), lambda i: (te.sum(a[i, k], axis=k), te.max(a[i, k], axis=k)), name="C")
