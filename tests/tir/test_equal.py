"""Structural equality ignores names and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest
from tir_programs import elementwise, function, matmul, nothing

from tilewright.script import from_source
from tilewright.support.errors import StructuralError
from tilewright.tir import (
    Buffer,
    IntImm,
    IRModule,
    Let,
    Store,
    Var,
    assert_structural_equal,
    const,
    decl_buffer,
    loop,
    structural_equal,
    structural_hash,
)


def test_names_do_not_count():
    assert structural_equal(matmul(), matmul())
    assert structural_hash(matmul()) == structural_hash(matmul())
    a, b = (elementwise(4, lambda i: A[i] + 1.0, A := decl_buffer((4,), name=name)) for name in ("A", "Z"))
    assert structural_equal(a, b) and structural_hash(a) == structural_hash(b)


@pytest.mark.parametrize(
    "other",
    [
        matmul(m=5),
        matmul(kinds=("parallel", "serial", "serial")),
        matmul(dtype="float64"),
        matmul().with_attr("a", 1),
    ],
)
def test_everything_else_counts(other):
    assert not structural_equal(matmul(), other)
    assert structural_hash(matmul()) != structural_hash(other)


def test_which_variable_is_used_counts():
    def nest(swap):
        B, i, j = decl_buffer((4, 4), name="B"), Var("i"), Var("j")
        return function(loop(i, 4, loop(j, 4, Store(B, const(0.0), (j, i) if swap else (i, j)))), B)

    assert structural_equal(nest(False), nest(False))
    assert not structural_equal(nest(False), nest(True))


def test_free_variables_stand_for_themselves_unless_mapped():
    x, y = Var("x"), Var("y")
    assert structural_equal(x + 1, x + 1) and not structural_equal(x + 1, y + 1)
    assert structural_equal(x + 1, y + 1, map_free_vars=True)
    assert not structural_equal(x + x, x + y, map_free_vars=True)
    assert not structural_equal(x + 1, Var("x", "int64") + 1, map_free_vars=True)
    a, b = Var("a"), Var("b")
    assert structural_equal(Let(a, x, a + x), Let(b, x, b + x))
    assert not structural_equal(Let(a, x, a + x), Let(b, x, x + b))


def test_flat_buffers_are_known_by_their_data():
    def flat(n):
        A, i = decl_buffer((2, 3), name="A"), Var("i")
        return function(loop(i, 6, Store(Buffer("A", (IntImm(n),), data=A.data), const(0.0), (i,))), A)

    assert structural_equal(flat(6), flat(6)) and not structural_equal(flat(6), flat(7))


def test_symbolic_shapes():
    def copy(same):
        n, m, i = Var("n"), Var("m"), Var("i")
        A, B = decl_buffer((n,), name="A"), decl_buffer((n if same else m,), name="B")
        return function(loop(i, n, Store(B, A[i], (i,))), A, B)

    assert structural_equal(copy(True), copy(True)) and not structural_equal(copy(True), copy(False))


def test_constants_by_value_and_dtype():
    assert structural_equal(const(float("nan")), const(float("nan")))
    assert not structural_equal(const(0.0), const(-0.0))
    assert not structural_equal(const(1), const(1, "int64"))
    assert not structural_equal(const(1), const(True))


def test_the_message_shows_both_sides():
    with pytest.raises(StructuralError) as error:
        assert_structural_equal(matmul(), matmul(kinds=("parallel", "serial", "serial")))
    text = str(error.value)
    assert "serial" in text.splitlines()[0] and "parallel" in text.splitlines()[0]
    assert "for i in T.parallel(4):  # <-- here" in text
    assert_structural_equal(function(nothing()), function(nothing()))


def test_the_hash_is_the_same_in_every_process():
    code = "import tir_programs, tilewright.tir as tir; print(tir.structural_hash(tir_programs.matmul()))"
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(p for p in sys.path if p)},
        check=True,
    )
    assert int(out.stdout) == structural_hash(matmul())


def test_a_function_under_two_names_is_equal_to_two_functions():
    one = matmul()
    twice, apart = IRModule({"f": one, "g": one}), IRModule({"f": matmul(), "g": matmul()})
    assert structural_equal(twice, apart) and structural_hash(twice) == structural_hash(apart)
    assert not structural_equal(twice, IRModule({"f": matmul(), "g": matmul(m=5)}))
    read = from_source(str(twice))
    assert structural_equal(twice, read)
    assert_structural_equal(twice, read)


def test_what_functions_share_counts_in_each_of_them():
    def copy(A, B, i, swapped=False):
        source, target = (B, A) if swapped else (A, B)
        return function(loop(i, 4, Store(target, source[i], (i,))), A, B)

    def fresh():
        return decl_buffer((4,), name="A"), decl_buffer((4,), name="B"), Var("i")
    shared = fresh()
    module = IRModule({"f": copy(*shared), "g": copy(*shared)})
    assert structural_equal(module, IRModule({"f": copy(*fresh()), "g": copy(*fresh())}))
    assert not structural_equal(module, IRModule({"f": copy(*shared), "g": copy(*shared, swapped=True)}))
