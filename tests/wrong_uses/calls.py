"""Wrong calls of compiled functions: refused before anything is written."""
from __future__ import annotations

import numpy as np

import tilewright as tw

from .programs import N, matmul_kernel, scale_kernel, zeros
from .wrong_use import Section, watch

SECTION = Section("Calls of compiled functions")
wrong = SECTION.wrong


def call(*, a=None, b=None, c=None, more=()):
    """matmul(a, b, c) with zeros for what is not given; the output is watched"""
    arrays = [zeros(N, N) if x is None else x for x in (a, b, c)]
    if isinstance(arrays[2], (np.ndarray, tw.Tensor)):
        watch(arrays[2])
    matmul_kernel()(*arrays, *more)


@wrong("too few arguments", "")
def too_few():
    matmul_kernel()(zeros(N, N), watch(zeros(N, N)))


@wrong("too many arguments", "")
def too_many():
    call(more=(zeros(N, N),))


@wrong("a keyword argument", "")
def keyword():
    matmul_kernel()(zeros(N, N), zeros(N, N), C=watch(zeros(N, N)))


@wrong("None as a tensor", "")
def none():
    call(b=None if False else _none())


def _none():
    return _Nothing


_Nothing = object()


@wrong("a list as a tensor", "")
def a_list():
    call(a=[[0.0] * N] * N)


@wrong("a number as a tensor", "")
def a_number():
    call(a=1.0)


@wrong("a string as a tensor", "")
def a_string():
    call(a="A")


@wrong("a tensor expression as a tensor", "")
def an_expression():
    from .programs import placeholders
    call(a=placeholders()[0])


@wrong("another extent", "")
def extent():
    call(b=zeros(N + 1, N))


@wrong("another rank", "")
def rank():
    call(b=zeros(N * N))


@wrong("an array of no elements", "")
def no_elements():
    call(b=zeros(0, N))


@wrong("another dtype: float64", "")
def dtype():
    call(b=zeros(N, N, dtype="float64"))


@wrong("an output of another dtype: int32", "")
def output_dtype():
    call(c=zeros(N, N, dtype="int32"))


@wrong("float32 of the other byte order", "")
def byte_order():
    call(b=zeros(N, N, dtype=">f4"))


@wrong("an array of Python objects", "")
def objects():
    call(b=np.full((N, N), None))


@wrong("complex numbers", "")
def complex_numbers():
    call(b=zeros(N, N, dtype="complex64"))


@wrong("a structured array", "")
def structured():
    call(b=zeros(N, N, dtype=[("x", "f4")]))


@wrong("dates", "")
def dates():
    call(b=zeros(N, N, dtype="datetime64[s]"))


@wrong("a transposed array", "")
def transposed():
    call(b=np.arange(N * N, dtype="float32").reshape(N, N).T)


@wrong("every second column of an array", "")
def strided():
    call(c=zeros(N, 2 * N)[:, ::2])


@wrong("a reversed array", "")
def reversed_rows():
    call(a=zeros(N, N)[::-1])


@wrong("a read-only array as the output", "")
def read_only():
    c = zeros(N, N)
    c.flags.writeable = False
    call(c=c)


@wrong("a broadcast array as the output", "")
def broadcast_output():
    call(c=np.broadcast_to(np.float32(0), (N, N)))


@wrong("an array whose address is not a multiple of its element size", "")
def misaligned():
    call(b=np.zeros(N * N * 4 + 1, "uint8")[1:].view("float32").reshape(N, N))


@wrong("arguments that disagree about a symbolic extent", "")
def symbolic_mismatch():
    scale_kernel()(zeros(7), watch(zeros(8)), 2.0)


@wrong("a string as a scalar", "")
def scalar_is_string():
    scale_kernel()(zeros(7), watch(zeros(7)), "2")


@wrong("None as a scalar", "")
def scalar_is_none():
    scale_kernel()(zeros(7), watch(zeros(7)), None)


@wrong("an array as a scalar", "")
def scalar_is_array():
    scale_kernel()(zeros(7), watch(zeros(7)), zeros(1))


@wrong("a complex number as a scalar", "")
def scalar_is_complex():
    scale_kernel()(zeros(7), watch(zeros(7)), 1j)


@wrong("the output overlaps an input that is read at other places", "")
def overlap():
    memory = zeros(2 * N, N)
    call(a=memory[:N], c=watch(memory)[1:N + 1])


@wrong("an array of text made a tensor: `tw.nd.array([\"a\"])`", "")
def tensor_of_text():
    tw.nd.array(["a"])


@wrong("a ragged list made a tensor", "")
def tensor_of_ragged():
    tw.nd.array([[1.0], [1.0, 2.0]])


@wrong("`tw.nd.empty((-1,))`", "")
def empty_negative():
    tw.nd.empty((-1,))


@wrong("`tw.nd.empty((2.5,))`", "")
def empty_float():
    tw.nd.empty((2.5,))


@wrong("`tw.nd.empty((2**62,))`: more memory than there is", "")
def empty_huge():
    tw.nd.empty((2**62,))


@wrong("`tw.nd.empty((4,), \"float12\")`", "")
def empty_dtype():
    tw.nd.empty((4,), "float12")


@wrong("`tw.nd.empty((4,), \"float32x4\")`: a vector dtype", "")
def empty_vector():
    tw.nd.empty((4,), "float32x4")


@wrong("`t.copyfrom` of another shape", "")
def copy_shape():
    watch(tw.nd.array(zeros(4))).copyfrom(zeros(5))


@wrong("`float(t)` of several elements", "")
def several_as_number():
    float(tw.nd.array(zeros(4)))


@wrong("`t[9]` outside the tensor", "")
def element_outside():
    tw.nd.array(zeros(4))[9]


@wrong("`t[0] = \"x\"`", "")
def element_text():
    watch(tw.nd.array(zeros(4)))[0] = "x"


@wrong("`tw.set_num_threads(-1)`", "")
def negative_threads():
    tw.set_num_threads(-1)


@wrong("`tw.get_global_func(\"nobody\")`", "")
def unknown_global():
    tw.get_global_func("nobody")


@wrong("`tw.register_func(\"f\", 3)`", "")
def register_number():
    tw.register_func("wrong_uses.number", 3)


@wrong("`tw.register_func` of a taken name", "")
def register_twice():
    tw.register_func("wrong_uses.taken", print, override=True)
    tw.register_func("wrong_uses.taken", print)
