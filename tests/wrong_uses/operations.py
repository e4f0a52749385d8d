"""Wrong uses of reducers, external code, tensor intrinsics and names in tensor expressions."""
from __future__ import annotations

from tilewright import te

from .programs import N, placeholders
from .wrong_use import Section

SECTION = Section("Tensor expressions: reducers, external code, tensor intrinsics")
wrong = SECTION.wrong


def vector(n=N, dtype="float32", name="A"):
    return te.placeholder((n,), dtype, name=name)


def reduced(**how):
    """A sum over k with where= or init="""
    a, k = te.placeholder((N, N), name="A"), te.reduce_axis((0, N), name="k")
    return te.compute((N,), lambda i: te.sum(a[i, k], axis=k, **{key: value(a, i, k) for key, value in how.items()}))


# ---- names and values

@wrong("`te.var(3)`", r"the name 3 of a variable is not a string with characters")
def variable_name():
    te.var(3)


@wrong("`te.reduce_axis((0, 16), name=3)`", r"reduce_axis: the name 3 is not a string with characters")
def axis_name():
    te.reduce_axis((0, N), name=3)


@wrong("`te.placeholder((16,), name=\"\")`", r"the name '' of an operation is not a string with characters")
def operation_name():
    te.placeholder((N,), name="")


@wrong("`te.compute(..., attrs=3)`", r"C: tag is a string and attrs a mapping, not '' and 3")
def operation_attrs():
    a = vector()
    te.compute((N,), lambda i: a[i], name="C", attrs=3)


@wrong("`C.op.output(1)` of one output", r"C has 1 output\(s\), no number 1")
def operation_output():
    a = vector()
    te.compute((N,), lambda i: a[i], name="C").op.output(1)


@wrong("a float from memory as an index: `A[B[i]]`", r"A: index 0 is float32, not an integer")
def float_index_read():
    a, b = vector(), vector(name="B")
    te.compute((N,), lambda i: a[b[i]], name="C")


@wrong("a function that gives an empty tuple", r"compute C: the function gives an empty tuple")
def empty_tuple():
    te.compute((N,), lambda i: (), name="C")


@wrong("a function that gives a pointer", r"compute C: the function gives a value of type handle, not a scalar")
def handle_value():
    te.compute((N,), lambda i: te.var("p", "handle"), name="C")


@wrong("a builtin whose parameters are not known", r"compute C: the parameters of .* are not known")
def unknown_parameters():
    te.compute((N,), type, name="C")


@wrong("an expression of 5000 operations inside one another",
       r"compute C: the expression has \d+ operations, \d+ inside one another; it may have")
def deep_expression():
    a = vector()

    def body(i):
        value = a[i]
        for _ in range(2500):
            value = value + 1.0
        return value
    te.compute((N,), body, name="C")


@wrong("`te.reinterpret(\"float64\", x)` of 32 bits", r"reinterpret: ")
def reinterpret_size():
    a = vector()
    te.compute((N,), lambda i: te.reinterpret("float64", a[i]), name="C")


# ---- reducers

@wrong("`te.reduce_axis((0.5, 16))`", r"reduce_axis: the range \(.*0\.5.*, 16\) is not made of integers")
def axis_of_floats():
    te.reduce_axis((0.5, N))


@wrong("`te.sum(x, axis=[])`", r"sum: no reduction axis given")
def no_axes():
    a = vector()
    te.compute((N,), lambda i: te.sum(a[i], axis=[]), name="C")


@wrong("`te.sum(x, axis=k, where=A[i, k])`: a number as a condition", r"sum: `where` is float32, not a condition")
def where_number():
    reduced(where=lambda a, i, k: a[i, k])


@wrong("`te.sum(x, axis=k, init=(0.0, 0.0))`", r"sum: 1 value\(s\) are reduced, init has 2")
def two_inits():
    reduced(init=lambda a, i, k: (0.0, 0.0))


@wrong("`te.sum(x, axis=k, init=A[i, k])`: a start that depends on the axis",
       r"compute compute: the start value depends on the reduction axis k")
def init_of_axis():
    reduced(init=lambda a, i, k: a[i, k])


@wrong("`te.sum(x, axis=k, init=B[i])` of another dtype", r"sum: the start value is int32, the reduced value float32")
def init_dtype():
    b = vector(dtype="int32", name="B")
    reduced(init=lambda a, i, k: b[i])


@wrong("a combiner that gives fewer values than it takes",
       r"reduce: 2 value\(s\) are reduced, the combiner gives 1 and the identity 2")
def combiner_arity():
    a, k = vector(), te.reduce_axis((0, N), name="k")
    first = te.comm_reducer(lambda x, y: (x[0] + y[0],), lambda t, u: (te.const(0, t), te.const(0, u)))
    te.compute((1,), lambda i: first((a[k], a[k]), axis=k), name="C")


@wrong("one component of a reduction of two", r"C: the outputs must be all 2 components of the reduction")
def one_component():
    a, k = vector(), te.reduce_axis((0, N), name="k")
    both = te.comm_reducer(lambda x, y: (x[0] + y[0], x[1] * y[1]), lambda t, u: (te.const(0, t), te.const(1, u)))
    c = te.compute((1,), lambda i: both((a[k], a[k]), axis=k)[0], name="C")
    te.create_prim_func([a, c])


# ---- external code

@wrong("`te.extern` of inputs of two dtypes without dtype=", r"extern C: the inputs have 2 dtypes")
def extern_dtypes():
    te.extern((N,), [vector(), vector(dtype="int32")], lambda ins, outs: te.call_packed("f"), name="C")


@wrong("`te.extern(..., in_buffers=[])` for one input", r"extern C: 1 buffer\(s\) are needed, 0 given")
def extern_buffers():
    te.extern((N,), [vector()], lambda ins, outs: te.call_packed("f"), name="C", in_buffers=[])


@wrong("`te.extern` of a string", r"extern C: 'f' is not a function")
def extern_string():
    te.extern((N,), [vector()], "f", name="C")


# ---- tensor intrinsics

def intrinsic(fcompute=lambda ins, outs: te.call_packed("f"), **more):
    a = vector()
    return te.decl_tensor_intrin(te.compute((N,), lambda i: a[i] + 1.0, name="C").op, fcompute, **more)


@wrong("`te.decl_tensor_intrin(A.op, ...)` of a placeholder", r"decl_tensor_intrin: .* is no computation")
def intrinsic_of_placeholder():
    te.decl_tensor_intrin(vector().op, lambda ins, outs: te.call_packed("f"))


@wrong("`te.decl_tensor_intrin` of a computation on a computed tensor",
       r"decl_tensor_intrin: C reads B, which is no placeholder")
def intrinsic_of_chain():
    a, _ = placeholders()
    b = te.compute((N, N), lambda i, j: a[i, j] + 1.0, name="B")
    te.decl_tensor_intrin(te.compute((N, N), lambda i, j: b[i, j], name="C").op, lambda ins, outs: None)


@wrong("`te.decl_tensor_intrin(op, \"f\")`", r"decl_tensor_intrin: 'f' is no function of inputs and outputs")
def intrinsic_by_name():
    intrinsic("f")


@wrong("`te.decl_tensor_intrin` whose function returns two statements",
       r"decl_tensor_intrin: fcompute returned .*, not a statement or \(compute, reset, update\)")
def intrinsic_of_two():
    intrinsic(lambda ins, outs: (te.call_packed("f"), te.call_packed("g")))


@wrong("`te.decl_tensor_intrin` whose function returns a number", r"fcompute returned 3, not a statement or call")
def intrinsic_of_number():
    intrinsic(lambda ins, outs: 3)


@wrong("a reset and an update of what is no reduction",
       r"decl_tensor_intrin: C is no reduction, so it has no reset and update")
def intrinsic_reset():
    intrinsic(lambda ins, outs: (te.call_packed("f"), te.call_packed("g"), te.call_packed("h")))


@wrong("`binds=` with a tensor of another computation", r"decl_tensor_intrin: binds has .*, which C neither reads nor")
def intrinsic_binds():
    intrinsic(binds={vector(name="B"): 3})


@wrong("`binds=` with a number in place of a buffer",
       r"decl_tensor_intrin: the buffer of A is 3, not a buffer of float32")
def intrinsic_bind_number():
    a = vector()
    c = te.compute((N,), lambda i: a[i] + 1.0, name="C")
    te.decl_tensor_intrin(c.op, lambda ins, outs: te.call_packed("f"), binds={a: 3})


@wrong("`default_buffer_params={\"offset\": 1}`", r"decl_tensor_intrin: default_buffer_params has 'offset'; known are")
def intrinsic_params():
    intrinsic(default_buffer_params={"offset": 1})
