"""Products of low-bit matrices: results to the last bit at the extremes, the instruction that each target gets."""
from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright as tw
from tests.rules.products import (
    ALDERLAKE,
    BF,
    HASWELL,
    HOST,
    NEOVERSE,
    NEOVERSE_V1,
    S8,
    SU,
    U8,
    UU,
    ZEN4,
    compiled,
    extremes,
    multiplied,
    product,
)
from tilewright import te
from tilewright.codegen.llvm import assembly
from tilewright.lowering import lower, split
from tilewright.rules import apply_rules
from tilewright.rules.dot_product import choose_dot, choose_tile, dot_product
from tilewright.rules.facts import kernel_blocks
from tilewright.schedule.intrinsics import DOTS
from tilewright.support import config
from tilewright.tir import TensorIntrin, run, verify

# ---- exact results

@pytest.mark.parametrize("types", [S8, U8])
@pytest.mark.parametrize("m, n, k", [(1, 16, 4), (8, 64, 64), (5, 16, 8), (13, 48, 12),
                                     (64, 96, 256), (7, 17, 5), (3, 8, 2)])
@pytest.mark.parametrize("transposed", [False, True])
def test_integers_are_exact(types, m, n, k, transposed):
    """Shapes that the instruction divides and others; -128 * -128, 255 * -128 and their sums."""
    a, b = extremes(types[0], (m, k)), extremes(types[1], (n, k) if transposed else (k, n), 1)
    got = compiled(product(m, n, k, types, transposed), a, b)
    np.testing.assert_array_equal(got, multiplied(a, b.T if transposed else b))


@pytest.mark.parametrize("types, low, high", [(S8, -128, -128), (U8, 255, -128), (SU, -128, 255), (UU, 255, 255)])
def test_the_largest_sums(types, low, high):
    """All elements at the end of their range: pairs beyond int16, where pmaddubsw would saturate."""
    k = 1024
    a, b = np.full((16, k), low, types[0]), np.full((k, 32), high, types[1])
    for target in (HOST, "llvm -mattr=-avx512vnni,-avxvnni -num-cores=1", "llvm -mattr=-avx512f -num-cores=1"):
        np.testing.assert_array_equal(compiled(product(16, 32, k, types), a, b, target=target), low * high * k)


@pytest.mark.parametrize("types", [S8, U8, SU, UU, BF])
@pytest.mark.parametrize("target", [HOST, HASWELL])
def test_checked_builds(types, target, monkeypatch):
    """Slices that run over the rows of a packed operand are inside of it."""
    monkeypatch.setenv("TILEWRIGHT_CHECKED", "1")
    for m, n, k in ((2, 16, 8), (16, 16, 16), (5, 7, 9)):
        a, b = ((np.arange(r * c) % 7).reshape(r, c).astype(t) for r, c, t in ((m, k, types[0]), (k, n, types[1])))
        got = compiled(product(m, n, k, types), a, b, target=target)
        np.testing.assert_array_equal(got, a.astype("float64") @ b.astype("float64"))


def test_a_diagonal_is_no_matrix():
    a, b = te.placeholder((5, 8, 8), "int8", name="A"), te.placeholder((8, 16), "int8", name="B")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((5, 16), lambda i, j: te.sum(a[i, k, k].astype("int32") * b[k, j].astype("int32"), axis=k), name="C")
    x, y, out = extremes("int8", (5, 8, 8)), extremes("int8", (8, 16), 1), np.zeros((5, 16), "int32")
    tw.compile([a, b, c])(x, y, out)
    np.testing.assert_array_equal(out, np.einsum("ikk,kj->ij", x.astype(int), y.astype(int)))


def test_sums_wrap():
    """2**31 and more: as int32 arithmetic does, with and without the compensation."""
    k = 65536 * 4
    a, b = np.full((1, k), -128, "int8"), np.full((k, 16), -128, "int8")
    want = np.array(128 * 128 * k, "int64").astype("int32")
    np.testing.assert_array_equal(compiled(product(1, 16, k, S8), a, b), want)


def test_on_two_threads():
    a, b = extremes("int8", (256, 128)), extremes("int8", (128, 256), 1)
    got = compiled(product(256, 256, 128, S8), a, b, target="llvm -num-cores=2")
    np.testing.assert_array_equal(got, multiplied(a, b))


@pytest.mark.parametrize("types", [S8, U8])
def test_an_epilogue(types):
    """Requantisation in the tile: scaled, rounded, saturated."""
    func = product(32, 64, 64, types, epilogue=lambda x: (te.round(x.astype("float32") * 0.002)).astype("int8"))
    a, b = extremes(types[0], (32, 64)), extremes("int8", (64, 64), 1)
    want = np.clip(np.rint(multiplied(a, b).astype("float32") * np.float32(0.002)), -128, 127)
    np.testing.assert_array_equal(compiled(func, a, b), want)


@pytest.mark.parametrize("result", ["float32", "bfloat16"])
@pytest.mark.parametrize("m, n, k", [(16, 64, 128), (6, 32, 30), (5, 7, 9), (31, 100, 127)])
@pytest.mark.parametrize("transposed", [False, True])
def test_bfloat16(result, m, n, k, transposed):
    """Within k roundings of float32 of the sum in float64, and one of the result's format."""
    random = np.random.default_rng(2)
    kind = tw.tir.dtype.numpy_dtype("bfloat16")
    a = random.standard_normal((m, k)).astype(kind)
    b = random.standard_normal((n, k) if transposed else (k, n)).astype(kind)
    epilogue = None if result == "float32" else lambda x: x.astype("bfloat16")
    got = compiled(product(m, n, k, BF, transposed, epilogue), a, b).astype("float64")
    x, y = a.astype("float64"), (b.T if transposed else b).astype("float64")
    bound = np.abs(x) @ np.abs(y) * k * 2.0**-23 + (np.abs(x @ y) * 2.0**-8 if result == "bfloat16" else 0)
    assert np.all(np.abs(got - x @ y) <= bound)


def test_the_schedule_means_the_same():
    """The scheduled function, interpreted, for each kind of element."""
    for types in (S8, U8, BF):
        func = product(4, 32, 8, types)
        sch = apply_rules(func, tw.Target(ZEN4))
        verify(sch.func)
        if types is BF:
            kind = tw.tir.dtype.numpy_dtype("bfloat16")
            random = np.random.default_rng(0)
            a, b = (random.integers(-8, 8, shape).astype(kind) for shape in ((4, 8), (8, 32)))
        else:
            a, b = extremes(types[0], (4, 8)), extremes("int8", (8, 32), 1)
        out = np.zeros((4, 32), types[2])
        run(sch.func, a, b, out)
        np.testing.assert_array_equal(out, a.astype("float64") @ b.astype("float64"))


# ---- choices

def chosen(func, target):
    (facts,) = kernel_blocks(tw.Schedule(func))
    row = choose_dot(dot_product(facts), tw.Target(target))
    return None if row is None else row.name


@pytest.mark.parametrize("types, target, name", [
    (U8, ZEN4, "dot_16x4_vnni"), (S8, ZEN4, "dot_16x4_i8i8_vnni"), (BF, ZEN4, "dot_16x2_bf16"),
    (U8, ALDERLAKE, "dot_8x4_avxvnni"), (S8, HASWELL, "dot_8x2_i8i8_avx2"), (BF, HASWELL, None),
    (S8, NEOVERSE, "dot_4x4_i8i8s32_sdot"), (("uint8", "uint8", "uint32"), NEOVERSE, "dot_4x4_u8u8u32_udot"),
    (U8, NEOVERSE, None), (U8, NEOVERSE_V1, "dot_4x4_u8i8s32_usdot"), (SU, NEOVERSE_V1, "dot_4x4_i8u8s32_usdot"),
    (SU, ZEN4, "dot_16x4_i8u8_vnni"), (SU, ALDERLAKE, "dot_8x4_i8u8_avxvnni"), (UU, ZEN4, "dot_8x2_u8u8_avx2"),
    (S8, "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64", None)])
def test_features_choose_the_instruction(types, target, name):
    assert chosen(product(64, 64, 64, types), target) == name


def test_strict_arithmetic_keeps_the_order_of_sums(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_STRICT_MATH", "1")
    assert config.get("STRICT_MATH") and chosen(product(64, 64, 64, BF), ZEN4) is None
    assert chosen(product(64, 64, 64, S8), ZEN4) == "dot_16x4_i8i8_vnni"


def test_tiles_divide_the_result():
    zen4, haswell = tw.Target(ZEN4), tw.Target(HASWELL)
    assert choose_tile(512, 512, 16, 1, zen4) == (4, 4) and choose_tile(1, 16, 16, 1, zen4) == (1, 1)
    for m, n in ((512, 512), (30, 16)):
        rows, vectors = choose_tile(m, n, 8, 1, haswell)
        assert m % rows == 0 and n % (8 * vectors) == 0 and rows * vectors + vectors + 2 <= 16


# ---- machine code

def machine_code(func, target):
    chosen_target = tw.Target(target)
    return assembly(split(lower(apply_rules(func, chosen_target).func)), chosen_target)


@pytest.mark.parametrize("types, target, mnemonic, absent", [
    (U8, ZEN4, r"vpdpbusd\s.*%zmm", "vpmadd"), (S8, ZEN4, r"vpdpbusd\s.*%zmm", "vpmadd"),
    (BF, ZEN4, r"vdpbf16ps\s.*%zmm", "vfmadd"), (U8, ALDERLAKE, r"vpdpbusd\s.*%ymm", "zmm"),
    (S8, HASWELL, r"vpmaddwd\s.*%ymm", "vpmaddubsw"), (S8, NEOVERSE, r"sdot\s+v\d+\.4s", "smlal"),
    (("uint8", "uint8", "uint32"), NEOVERSE, r"udot\s+v\d+\.4s", "umlal"),
    (U8, NEOVERSE_V1, r"usdot\s+v\d+\.4s", "umlal")])
def test_the_instruction_is_in_the_machine_code(types, target, mnemonic, absent):
    text = machine_code(product(64, 64, 64, types), target)
    assert re.search(mnemonic, text) and absent not in text


@pytest.mark.parametrize("types, instruction", [(U8, "vpdpbusd"), (BF, "vdpbf16ps")])
def test_accumulators_stay_in_registers(types, instruction):
    """In the innermost loop there are dot products, loads of operands, and nothing that touches the stack."""
    text = machine_code(product(512, 512, 512, types), ZEN4)
    loops = [part for part in re.split(r"\n\.LBB\d+_\d+:", text) if part.count(instruction) >= 16]
    assert loops
    for loop in loops:
        body = loop[:loop.rindex(instruction)]
        assert "rsp" not in body[body.index(instruction):] and not re.search(r"vmov\w+\s+%zmm\d+, [-\d]*\(", body)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("types, scalar", [(U8, r"movb|pinsrb|pextrb"), (BF, r"pinsrw|pextrw")])
def test_packing_shuffles_vectors(types, scalar, transposed):
    text = machine_code(product(512, 512, 512, types, transposed), ZEN4)
    assert not re.search(rf"\s({scalar})\s", text) and re.search(r"vpunpck|vperm|vpshuf", text)


def test_every_intrinsic_is_well_formed():
    names = [r.name for r in DOTS] + [n for n in TensorIntrin.list() if n.startswith("interleave_")]
    assert len(names) >= 25
    for name in names:
        intrin = TensorIntrin.get(name)
        verify(intrin.desc)
        verify(intrin.impl)


@pytest.mark.parametrize("name", [r.name for r in DOTS] + ["interleave_4x16_int8", "interleave_2x8_bfloat16",
                                                          "interleave_8x4_groups_of_4_int8",
                                                          "interleave_16x4_groups_of_2_bfloat16"])
def test_descriptions_and_implementations_agree(name):
    """Both interpreted on the same values; floats that are small integers, so that no sum rounds."""
    intrin = TensorIntrin.get(name)
    random = np.random.default_rng(4)
    for _ in range(8):
        arrays = []
        for b in intrin.desc.buffers:
            shape = [int(d) for d in b.shape]
            if tw.tir.dtype.is_float(b.dtype):
                arrays.append(random.integers(-9, 9, shape).astype(tw.tir.dtype.numpy_dtype(b.dtype)))
            else:
                info = np.iinfo(b.dtype)
                arrays.append(random.choice(np.array([info.min, info.max, 1], b.dtype), shape))
        ours = [x.copy() for x in arrays]
        run(intrin.desc, *arrays)
        run(concrete(intrin.impl), *ours)
        for x, y in zip(arrays, ours):
            np.testing.assert_array_equal(x, y)


def concrete(impl):
    """The implementation on compact arguments: its strides and offsets are those of the extents."""
    found = {b: b.replace(strides=(), elem_offset=None) for b in impl.buffer_map.values()}

    def step(n):
        return n.replace(buffer=found[n.buffer]) if getattr(n, "buffer", None) in found else None
    body = tw.tir.rewrite(impl.body, step)
    return impl.replace(body=body, buffer_map={p: found[b] for p, b in impl.buffer_map.items()})


@pytest.mark.parametrize("transposed", [False, True])
def test_a_target_of_several_cores_gets_the_instruction(transposed):
    code = tw.compile(product(64, 64, 64, U8, transposed), target=ZEN4.replace("cores=1", "cores=4")).get_source("s")
    assert "vpdpbusd" in code
