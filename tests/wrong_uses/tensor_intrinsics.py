"""Wrong definitions of tensor intrinsics."""
from __future__ import annotations

import tilewright as tw
from tilewright import tir
from tilewright.tir import TensorIntrin

from .schedule_programs import blockless, guarded
from .wrong_use import Section

SECTION = Section("Tensor intrinsics")
wrong = SECTION.wrong


@wrong("`TensorIntrin(desc, 3)`", r"the implementation of a tensor intrinsic is a PrimFunc, not a int")
def intrinsic_of_number():
    TensorIntrin(blockless, 3)


@wrong("`TensorIntrin(desc, lowered)`: an implementation that is lowered already", r"is not in block form")
def intrinsic_of_lowered():
    TensorIntrin(blockless, tw.lower(guarded)["guarded"])


@wrong("`TensorIntrin(desc, impl)` of buffers of different dtypes", r"of the description is int32, .* int8")
def intrinsic_dtypes():
    handle = blockless.params[0]
    impl = blockless.replace(buffer_map={**blockless.buffer_map, handle: tir.decl_buffer((4,), "int8", "A")})
    TensorIntrin(blockless, impl)


@wrong("`TensorIntrin(desc, impl)` of buffers of different shapes",
       r"has the shape \(4\), A of the implementation \(5\)")
def intrinsic_shapes():
    handle = blockless.params[0]
    impl = blockless.replace(buffer_map={**blockless.buffer_map, handle: tir.decl_buffer((5,), "int32", "A")})
    TensorIntrin(blockless, impl)


@wrong("`TensorIntrin.register(3, desc, impl)`", r"the name 3 of a tensor intrinsic is not a string with characters")
def intrinsic_name():
    TensorIntrin.register(3, blockless, blockless)
