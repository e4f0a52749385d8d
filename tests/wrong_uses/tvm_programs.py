"""Wrong uses of what TVM's programs call beside tensors: functions of NumPy, assertions, known shapes, links."""
from __future__ import annotations

import math

import numpy as np

import tilewright as tw
from tilewright import te, tir
from tilewright.compat.contrib import toolchain
from tilewright.compat.nodes import address_of
from tilewright.compat.transforms import TRANSFORMS
from tilewright.schedule import Schedule
from tilewright.script import tir as T
from tilewright.tir.assertion import assertion

from .programs import N, placeholders
from .stored import folder
from .wrong_use import Section, watch

SECTION = Section("Programs written for TVM")
wrong = SECTION.wrong


@T.prim_func
def halves(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    assert n % 2 == 0, "the length is even"
    for i in range(n):
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            A[vi] = A[vi] / T.float32(2)


@wrong("`np.exp(A[i])` of a tensor's element",
       r"(?s)np\.exp computes now.*hint: te\.exp\(x\)")
def numpy_function():
    np.exp(placeholders()[0][0, 0])


@wrong("`np.maximum(A[i], 0)`",
       r"(?s)np\.maximum computes now.*hint: te\.max\(a, b\)")
def numpy_maximum():
    np.maximum(placeholders()[0][0, 0], 0)


@wrong("`np.sum(A[i])`",
       r"(?s)np\.add\.reduce computes now.*hint: te\.sum\(A\[i, k\], axis=k\)")
def numpy_sum():
    np.sum(placeholders()[0][0, 0])


@wrong("an array of NumPy plus an element of a tensor, in place",
       r"(?s)np\.add computes now.*hint: an array of NumPy cannot hold it: write a te\.compute")
def numpy_in_place():
    array = watch(np.zeros(N, "float32"))
    array += placeholders()[0][0, 0]


@wrong("`math.exp(A[i])`",
       r"(?s)float\(\), or a function of math, of an expression.*hint: te\.exp, te\.sqrt")
def math_function():
    math.exp(placeholders()[0][0, 0])


@wrong("`int(n)` of a variable",
       r"int\(\) of an expression: its value is known only when the kernel runs")
def integer_of_variable():
    int(te.var("n"))


@wrong("`round(A[i])`",
       r"(?s)round\(\) of an expression.*hint: te\.round\(x\)")
def round_element():
    round(placeholders()[0][0, 0])


@wrong("a call in which `assert n % 2 == 0` of the kernel does not hold",
       r"halves: the length is even \(n % 2 == 0 does not hold\)")
def assertion_fails():
    tw.build(halves)(np.ones(3, "float32"), 3)


@wrong("the same under the interpreter",
       r"halves: the length is even \(n % 2 == 0 does not hold\)")
def assertion_fails_interpreted():
    tir.interp.run(halves, np.ones(3, "float32"), 3)


@wrong("an assertion about a number",
       r"the condition of an assertion is int32, not a bool")
def assertion_of_number():
    assertion(te.var("n"), "n")


@wrong("an assertion whose message is a number",
       r"the message of an assertion is a text, not 3")
def assertion_message():
    assertion(te.var("n") > 0, 3)


@wrong("`specialize` by the name of a parameter",
       r"halves: specialize takes parameters, not 'n'")
def specialize_name():
    halves.specialize({"n": 4})


@wrong("`specialize` by a list",
       r"halves: specialize takes a dict, not \[")
def specialize_list():
    halves.specialize([(halves.params[0], 4)])


@wrong("`specialize` of a buffer's parameter by a number",
       r"the parameter of A is specialised by a buffer, not by 4")
def specialize_number():
    halves.specialize({halves.params[0]: 4})


@wrong("`specialize` of a scalar by a buffer",
       r"halves: the parameter n is a scalar, not a buffer")
def specialize_scalar():
    halves.specialize({halves.params[1]: tir.decl_buffer((4,))})


@wrong("`specialize` by a buffer of another rank",
       r"A is float32 of 1 dimension\(s\), the buffer given is float32 of 2")
def specialize_rank():
    halves.specialize({halves.params[0]: tir.decl_buffer((4, 4))})


@wrong("`specialize` of one extent by two numbers",
       r"specialize: A\.shape\[0\] is 4, the value given is 5")
def specialize_twice():
    halves.specialize({halves.params[1]: 4, halves.params[0]: tir.decl_buffer((5,))})


@wrong("`mod.get_global_var` of a function that is not there",
       r"the module has no function 'other'; it has main")
def unknown_global_var():
    Schedule(halves).mod.get_global_var("other")


@wrong("`mod[\"main\"] = 3`",
       r"a module holds functions, not int")
def function_of_number():
    Schedule(halves).mod["main"] = 3


@wrong("`tir.address_of(A)` of a whole buffer",
       r"address_of takes an element, not A")
def address_of_buffer():
    address_of(tir.decl_buffer((4,), name="A"))


@wrong("`tir.transform.VectorizeLoop` of a function of blocks",
       r"VectorizeLoop takes what tvm\.lower gives: halves: ")
def pass_of_blocks():
    TRANSFORMS["VectorizeLoop"]()(tir.IRModule({"main": halves}))


@wrong("`cc.create_shared` of an object that is not there",
       r"create_shared: there is no file nowhere\.o")
def link_nothing():
    toolchain.create_shared("x.so", ["nowhere.o"])


@wrong("`cc.create_shared` with its options as a text",
       r"create_shared: options is '-O2', not a list")
def link_options():
    toolchain.create_shared("x.so", [], options="-O2")


@wrong("`cc.create_shared` of no list of objects", r"create_shared: objects is None, not a list")
def link_no_list():
    toolchain.create_shared("x.so", None)


@wrong("`cc.create_shared` by a command that writes nothing", r"create_shared: true wrote nothing")
def link_by_true():
    with folder() as f:
        (f / "x.o").write_bytes(b"")
        toolchain.create_shared(f / "x.so", [f / "x.o"], cc="true")


@wrong("`utils.tempdir` of a file's name", r"tempdir: .*File exists")
def folder_of_a_file():
    with folder() as f:
        (f / "x").write_bytes(b"")
        toolchain.tempdir(str(f / "x"))


@wrong("`cc.create_shared` by a linker that is not there",
       r"the linker cannot be started")
def link_without_linker():
    with folder() as f:
        (f / "x.o").write_bytes(b"")
        toolchain.create_shared(f / "x.so", [f / "x.o"], cc="/no/such/linker")
