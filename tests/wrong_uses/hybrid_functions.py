"""Hybrid functions that break a rule of the language each."""
# The words of the language have no definition in Python, and what is wrong here is meant.
# ruff: noqa: B007, F821, F841
from __future__ import annotations

from tilewright import te
from tilewright.te import hybrid

A = te.placeholder((8,), name="a")


@hybrid.script
def returns_nothing(a):
    out = output_tensor((8,), "float32")
    out[0] = a[0]


@hybrid.script
def unknown_name(a):
    out = output_tensor((8,), "float32")
    for i in range(8):
        out[i] = nowhere
    return out


@hybrid.script
def inner_name(a):
    out = output_tensor((8,), "float32")
    for i in range(8):
        last = a[i]
    out[0] = last
    return out


@hybrid.script
def writes_input(a):
    out = output_tensor((8,), "float32")
    a[0] = 1.0
    return out


@hybrid.script
def odd_loop(a):
    out = output_tensor((8,), "float32")
    for x in a:
        out[0] = x
    return out


@hybrid.script
def with_try(a):
    try:
        out = output_tensor((8,), "float32")
    finally:
        pass
    return out


@hybrid.script
def early_return(a):
    out = output_tensor((8,), "float32")
    for i in range(8):
        return out


@hybrid.script
def after_return(a):
    out = output_tensor((8,), "float32")
    return out
    out[0] = a[0]


@hybrid.script
def returns_input(a):
    return a


@hybrid.script
def forgets_output(a):
    out = output_tensor((8,), "float32")
    other = output_tensor((8,), "float32")
    other[0] = a[0]
    return out


@hybrid.script
def wrong_index(a):
    out = output_tensor((8,), "float32")
    out[0] = a[0, 1]
    return out


@hybrid.script
def asserts(a):
    out = output_tensor((8,), "float32")
    assert len(a.shape) == 2
    return out


@hybrid.script
def asserts_data(a):
    out = output_tensor((8,), "float32")
    assert a[0] > 0.0
    return out


@hybrid.script
def captures(b):
    out = output_tensor((8,), "float32")
    out[0] = A[0]
    return out


@hybrid.script
def inner_output(a):
    for i in range(8):
        out = output_tensor((8,), "float32")
    return out


@hybrid.script
def three_arguments(a):
    out = output_tensor((8,), "float32")
    for i in range(0, 8, 2):
        out[i] = a[i]
    return out


@hybrid.script
def assigns_number(a):
    out = output_tensor((8,), "float32")
    number = 3
    number[0] = a[0]
    return out


@hybrid.script
def assigns_attribute(a):
    out = output_tensor((8,), "float32")
    out.dtype = 3
    return out


@hybrid.script
def two_targets(a):
    out = other = output_tensor((8,), "float32")
    return out


@hybrid.script
def unpacks(a):
    out = output_tensor((8,), "float32")
    x, y = a[0]
    return out


@hybrid.script
def comprehension(a):
    out = output_tensor((8,), "float32")
    out[0] = sum([a[i] for i in range(8)])
    return out


@hybrid.script
def adds_unknown(a):
    out = output_tensor((8,), "float32")
    total += a[0]
    return out


@hybrid.script
def is_comparison(a):
    out = output_tensor((8,), "float32")
    out[0] = 1.0 if a is None else 2.0
    return out


@hybrid.script
def matrix_operator(a):
    out = output_tensor((8,), "float32")
    out[0] = a @ a
    return out


@hybrid.script
def else_of_a_loop(a):
    out = output_tensor((8,), "float32")
    for i in range(8):
        out[i] = a[i]
    else:
        out[0] = 1.0
    return out


@hybrid.script
def loop_with_keyword(a):
    out = output_tensor((8,), "float32")
    for i in range(0, 8, step=2):
        out[i] = a[i]
    return out


@hybrid.script
def loop_variable_taken(a):
    out = output_tensor((8,), "float32")
    i = 3
    for i in range(8):
        out[i] = a[i]
    return out


@hybrid.script
def tensor_as_condition(a):
    out = output_tensor((8,), "float32")
    out[0] = 1.0 if a else 2.0
    return out


@hybrid.script
def tuple_as_condition(a):
    out = output_tensor((8,), "float32")
    if not (a[0] > 0.0,):
        out[0] = 1.0
    return out


@hybrid.script
def other_tensor(a):
    out = output_tensor((8,), "float32")
    source = allocate((8,), "float32")
    for i in range(8):
        source[i] = 1.0
    if a[0] > 0.0:
        source = a
    out[0] = source[0]
    return out


@hybrid.script
def unpacked_keywords(a):
    out = output_tensor((8,), **{"dtype": "float32"})
    return out
