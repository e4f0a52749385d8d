"""Wrong tensor expressions: refused where they are written."""
from __future__ import annotations

import numpy as np

from tilewright import te
from tilewright.tir import decl_buffer

from .programs import N, placeholders
from .wrong_use import Section

SECTION = Section("Tensor expressions")
wrong = SECTION.wrong


@wrong("`te.sum(...) + 1`: a reduction inside an expression",
       r"compute C: Reductions are only allowed at the top level of compute\. Please create another tensor for")
def nested_reduction():
    a, _ = placeholders()
    k = te.reduce_axis((0, N), name="k")
    te.compute((N,), lambda i: te.sum(a[i, k], axis=k) + 1.0, name="C")


@wrong("`te.compute((16, 16), lambda i: ...)`: fewer parameters than dimensions",
       r"compute C: the shape \(16, 16\) has 2 dimension\(s\), the function takes 1 argument\(s\)")
def lambda_arity():
    a, _ = placeholders()
    te.compute((N, N), lambda i: a[i, i], name="C")


@wrong("`A[i]` of a matrix used as a number",
       r"A has 2 dimension\(s\), 1 index\(es\) given")
def too_few_indices():
    a, _ = placeholders()
    te.compute((N,), lambda i: a[i] + 1.0, name="C")


@wrong("`A[i, j, k]` of a matrix",
       r"A has 2 dimension\(s\), 3 index\(es\) given")
def too_many_indices():
    a, _ = placeholders()
    te.compute((N,), lambda i: a[i, i, i], name="C")


@wrong("tensors whose shapes do not fit: `A + B`",
       r"A \+ B: the shapes \(16, 16\) and \(3, 16\) do not fit: 16 is neither 3 nor 1")
def shapes_that_do_not_fit():
    a, _ = placeholders()
    _ = a + te.placeholder((3, N), name="B")


@wrong("too few names for the axes of `lambda i, *rest`", r"compute C: \['x'\] has 1 name\(s\), 2 are needed")
def too_few_names():
    te.compute((N, N, N), lambda i, *rest: 1.0, name="C", varargs_names=["x"])


@wrong("a tensor used as a number: `A + 1.0`",
       r"tensor T_add of shape \(16, 16\) is used as a number")
def tensor_as_number():
    a, _ = placeholders()
    te.compute((N,), lambda i: a + 1.0, name="C")


@wrong("a float as an index: `A[i * 0.5, 0]`",
       r"index 0 is float32, not an integer")
def float_index():
    a, _ = placeholders()
    te.compute((N,), lambda i: a[i * 0.5, 0], name="C")


@wrong("a string as an index: `A[\"a\", 0]`",
       r"A: an index is an integer, not the string 'a'")
def index_is_text():
    a, _ = placeholders()
    a["a", 0]


@wrong("a string as an index of a buffer: `B[\"a\"]`",
       r"B: an index is an integer, not the string 'a'")
def index_of_buffer_is_text():
    decl_buffer((8,), "float32", "B")["a"]


@wrong("an element of a buffer that Python stores: `B[0] = 1`",
       r"an element of B is stored by Python, and not in a script")
def stored_by_python():
    decl_buffer((8,), "float32", "B")[0] = 1


@wrong("a slice as an index: `A[i, 0:4]`",
       r"A: index 1 is a slice")
def slice_index():
    a, _ = placeholders()
    te.compute((N,), lambda i: a[i, 0:4], name="C")


@wrong("a constant index outside the shape: `A[16, j]`",
       r"A: index 16 of dimension 0 is outside the shape \(16, 16\)")
def constant_index_outside():
    a, _ = placeholders()
    te.compute((N,), lambda j: a[N, j], name="C")


@wrong("an index that runs outside the shape: `A[i + 1, 0]` for i up to 16",
       r"compute C: A\[i \+ 1, 0\]: index 0 runs from 1 to 16, outside of the shape \(16, 16\) of A")
def index_runs_outside():
    a, _ = placeholders()
    te.compute((N,), lambda i: a[i + 1, 0], name="C")


@wrong("a symbolic index that runs outside the shape: `A[i + 1]` for i up to n",
       r"compute C: A\[i \+ 1\]: index 0 runs from 1 to n, outside of the shape \(n,\) of A")
def symbolic_index_runs_outside():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    te.compute((n,), lambda i: a[i + 1] - a[i], name="C")


@wrong("a Python `if` on an expression",
       r"an expression has no truth value while the program is being written \(`and`, `or`, `not`, `if`, `a < b")
def python_if():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: a[i, j] if a[i, j] > 0.0 else 0.0, name="C")


@wrong("`and` between conditions",
       r"an expression has no truth value while the program is being written \(`and`, `or`, `not`, `if`, `a < b")
def python_and():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: te.if_then_else(i > 2 and j > 2, a[i, j], 0.0), name="C")


@wrong("a chained comparison: `0 < i < 4`",
       r"an expression has no truth value while the program is being written \(`and`, `or`, `not`, `if`, `a < b")
def chained_comparison():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: te.if_then_else(0 < i < 4, a[i, j], 0.0), name="C")


@wrong("`&` of floats",
       r"`&` needs integers, got float32")
def bitwise_of_floats():
    a, b = placeholders()
    te.compute((N, N), lambda i, j: a[i, j] & b[i, j], name="C")


@wrong("int8 + uint8",
       r"operands are int8 and uint8, which do not promote to a common type")
def mixed_signs():
    a, b = te.placeholder((N,), "int8", name="A"), te.placeholder((N,), "uint8", name="B")
    te.compute((N,), lambda i: a[i] + b[i], name="C")


@wrong("float16 + bfloat16",
       r"operands are float16 and bfloat16, which do not promote to a common type")
def mixed_halves():
    a, b = te.placeholder((N,), "float16", name="A"), te.placeholder((N,), "bfloat16", name="B")
    te.compute((N,), lambda i: a[i] + b[i], name="C")


@wrong("`te.exp` of an integer",
       r"exp of int32")
def exp_of_integer():
    a = te.placeholder((N,), "int32", name="A")
    te.compute((N,), lambda i: te.exp(a[i]), name="C")


@wrong("a dtype that does not exist: `float33`",
       r"'float33' is not a dtype")
def unknown_dtype():
    te.placeholder((N,), "float33", name="A")


@wrong("an extent of uint8",
       r"placeholder A: extent 0 of shape \(n, 4\) is n, of type uint8: a size is an int32 or int64")
def shape_of_uint8():
    n = te.var("n", "uint8")
    te.placeholder((n, 4), name="A")


@wrong("a reduction to a bound of uint64",
       r"reduce_axis k: the range \(0, n\) has the bound n, of type uint64: a size is an int32 or int64")
def reduction_to_uint64():
    te.reduce_axis((0, te.var("n", "uint64")), name="k")


@wrong("a dtype that is not a string or type: `dtype=7`",
       r"7 is not a dtype")
def dtype_is_a_number():
    te.placeholder((N,), 7, name="A")


@wrong("a negative extent",
       r"placeholder A: extent 1 of shape \(16, -1\) is -1, not a natural number")
def negative_extent():
    te.placeholder((N, -1), name="A")


@wrong("a float as an extent",
       r"placeholder A: extent 1 of shape \(16, 2\.5\) is 2\.5, not an integer")
def float_extent():
    te.placeholder((N, 2.5), name="A")


@wrong("`None` as an extent",
       r"placeholder A: extent 1 of shape \(16, None\) is None, not an integer")
def none_extent():
    te.placeholder((N, None), name="A")


@wrong("a string as an extent",
       r"placeholder A: extent 0 of shape \('n',\) is 'n', not an integer")
def string_extent():
    te.placeholder(("n",), name="A")


@wrong("an extent that no int64 holds: `2**70`",
       r"the constant 1180591620717411303424 does not fit int64 \(-9223372036854775808 to 9223372036854775807\)")
def huge_extent():
    te.placeholder((2**70,), name="A")


@wrong("a literal that the dtype does not hold: `int8 + 1000`",
       r"the constant 1000 does not fit int8 \(-128 to 127\)")
def literal_does_not_fit():
    a = te.placeholder((N,), "int8", name="A")
    te.compute((N,), lambda i: a[i] + 1000, name="C")


@wrong("`te.sum(x, axis=i)` over a spatial axis",
       r"sum: axis i is not a reduction axis")
def sum_over_spatial_axis():
    a, _ = placeholders()
    c = te.compute((N, N), lambda i, j: a[i, j], name="C")
    te.compute((N,), lambda i: te.sum(a[i, 0], axis=c.op.axis[0]), name="D")


@wrong("`te.sum(x, axis=0)`: a number as an axis",
       r"sum: axis 0 is not a reduction axis")
def sum_over_number():
    a, _ = placeholders()
    te.compute((N,), lambda i: te.sum(a[i, 0], axis=0), name="C")


@wrong("`te.sum(x)` without an axis",
       r"sum: expected an expression and a reduction axis")
def sum_without_axis():
    a, _ = placeholders()
    te.compute((N,), lambda i: te.sum(a[i, 0]), name="C")


@wrong("one reduction axis given twice",
       r"sum: the reduction axis k is given twice")
def axis_twice():
    a, _ = placeholders()
    k = te.reduce_axis((0, N), name="k")
    te.compute((N,), lambda i: te.sum(a[i, k], axis=[k, k]), name="C")


@wrong("a reduction axis outside its reduction",
       r"compute C: the reduction axis k is used outside a reduction over it")
def axis_escapes():
    a, _ = placeholders()
    k = te.reduce_axis((0, N), name="k")
    te.compute((N,), lambda i: a[i, k], name="C")


@wrong("a reduction axis that ends before it begins",
       r"reduce_axis: the range \(4, 0\) ends before it begins")
def empty_reduction_range():
    te.reduce_axis((4, 0), name="k")


@wrong("a reduction axis of one number: `te.reduce_axis(16)`",
       r"reduce_axis: 16 is not a range")
def reduction_range_is_a_number():
    te.reduce_axis(16, name="k")


@wrong("a combiner that changes the dtype",
       r"weird: the combiner turns component 0 of float32 into float64")
def combiner_changes_dtype():
    a, _ = placeholders()
    k = te.reduce_axis((0, N), name="k")
    weird = te.comm_reducer(lambda x, y: (x + y).astype("float64"), lambda dtype: te.const(0, dtype), name="weird")
    te.compute((N,), lambda i: weird(a[i, k], axis=k), name="C")


@wrong("a function that returns None",
       r"compute C: the function returns None")
def body_is_none():
    te.compute((N,), lambda i: None, name="C")


@wrong("a function that returns an array",
       r"array\(\[0\., 0\., 0\.\]\) is not an expression")
def body_is_array():
    te.compute((N,), lambda i: np.zeros(3), name="C")


@wrong("a body that is no function: `te.compute((16,), 1.0)`",
       r"compute C: 1\.0 is not a function")
def body_is_number():
    te.compute((N,), 1.0, name="C")


@wrong("a string where an expression is expected",
       r"the operand '1' is a string, not a number or an expression")
def string_operand():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: a[i, j] + "1", name="C")


@wrong("a tensor as a sequence: Python's `sum(A)`",
       r"A is not a sequence")
def iterate_tensor():
    a, _ = placeholders()
    sum(a)


@wrong("a string as a branch of `te.if_then_else`",
       r"the operand 'yes' is a string, not a number or an expression")
def branch_is_string():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: te.if_then_else(a[i, j] > 0.0, "yes", 0.0), name="C")


@wrong("a number as a condition: `te.if_then_else(A[i, j], ...)`",
       r"if_then_else: the condition is float32")
def condition_is_float():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: te.if_then_else(a[i, j], 1.0, 0.0), name="C")


@wrong("`te.create_schedule(16)`",
       r"create_schedule: 16 is not an operation")
def schedule_of_number():
    te.create_schedule(16)


@wrong("an unknown thread axis: `te.thread_axis(\"threadIdx.w\")`",
       r"thread_axis: 'threadIdx\.w' is not a thread axis")
def unknown_thread_axis():
    te.thread_axis("threadIdx.w")


@wrong("a cast to a dtype that does not exist",
       r"'floaty' is not a dtype")
def cast_to_unknown():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: a[i, j].astype("floaty"), name="C")


@wrong("a float variable as an extent",
       r"placeholder A: extent 0 of shape \(n,\) is n, not a natural number")
def shape_of_float_variable():
    n = te.var("n", "float32")
    te.placeholder((n,), name="A")


@wrong("division by the constant 0: `i // 0`",
       r"`//` by the constant 0")
def division_by_zero():
    a, _ = placeholders()
    te.compute((N, N), lambda i, j: a[i // 0, j], name="C")


@wrong("`te.extern` whose function returns a number",
       r"extern C: the function gives 3, not a statement or a call")
def extern_gives_number():
    a, _ = placeholders()
    te.extern((N, N), [a], lambda ins, outs: 3, name="C")


@wrong("`te.extern` with an array as input",
       r"extern C: the input an object of type ndarray is not a tensor")
def extern_of_array():
    te.extern((N, N), [np.zeros((N, N))], lambda ins, outs: te.call_packed("f", ins[0], outs[0]), name="C")


@wrong("a tuple of different reductions",
       r"compute C: the outputs are not the components of one reduction")
def different_reductions():
    a, _ = placeholders()
    k = te.reduce_axis((0, N), name="k")
    te.compute((N,), lambda i: (te.sum(a[i, k], axis=k), te.max(a[i, k], axis=k)), name="C")


@wrong("more elements than addresses reach: `te.placeholder((2**40, 2**40))`",
       r"placeholder A: the shape \(T\.int64\(1099511627776\), T\.int64\(1099511627776\)\) has")
def too_many_elements():
    te.placeholder((2**40, 2**40), name="A")


@wrong("`create_prim_func([A, C], \"matmul\")`: the name in the place of the type of indices",
       r"create_prim_func: index_dtype_override is 'matmul', not int32 or int64")
def name_as_index_dtype():
    a = te.placeholder((4,), name="A")
    te.create_prim_func([a, te.compute((4,), lambda i: a[i], name="C")], "matmul")


def adder():
    """y = x + x of 4 elements, by a packed function"""
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + x[i], name="y")
    return te.decl_tensor_intrin(y.op, lambda ins, outs: te.call_packed("f", *ins, *outs), name="twice")


@wrong("a tensor intrinsic called with too many operands: `twice(A[0:4], A[4:8])`",
       r"the call of twice: 2 tensor\(s\) and 0 scalar\(s\) are given, 1 and 0 are needed")
def intrin_operands():
    a = te.placeholder((8,), name="A")
    te.compute((2, 4), lambda i: adder()(a[0:4], a[4:8]), name="C")


@wrong("a tensor intrinsic called with a part of another size: `twice(A[0:8])`",
       r"the call of twice: the part of A is float32\(8,\), and its operand x is float32\(4,\)")
def intrin_part():
    a = te.placeholder((8,), name="A")
    te.compute((2, 4), lambda i: adder()(a[0:8]), name="C")


@wrong("a tensor intrinsic whose result does not fill the shape",
       r"compute C: twice gives \(4,\), and \(8,\) is left of the shape \(2, 8\)")
def intrin_result():
    a = te.placeholder((8,), name="A")
    te.compute((2, 8), lambda i: adder()(a[0:4]), name="C")


@wrong("an index from data into an array of NumPy",
       r"index 0 of a constant is not known to stay inside of the shape \(4,\)")
def index_into_constant():
    window, index = te.constant([1.0, 2.0, 3.0, 4.0]), te.placeholder((4,), "int32", name="I")
    te.compute((4,), lambda i: window[index[i]], name="C")


@wrong("`te.constant(3.0)`", r"constant constant: 3\.0 is no array of numbers with dimensions")
def constant_number():
    te.constant(3.0)
