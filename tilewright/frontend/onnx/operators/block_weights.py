"""Weights of 2, 4 and 8 bits in blocks, each with a scale and a zero point of its own."""
from __future__ import annotations

from typing import Any

from tilewright import te, topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.registry import CONTRIB, operator
from tilewright.graph.ir.values import Value
from tilewright.te.extents import simplified
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, ceildiv
from tilewright.tir.conversion import cast


def unpacked(packed: te.Tensor, i: tuple[Any, ...], bits: int) -> Any:
    """int32: the integer of so many bits at the indices i, the first one in the lowest bits of a byte of the last axis.
    """
    if bits == 8:
        return cast("int32", packed(*i))
    per = 8 // bits
    byte = cast("int32", packed(*i[:-1], binary("floordiv", i[-1], per)))
    shift = cast("int32", binary("mul", binary("floormod", i[-1], per), bits))
    return binary("bitand", binary("shr", byte, shift), 2**bits - 1)


def block_weights(packed: te.Tensor, scale: te.Tensor, zero: te.Tensor | None, columns: Any, bits: int, block: int,
                  dtype: str) -> te.Tensor:
    """w[..., c] = (q[..., c] - zero[..., c / block]) * scale[..., c / block]: dtype[..., columns].

    zero: floats, or integers that are packed as those of the weight; without it half of their range.
    """
    def weight(*i: Any) -> Any:
        at = (*i[:-1], binary("floordiv", i[-1], block))
        q, factor = unpacked(packed, i, bits), cast("float32", scale(*at))
        if zero is not None and dt.is_float(zero.dtype):
            return cast(dtype, (cast("float32", q) - cast("float32", zero(*at))) * factor)
        offset: Any = 2**(bits - 1) if zero is None else unpacked(zero, at, bits)
        return cast(dtype, cast("float32", binary("sub", q, offset)) * factor)
    return te.compute((*packed.shape[:-1], columns), weight, name="block_weights")


def _form(n: Node) -> tuple[int, int]:
    """(bits, block)."""
    bits, block = n.attr("bits", 4), n.attr("block_size", 128)
    if bits not in (2, 4, 8):
        raise Unsupported(f"the attribute bits is {bits}: 2, 4 and 8 are supported")
    if block < 16 or block & block - 1:
        raise Unsupported(f"the attribute block_size is {block}, a power of 2 of at least 16 is needed")
    return bits, block


def _of_shape(n: Node, k: int, shape: tuple[int, ...], what: str) -> Value:
    """Input k in a shape, which it may have in one axis."""
    given = n.shape(k)
    total = 1
    for d in shape:
        total *= d
    flat = 1
    for d in given:
        flat = flat * d
    if flat != total:
        raise Unsupported(f"{what} has the shape {given}, {shape} is needed")
    x = n.value(k)
    return x if given == shape else n.emit(topi.reshape, x, shape)


@operator("MatMulNBits", domain=CONTRIB, inputs=6, attributes=(
    "K", "N", "accuracy_level", "bits", "block_size", "weight_prepacked"))
def matmul_bits(n: Node) -> Value:
    """`topi.linear_int4`, or `topi.linear` of the weights that integers of 2 or 8 bits stand for."""
    (bits, block), outputs, inner = _form(n), n.required("N"), n.required("K")
    if n.has(4) or n.attr("weight_prepacked", 0):
        raise Unsupported("input 4, an order of the blocks, or the attribute weight_prepacked")
    if outputs < 1 or inner < 1:
        raise Unsupported(f"the attributes N and K are {outputs} and {inner}")
    blocks = -(-inner // block)
    x, scale = n.value(0), _of_shape(n, 2, (outputs, blocks), "the scale")
    packed = _of_shape(n, 1, (outputs, blocks * block * bits // 8), "the weight")
    zero = None
    if n.has(3):
        width = blocks if dt.is_float(n.held(3).dtype) else -(-blocks * bits // 8)
        zero = _of_shape(n, 3, (outputs, width), "the zero point")
    if bits == 4 and (zero is None or not dt.is_float(zero.dtype)):
        if zero is not None:
            zero = n.emit(topi.unpack_int4, zero, signed=False, size=blocks)
        if blocks * block != inner:
            packed = n.emit(topi.strided_slice, packed, begin=[0], end=[-(-inner // 2)], axes=[1])
        return n.emit(topi.linear_int4, x, packed, scale, zero, n.optional(5), block=block)
    weight = n.emit(block_weights, packed, scale, zero, inner, bits, block, x.dtype)
    return n.emit(topi.linear, x, weight, n.optional(5))


@operator("GatherBlockQuantized", domain=CONTRIB, inputs=4, attributes=(
    "bits", "block_size", "gather_axis", "quantize_axis"))
def gather_blocks(n: Node) -> Value:
    """`topi.take` of rows of a table, and the numbers that their integers stand for."""
    bits, block = _form(n)
    held, last = n.held(0), n.rank() - 1
    if n.axis(0, name="gather_axis") != 0 or n.axis(1, name="quantize_axis") != last or last < 1:
        raise Unsupported(f"gather_axis is {n.attr('gather_axis', 0)}, quantize_axis {n.attr('quantize_axis', 1)}: "
                          f"the first and the last of {last + 1} dimensions are supported")
    if held.kind not in ("uint8", "int4", "uint4"):
        raise Unsupported(f"a table of {held.kind}")
    per = 8 // bits if held.kind == "uint8" else 1
    columns = simplified(binary("mul", held.shape[-1], per))
    blocks = (*held.shape[:-1], simplified(ceildiv(columns, block)))
    packed = (*blocks[:-1], simplified(ceildiv(blocks[-1], per)))
    for k, shape in ((2, blocks), (3, packed)):
        if n.has(k) and n.shape(k) != shape:
            raise Unsupported(f"input {k} has the shape {n.shape(k)}, {shape} is needed")
    data, scale, zero = (n.emit(topi.take, n.value(k), n.value(1), axis=0) if n.has(k) else None for k in (0, 2, 3))
    if held.kind != "uint8":                                                        # already one integer a byte
        return n.emit(topi.dequantize, data, scale, 0 if zero is None else zero, axis=-1, block=block,
                      dtype=n.held(2).dtype)
    return n.emit(block_weights, data, scale, zero, columns, bits, block, n.held(2).dtype)
