"""Views of buffers in blocks, and parameters with strides: lowering, machine code, packed calls, refusals."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.lowering.lower_match_buffer import lower_match_buffer
from tilewright.lowering.pipeline import lower
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.support.errors import CallError, CodegenError, LowerError
from tilewright.tir import interp
from tilewright.tir.expr import IntImm
from tilewright.tir.node import rewrite
from tilewright.tir.stmt import Block
from tilewright.tir.verify import verify


@T.prim_func
def views_of_views(A: T.Buffer((4, 8, 8), "int32"), C: T.Buffer((4, 4), "int32")):
    for i in range(4):
        with T.block("outer"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi, 2:6, 0:8])
            T.writes(C[vi, 0:4])
            s0, s1, off = T.int32(), T.int32(), T.int32()
            V = T.match_buffer(A[vi, 2:6, 0:8], (4, 8), "int32", strides=[s0, s1], elem_offset=off)
            for j in range(4):
                with T.block("inner"):
                    vj = T.axis.spatial(4, j)
                    T.reads(V[vj, 3:5])
                    T.writes(C[vi, vj])
                    W = T.match_buffer(V[vj, 3:5], (2,), "int32")
                    C[vi, vj] = W[0] + W[1] * 1000 + s0 * 1000000 + off


@T.prim_func
def strided_parameter(a: T.handle, c: T.handle):
    n, s, off = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (n, 4), "int32", strides=[s, 1], elem_offset=off)
    C = T.match_buffer(c, (n, 4), "int32")
    for i, j in T.grid(n, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + s * 100


@T.prim_func
def handed_on(A: T.Buffer((6, 8), "int32"), C: T.Buffer((6, 8), "int32")):
    B = T.alloc_buffer((6, 8), "int32")
    for i, j in T.grid(6, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2
    for i, j in T.grid(3, 2):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi * 2:vi * 2 + 2, vj * 4:vj * 4 + 4])
            T.writes(C[vi * 2:vi * 2 + 2, vj * 4:vj * 4 + 4])
            s, t = T.int32(), T.int32()
            X = T.match_buffer(B[vi * 2:vi * 2 + 2, vj * 4:vj * 4 + 4], (2, 4), "int32", strides=[s, 1])
            Y = T.match_buffer(C[vi * 2:vi * 2 + 2, vj * 4:vj * 4 + 4], (2, 4), "int32", strides=[t, 1])
            T.evaluate(T.call_packed("test.reverse", X.access_ptr("r"), Y.access_ptr("w"), s))


def test_views_of_views():
    verify(views_of_views)
    func = lower_match_buffer(views_of_views)
    assert "match_buffer" not in str(func)
    assert "C[vi, vj] = A[vi, 2 + vj, 3] + A[vi, 2 + vj, 4] * 1000 + T.int32(8) * 1000000 + " in str(func)
    data = np.arange(256, dtype="int32").reshape(4, 8, 8)
    want = data[:, 2:6, 3] + data[:, 2:6, 4] * 1000 + 8000000 + np.arange(4)[:, None] * 64 + 16
    for run in (lambda *x: interp.run(views_of_views, *x), lambda *x: interp.run(lower(views_of_views), *x),
                tw.build(views_of_views, target="llvm")):
        got = np.zeros((4, 4), "int32")
        run(data, got)
        np.testing.assert_array_equal(got, want)


def test_parameters_with_strides_and_offset():
    built = tw.build(strided_parameter, target="llvm")
    data = np.arange(80, dtype="int32").reshape(10, 8)
    got = np.zeros((5, 4), "int32")
    built(data[::2, 2:6], got)
    np.testing.assert_array_equal(got, data[::2, 2:6] + 1600)
    built(data[:5, :4], got)
    np.testing.assert_array_equal(got, data[:5, :4] + 800)
    with pytest.raises(CallError, match=r"strides\[1\] == 1"):
        built(data[:5, ::2], got)
    interp.run(strided_parameter, np.ascontiguousarray(data[:5, :4]), got)
    np.testing.assert_array_equal(got, data[:5, :4] + 400)


def test_callees_get_the_strides_of_a_temporary():
    def reverse(x, y, s):
        assert s == 8 and x.shape == (2, 4)
        y[...] = x[::-1, ::-1]

    @tw.register_func("test.reverse", override=True)
    def reverse_views(x, y, s):
        y.copyfrom(np.ascontiguousarray(x.numpy()[::-1, ::-1]))

    data = np.arange(48, dtype="int32").reshape(6, 8)
    want = (data * 2).reshape(3, 2, 2, 4)[:, ::-1, :, ::-1].reshape(6, 8)
    for func in (handed_on, lower(handed_on), lower(handed_on, simple_mode=True)):
        got = np.zeros((6, 8), "int32")
        interp.run(func, data, got, externs={"test.reverse": reverse})
        np.testing.assert_array_equal(got, want)
    got = np.zeros((6, 8), "int32")
    tw.build(handed_on, target="llvm")(data, got)
    np.testing.assert_array_equal(got, want)


def declared(**changed):
    """handed_on with one view declared in another way."""
    def change(n):
        if not isinstance(n, Block) or not n.match_buffers:
            return None
        first, second = n.match_buffers
        new = first.buffer.replace(**changed)
        swapped = rewrite(n.body, lambda x: x.replace(buffer=new) if getattr(x, "buffer", None) is first.buffer
                          else None)
        return n.replace(match_buffers=(first.replace(buffer=new), second), body=swapped)
    return handed_on.with_body(rewrite(handed_on.body, change))


@pytest.mark.parametrize(("changed", "message"), [
    ({"strides": ()}, "has no strides and so is compact, but the region of B"),
    ({"strides": (4, 1)}, "the stride of dimension 0 is 8, declared as 4"),
    ({"elem_offset": 7}, "the elem_offset is .*, declared as 7"),
    ({"shape": (1, 1, 2, 4), "strides": ()}, "has 4 dimensions, its source B has 2"),
    ({"shape": (4,), "strides": ()}, "has the extent 2 in a dimension before them")])
def test_views_that_do_not_fit(changed, message):
    given = {k: IntImm(v) if isinstance(v, int) else tuple(IntImm(x) for x in v) for k, v in changed.items()}
    with pytest.raises(LowerError, match=message):
        lower_match_buffer(declared(**given))


def test_an_offset_that_is_no_multiple_of_its_factor():
    with pytest.raises(LowerError, match=r"its offset 19 is no multiple of 4 \(offset_factor\)"):
        @T.prim_func
        def shifted(A: T.Buffer((4, 8), "int32"), C: T.Buffer((2,), "int32")):
            with T.block("C"):
                T.reads(A[2, 3:5])
                T.writes(C[0:2])
                V = T.match_buffer(A[2, 3:5], (2,), "int32", offset_factor=4)
                for i in range(2):
                    C[i] = V[i]
        lower_match_buffer(shifted)


def test_a_constant_offset_of_a_parameter_is_not_lost():
    """A call gives the address of element 0, so native code refuses it, with views in the function as without."""
    func = from_source("""@T.prim_func
def rows(a: T.handle, C: T.Buffer((4, 8), "int32")):
    A = T.match_buffer(a, (4, 8), "int32", elem_offset=4)
    for i in range(4):
        with T.block("row"):
            v = T.axis.spatial(4, i)
            c = T.match_buffer(C[v, 0:8], (8,), "int32", offset_factor=1)
            for j in range(8):
                c[j] = A[v, j]
""")
    with pytest.raises(CodegenError, match="parameter A has the elem_offset 4"):
        tw.build(func)
