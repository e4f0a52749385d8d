"""Tensors of other libraries that are wrong: a `__dlpack__` that fails, or gives what is no tensor."""
import ctypes

import numpy as np
import pytest
import runtime_kernels as kernels

from tilewright.runtime import CallTypeError, array, empty, from_dlpack
from tilewright.runtime.ffi import DLTensor
from tilewright.script import from_source
from tilewright.support.errors import ArgumentError, CallError, InterpreterError
from tilewright.tir import interp

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Foreign:
    """A tensor of other people: float32 0, 1, 2, ... where nothing else is said."""

    def __init__(self, shape=(4,), strides=None, dtype=(2, 32, 1), data=None, offset=0, name=b"dltensor", fails=None):
        self.memory, self.fails, self.name = np.arange(16, dtype="float32"), fails, name
        self.sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        self.steps = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        address = self.memory.ctypes.data if data is None else data
        self.managed = Managed(DLTensor(address, 1, 0, len(shape), *dtype, self.sizes, self.steps, offset))

    def __dlpack__(self, **asked):
        if self.fails is not None:
            raise self.fails
        return new_capsule(ctypes.addressof(self.managed), self.name, None) if self.name else None

    def __dlpack_device__(self):
        return 1, 0


FAILING = [
    (Foreign(fails=RuntimeError("of its own\nand more")), "cannot be shared: of its own"),
    (Foreign(fails=BufferError("exported")), "cannot be shared: exported"),
    (Foreign(fails=KeyError()), "cannot be shared: it raised KeyError"),
    (Foreign(name=None), "cannot be shared: "), (Foreign(name=b"else"), "cannot be shared: "),
    (type("Odd", (), {"__dlpack__": 5})(), "Odd cannot be shared: 'int' object is not callable"),
    (type("Odd", (), {"__dlpack__": lambda self, a, b: None})(), "Odd cannot be shared: .* missing 2 required"),
]
NO_TENSORS = [
    (Foreign((-4,)), r"its shape \(-4,\) has a negative extent"), (Foreign((1,) * 65), "it has 65 dimensions"),
    (Foreign((2**40, 2**40)), "more elements than memory can hold"), (Foreign(data=0), r"at the address 0x0 \+ 0"),
    (Foreign(data=0, offset=64), r"at the address 0x0 \+ 64"), (Foreign(offset=2**63), r"\+ 9223372036854775808"),
]


@pytest.mark.parametrize(("foreign", "message"), FAILING, ids=[m for _, m in FAILING])
def test_what_its_owner_does_not_share_is_named(foreign, message):
    with pytest.raises(CallTypeError, match=f"scale: argument A: a .*{message}"):
        kernels.scale()["scale"](foreign, np.zeros(4, "float32"))
    with pytest.raises(CallTypeError, match=f"scale: argument A: a .*{message}"):
        kernels.scale().time_evaluator("scale")(foreign, np.zeros(4, "float32"))
    for use in (from_dlpack, array, empty(4).copyfrom):
        with pytest.raises(ArgumentError, match=message):
            use(foreign)


@pytest.mark.parametrize(("foreign", "message"), NO_TENSORS, ids=[m for _, m in NO_TENSORS])
def test_what_is_no_tensor_is_refused_before_it_is_read(foreign, message):
    for use in (from_dlpack, array, empty(4).copyfrom):
        with pytest.raises(ArgumentError, match=f"a .*Foreign cannot be shared: .*{message}"):
            use(foreign)
    out = np.zeros(4, "float32")
    with pytest.raises(CallError, match=r"scale: "):
        kernels.scale()["scale"](foreign, out)
    assert not out.any()


@pytest.mark.parametrize(("foreign", "message"), [
    (Foreign(strides=(-1,)), r"A is not contiguous: strides \(-1\)"), (Foreign(strides=(0,)), "A is not contiguous"),
    (Foreign(offset=2), r"A.data is at address .* multiple of 4"), (Foreign(dtype=(99, 32, 1)), "A.dtype is .*code 99"),
    (Foreign(dtype=(2, 32, 4)), "A.dtype is float32x4"), (Foreign(dtype=(5, 64, 1)), "A.dtype is .*64 bits"),
    (Foreign(offset=2**63), "A.data is at address 0x[89a-f]"), (Foreign(data=0, offset=64), "A.data is null"),
    (Foreign((1,) * 70), "A.ndim is 70, expected 1")])
def test_the_checker_refuses_what_does_not_fit(foreign, message):
    with pytest.raises(CallError, match=message):
        kernels.scale()["scale"](foreign, np.zeros(4, "float32"))


def test_dtypes_that_numpy_does_not_know_are_not_read():
    with pytest.raises(ArgumentError, match="cannot be read"):
        array(Foreign(dtype=(99, 32, 1)))


def test_tensors_of_others_are_used_in_place():
    f = from_source("@T.prim_func\ndef f(A: T.Buffer((4,)), C: T.Buffer((4,))):\n    for i in range(4):\n"
                    "        C[i] = A[i] * 2.0\n")
    for call in (kernels.scale()["scale"], lambda *args: interp.run(f, *args)):
        source, target, own = Foreign(offset=8), Foreign(), empty(4)
        call(source, target)
        assert target.memory[:4].tolist() == [4, 6, 8, 10]
        call(source, own)
        assert own.numpy().tolist() == [4, 6, 8, 10]
    with pytest.raises(InterpreterError, match="argument A: a .* cannot be shared"):
        interp.run(f, Foreign(fails=KeyError()), empty(4))
