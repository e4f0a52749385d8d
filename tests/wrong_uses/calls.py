"""Wrong calls of compiled functions: refused before anything is written."""
from __future__ import annotations

import numpy as np

import tilewright as tw
from tilewright.script import from_source

from .programs import N, callback_kernel, gather_kernel, matmul_kernel, placeholders, scale_kernel, shift_kernel, zeros
from .wrong_use import Section, watch

SECTION = Section("Calls of compiled functions")
wrong = SECTION.wrong


def call(*, a=Ellipsis, b=Ellipsis, c=Ellipsis, more=()):
    """matmul(a, b, c) with zeros for what is not given; the output is watched"""
    arrays = [zeros(N, N) if x is Ellipsis else x for x in (a, b, c)]
    if isinstance(arrays[2], (np.ndarray, tw.Tensor)):
        watch(arrays[2])
    matmul_kernel()(*arrays, *more)


@wrong("too few arguments",
       r"matmul: num_args is 2, expected 3")
def too_few():
    matmul_kernel()(zeros(N, N), watch(zeros(N, N)))


@wrong("too many arguments",
       r"matmul: num_args is 4, expected 3")
def too_many():
    call(more=(zeros(N, N),))


@wrong("a parameter name that there is not: `f(a, b, D=c)`",
       r"matmul: there is no parameter 'D'")
def unknown_name():
    matmul_kernel()(zeros(N, N), zeros(N, N), D=watch(zeros(N, N)))


@wrong("an argument by position and by name: `f(a, b, B=b, C=c)`",
       r"matmul: argument B is given twice, by position and by name")
def twice():
    matmul_kernel()(zeros(N, N), zeros(N, N), B=zeros(N, N), C=watch(zeros(N, N)))


@wrong("arguments by name, one of them forgotten: `f(A=a, C=c)`",
       r"matmul: argument B is not given")
def forgotten_name():
    matmul_kernel()(A=zeros(N, N), C=watch(zeros(N, N)))


@wrong("arguments by name, several of them forgotten: `f(A=a)`",
       r"matmul: arguments B, C are not given")
def forgotten_names():
    matmul_kernel()(A=zeros(N, N))


@wrong("arguments by name for a registered Python function",
       r"tests\.named: there is no parameter 'x'")
def names_of_a_callback():
    tw.register_func("tests.named", lambda x: x, override=True)
    tw.get_global_func("tests.named")(x=1)


@wrong("None as a tensor",
       r"matmul: argument B is None, expected a tensor of float32")
def none():
    call(b=None)


@wrong("a list as a tensor",
       r"matmul: argument A is of type list, expected a tensor of float32")
def a_list():
    call(a=[[0.0] * N] * N)


@wrong("a number as a tensor",
       r"matmul: argument A is of type float, expected a tensor of float32")
def a_number():
    call(a=1.0)


@wrong("a string as a tensor",
       r"matmul: argument A is of type str, expected a tensor of float32")
def a_string():
    call(a="A")


@wrong("a tensor expression as a tensor",
       r"matmul: argument A is of type tilewright\.te\.tensor\.Tensor, expected a tensor of float32")
def an_expression():
    call(a=placeholders()[0])


@wrong("another extent",
       r"matmul: argument B\.shape\[0\] is 17, expected 16 \(constraint B\.shape\[0\] == 16\)")
def extent():
    call(b=zeros(N + 1, N))


@wrong("another rank",
       r"matmul: argument B\.ndim is 1, expected 2")
def rank():
    call(b=zeros(N * N))


@wrong("an array of no elements",
       r"matmul: argument B\.shape\[0\] is 0, expected 16 \(constraint B\.shape\[0\] == 16\)")
def no_elements():
    call(b=zeros(0, N))


@wrong("another dtype: float64",
       r"matmul: argument B\.dtype is float64, expected float32")
def dtype():
    call(b=zeros(N, N, dtype="float64"))


@wrong("an output of another dtype: int32",
       r"matmul: argument C\.dtype is int32, expected float32")
def output_dtype():
    call(c=zeros(N, N, dtype="int32"))


@wrong("float32 of the other byte order",
       r"matmul: argument B\.dtype is >f4 \(>f4\), expected float32")
def byte_order():
    call(b=zeros(N, N, dtype=">f4"))


@wrong("an array of Python objects",
       r"matmul: argument B\.dtype is \|O \(object\), expected float32")
def objects():
    call(b=np.full((N, N), None))


@wrong("complex numbers",
       r"matmul: argument B\.dtype is \(dtype code 5, 64 bits\), expected float32")
def complex_numbers():
    call(b=zeros(N, N, dtype="complex64"))


@wrong("a structured array",
       r"matmul: argument B\.dtype is \|V4 \(\[\('x', '<f4'\)\]\), expected float32")
def structured():
    call(b=zeros(N, N, dtype=[("x", "f4")]))


@wrong("dates",
       r"matmul: argument B\.dtype is <M8\[s\] \(datetime64\[s\]\), expected float32")
def dates():
    call(b=zeros(N, N, dtype="datetime64[s]"))


@wrong("a transposed array",
       r"matmul: argument B is not contiguous: strides \(1, 16\), expected \(16, 1\) in elements")
def transposed():
    call(b=np.arange(N * N, dtype="float32").reshape(N, N).T)


@wrong("every second column of an array",
       r"matmul: argument C is not contiguous: strides \(32, 2\), expected \(16, 1\) in elements")
def strided():
    call(c=zeros(N, 2 * N)[:, ::2])


@wrong("a reversed array",
       r"matmul: argument A is not contiguous: strides \(-16, 1\), expected \(16, 1\) in elements")
def reversed_rows():
    call(a=zeros(N, N)[::-1])


@wrong("a read-only array as the output",
       r"matmul: argument C is a read-only NumPy array, expected one that can be written: the function stores")
def read_only():
    c = zeros(N, N)
    c.flags.writeable = False
    call(c=c)


@wrong("a broadcast array as the output",
       r"matmul: argument C is a read-only NumPy array, expected one that can be written: the function stores")
def broadcast_output():
    call(c=np.broadcast_to(np.float32(0), (N, N)))


@wrong("an array whose address is not a multiple of its element size",
       r"matmul: argument B\.data is at address")
def misaligned():
    call(b=np.zeros(N * N * 4 + 1, "uint8")[1:].view("float32").reshape(N, N))


@wrong("arguments that disagree about a symbolic extent",
       r"scale: argument C\.shape\[0\] is 8, expected 7 \(constraint C\.shape\[0\] == n, n = A\.shape\[0\]\)")
def symbolic_mismatch():
    scale_kernel()(zeros(7), watch(zeros(8)), 2.0)


@wrong("a string as a scalar",
       r"scale: argument factor is a string, expected a number of type float32")
def scalar_is_string():
    scale_kernel()(zeros(7), watch(zeros(7)), "2")


@wrong("None as a scalar",
       r"scale: argument factor is None, expected a number of type float32")
def scalar_is_none():
    scale_kernel()(zeros(7), watch(zeros(7)), None)


@wrong("an array as a scalar",
       r"scale: argument factor is a tensor, expected a number of type float32")
def scalar_is_array():
    scale_kernel()(zeros(7), watch(zeros(7)), zeros(1))


@wrong("a complex number as a scalar",
       r"scale: argument factor is an object that is neither a tensor nor a number, expected a number of type")
def scalar_is_complex():
    scale_kernel()(zeros(7), watch(zeros(7)), 1j)


@wrong("the output overlaps an input that is read at other places",
       r"matmul: argument C overlaps argument A in memory, expected memory of its own: it is written")
def overlap():
    memory = zeros(2 * N, N)
    call(a=memory[:N], c=watch(memory)[1:N + 1])


@wrong("the output is the input of a matrix product: `f(a, b, a)`",
       r"matmul: argument C overlaps argument A in memory, expected memory of its own: it is written")
def in_place():
    a = watch(zeros(N, N))
    matmul_kernel()(a, zeros(N, N), a)


@wrong("arrays whose sizes let a script write behind one of them",
       r"f: B\[i\] is out of bounds: index 0 runs from 0 to n - 1, the extent is m \(n <= m does not hold\)")
def too_small_for_a_script():
    f = tw.build(from_source(
        "@T.prim_func\ndef f(a: T.handle, b: T.handle):\n    n, m = T.int32(), T.int32()\n"
        "    A = T.match_buffer(a, (n,), 'float32')\n    B = T.match_buffer(b, (m,), 'float32')\n"
        "    for i in range(n):\n        B[i] = A[i]\n"))
    f(zeros(20), zeros(16))


@wrong("an extent that is a variable of its own is too small for the reads",
       r"copy: the index i = \d+ of A is outside of its extent m = \d+")
def short_input():
    shift_kernel()(zeros(3), zeros(5))


@wrong("an index in an array that lies outside of the rows",
       r"gather: the index I_1\[i\] = 4 of T is outside of its extent 4")
def gather_outside():
    gather_kernel()(zeros(4, 6), np.array([0, 1, 4], "int32"), zeros(3, 6))


@wrong("an index in an array that is negative",
       r"gather: the index I_1\[i\] = -1 of T is outside of its extent 4")
def gather_negative():
    gather_kernel()(zeros(4, 6), np.array([0, -1, 3], "int32"), zeros(3, 6))


@wrong("a callback that is not registered",
       r"fill: no packed function 'wrong_uses\.nobody' is registered")
def missing_callback():
    callback_kernel()(zeros(4), zeros(4))


@wrong("an array of text made a tensor: `tw.nd.array([\"a\"])`",
       r"an array of <U1 cannot become a tensor")
def tensor_of_text():
    tw.nd.array(["a"])


@wrong("a ragged list made a tensor",
       r"list is not an array of numbers: setting an array element with a sequence\. The requested array has an")
def tensor_of_ragged():
    tw.nd.array([[1.0], [1.0, 2.0]])


@wrong("`tw.nd.empty((-1,))`",
       r"the shape \(-1,\) has a negative extent")
def empty_negative():
    tw.nd.empty((-1,))


@wrong("`tw.nd.empty((2.5,))`",
       r"the shape \(2\.5,\) is not a tuple of integers")
def empty_float():
    tw.nd.empty((2.5,))


@wrong("`tw.nd.empty((2**62,))`: more memory than there is",
       r"a tensor of shape \(4611686018427387904,\) and float32 needs 18446744073709551616 bytes, which cannot")
def empty_huge():
    tw.nd.empty((2**62,))


@wrong("`tw.nd.empty((4,), \"float12\")`",
       r"'float12' is not a dtype")
def empty_dtype():
    tw.nd.empty((4,), "float12")


@wrong("`tw.nd.empty((4,), \"float32x4\")`: a vector dtype",
       r"float32x4 is a vector type, which NumPy has not")
def empty_vector():
    tw.nd.empty((4,), "float32x4")


@wrong("`t.copyfrom` of another shape",
       r"copyfrom: the source has shape \(5,\), this tensor \(4,\)")
def copy_shape():
    watch(tw.nd.array(zeros(4))).copyfrom(zeros(5))


@wrong("`float(t)` of several elements",
       r"a tensor of shape \(4,\) is not one number")
def several_as_number():
    float(tw.nd.array(zeros(4)))


@wrong("`t[9]` outside the tensor",
       r"9 of a tensor of shape \(4,\): index 9 is out of bounds for axis 0 with size 4")
def element_outside():
    tw.nd.array(zeros(4))[9]


@wrong("`t[0] = \"x\"`",
       r"0 of a tensor of shape \(4,\) and float32: could not convert string to float: 'x'")
def element_text():
    watch(tw.nd.array(zeros(4)))[0] = "x"


@wrong("`tw.set_num_threads(-1)`",
       r"set_num_threads\(-1\)")
def negative_threads():
    tw.set_num_threads(-1)


@wrong("`tw.get_global_func(\"nobody\")`",
       r"there is no global function 'nobody'")
def unknown_global():
    tw.get_global_func("nobody")


@wrong("`tw.register_func(\"f\", 3)`",
       r"register_func\('wrong_uses\.number'\): 3 is not a function")
def register_number():
    tw.register_func("wrong_uses.number", 3)


@wrong("`tw.register_func` of a taken name",
       r"there is a global function 'wrong_uses\.taken' already")
def register_twice():
    tw.register_func("wrong_uses.taken", print, override=True)
    tw.register_func("wrong_uses.taken", print)
