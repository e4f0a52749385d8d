"""What the consumers of the analyzer rely on, as texts and proofs."""

import pytest
from arith_reference import text

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.linear import linear, structural_key
from tilewright.tir.arithmetic import all_of, any_of, if_then_else, intrinsic, maximum, minimum, select
from tilewright.tir.buffer import Load, decl_buffer
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Binary, Broadcast, Cast, FloatImm, IntImm, Not, Ramp, StringImm, Var
from tilewright.tir.node import same

X, J, F, N, M = Var("i"), Var("j"), Var("f"), Var("n"), Var("m")


@pytest.fixture
def an():
    analyzer = Analyzer()
    analyzer.bind(X, 0, 2)
    analyzer.bind(J, 0, 32)
    analyzer.assume_nonneg(N)
    analyzer.assume_nonneg(M)
    return analyzer


@pytest.mark.parametrize(
    "e, expected",
    [
        ((F * 4 + J % 4) // 4, "f"),
        ((F * 4 + J % 4) % 4, "(j floormod 4)"),
        ((F * 32 + J) // 4, "((f mul 8) add (j floordiv 4))"),
        ((F // 4) * 4 + F % 4, "f"),
        (F // 4 // 8, "(f floordiv 32)"),
        (F % 128 // 32, "((f floordiv 32) floormod 4)"),
        (F % 128 % 32, "(f floormod 32)"),
        (F - F % 32, "((f floordiv 32) mul 32)"),
        (X * 32 + J, "((i mul 32) add j)"),
        (J * 1 + X * 32 + 1 - 1, "(j add (i mul 32))"),
        (IntImm(5) - F, "(5 sub f)"),
        (F - 3, "(f sub 3)"),
        (-F, "(f mul -1)"),
        (minimum(X * 32 + J, 64), "((i mul 32) add j)"),
        (minimum(F, F + 3), "f"),
        (maximum(minimum(F, 9), 9), "9"),
        (minimum(minimum(F, 9), 5), "(f min 5)"),
        (F // -4, "((f mul -1) floordiv 4)"),
        (F * 0, "0"),
        (F << 3, "(f mul 8)"),
        ((X * M + F % M) // M, "(((i mul m) add (f floormod m)) floordiv m)"),
        (F & 7, "(f floormod 8)"),
        (select(J < 32, F, N), "f"),
        (if_then_else(F < 4, minimum(F, 7), N), "if_then_else((f lt 4), f, n)"),
    ],
)
def test_simplify(an, e, expected):
    assert text(an.simplify(e)) == expected


@pytest.mark.parametrize(
    "c, expected",
    [
        (X * 32 + J < 64, "1"),
        (X * 32 + J < 63, "(((i mul 32) add j) lt 63)"),
        (X * 32 + J < 32, "(i lt 1)"),
        (F * 4 + J % 4 >= 8, "(f ge 2)"),
        (F + 1 < N, "(f lt (n sub 1))"),
        (N > F, "(f lt n)"),
        (F * 2 == 5, "0"),
        (F * 2 == N * 2, "(f eq n)"),
        (F != F, "0"),
        (Not(F < N), "(n le f)"),
        (all_of(F < 8, F < 9), "(f lt 8)"),
        (all_of(F < 8, F > 9), "0"),
        (any_of(F < 8, F >= 8), "1"),
        (all_of(J < 32, F < N), "(f lt n)"),
    ],
)
def test_conditions(an, c, expected):
    assert text(an.simplify(c)) == expected


def test_proofs_about_symbolic_extents(an):
    outer, inner = Var("xo"), Var("xi")
    an.bind(outer, 0, (N + 31) // 32)
    an.bind(inner, 0, 32)
    assert an.prove(outer * 32 < N) and an.prove(outer * 32 + inner < N + 31) and an.prove((N + 31) // 32 * 32 >= N)
    assert not an.prove(outer * 32 + inner < N)
    with an.constraint(outer * 32 + inner < N):
        assert (
            an.prove(outer * 32 + inner < N) and an.prove(inner < N - outer * 32) and an.prove(outer * 32 + inner <= N)
        )
    assert not an.prove(outer * 32 + inner < N)


def test_quotients_by_a_symbol_are_bounded_by_their_dividends():
    an = Analyzer()
    n, m, x, y = (Var(name) for name in "nmxy")
    an.assume(all_of(n >= 1, m >= 1))
    an.bind(x, 0, n)
    an.bind(y, 0, m)
    for goal in ((x * m + y) // n < m, (x + n - 1) // n <= 1, x * 2 // n < 2, (n * 4 - x) // n >= 3):
        assert an.prove(goal), goal
    for wrong in ((x * m + y) // n < m - 1, (x + n - 1) // n < 1, x * 2 // n < 1, (n * 4 - x) // n >= 4):
        assert not an.prove(wrong), wrong


def test_proofs_about_fused_loops(an):
    row, column = Var("row"), Var("column")
    an.bind(row, 0, N)
    an.bind(column, 0, M)
    an.bind(F, 0, N * M)
    assert an.prove(row * M + column < N * M) and an.prove(row * M + column >= 0)
    assert an.prove(F // M < N) and an.prove(F % M < M) and an.prove(F % M >= 0) and an.prove(F // M >= 0)
    assert text(an.simplify(F // M * M + F % M)) == "f" and text(an.simplify((row * M + column) // M)) == "row"
    assert text(an.simplify((row * M + column) % M)) == "column"


def test_divisible_extents_need_no_guard(an):
    outer, inner = Var("xo"), Var("xi")
    an.assume((N % 32).equal(0))
    an.bind(outer, 0, N // 32)
    an.bind(inner, 0, 32)
    assert an.prove(outer * 32 + inner < N)
    assert an.simplify(N // 32 * 32) is N or text(an.simplify(N // 32 * 32)) == "n"
    assert text(an.simplify((N + 31) // 32)) == "(n floordiv 32)" and text(an.simplify(N // 64)) == "(n floordiv 64)"
    assert text(an.simplify(N * 3 + 1)) == "((n mul 3) add 1)" and an.prove((N % 8).equal(0))


def test_facts_end_with_their_scope(an):
    with an.constraint((N % 32).equal(0)):
        assert text(an.simplify((N // 32 * 32 + F) // 7)) == "((n add f) floordiv 7)"
    assert text(an.simplify((N // 32 * 32 + F) // 7)) == "((((n floordiv 32) mul 32) add f) floordiv 7)"
    with an.constraint(F < 4), an.constraint(F >= 2):
        assert an.bounds(F) == (2, 3)
    with an.constraint(all_of(F // 4 < 3, F // 4 >= 1)):
        assert an.bounds(F) == (4, 11)
    assert an.bounds(F) == (None, None)


def test_a_divisor_is_not_taken_to_be_nonzero(an):
    for e in (N * 3 // N, F * N // N, (N - 1 + F * N) % N):
        assert an.simplify(e).op == ("floormod" if e.op == "floormod" else "floordiv")
    with an.constraint(N > 0):
        assert [text(an.simplify(e)) for e in (N * 3 // N, F * N // N, (N - 1 + F * N) % N)] == ["3", "f", "(n sub 1)"]


def test_values_in_memory_may_wrap(an):
    data = decl_buffer((64,), "int32", "A")
    x = data[J]
    for e in (x * 4 // 4, (x + 1) // 2, minimum(x + 1, x)):
        assert an.simplify(e) is e
    assert an.simplify(x + 1 > x) is not None and not an.prove(x + 1 > x)
    assert an.simplify(x + 1 - 1) is x or text(an.simplify(x + 1 - 1)) == text(x)
    narrow = decl_buffer((64,), "uint8", "B")
    assert an.prove(cast("int32", narrow[J]) * 4 // 4 >= 0) and an.bounds(cast("int32", narrow[J]) + 1) == (1, 256)
    unsigned = Var("u", "uint8")
    assert not an.prove(unsigned - 1 < unsigned) and not an.prove(unsigned + 1 > unsigned)


def test_facts_about_memory_do_not_outlive_an_expression(an):
    data = decl_buffer((64,), "int32", "A")
    with an.constraint(data[J] < 5):
        assert not an.prove(data[J] < 5)
    inside = if_then_else(data[J] < 5, minimum(data[J], 5), 0)
    assert text(an.simplify(inside)) == "if_then_else((Load lt 5), Load, 0)"


def test_a_load_stays_safe_where_its_condition_fails(an):
    data = decl_buffer((8,), "int32", "A")
    clamped = data[maximum(minimum(F, 7), 0)]
    for e in (select(F < 8, clamped, 0), all_of(F < 8, clamped >= 1), any_of(F >= 8, clamped >= 1)):
        assert an.simplify(e) is e


def test_calls_with_effects_are_kept_apart(an):
    draw = [intrinsic("call_extern", StringImm("rand"), dtype="int32") for _ in range(2)]
    e = draw[0] - draw[1]
    assert an.simplify(e) is e


def test_bounds_of_a_cast_end_with_their_scope(an):
    narrow = Cast("int32", Var("w", "int64"))
    with an.constraint(all_of(narrow.value >= 0, narrow.value < 8)):
        assert an.bounds(narrow) == (0, 7)
    assert an.bounds(narrow) == (-(2**31), 2**31 - 1)


def test_vector_conditions(an):
    lanes = Ramp(J * 8, IntImm(1), 8)
    assert an.prove(Binary("lt", lanes, Broadcast(IntImm(256), 8))) and an.prove(
        Binary("ge", lanes, Broadcast(IntImm(0), 8))
    )
    assert not an.prove(Binary("lt", lanes, Broadcast(IntImm(255), 8)))


def test_index_of_a_load_is_simplified(an):
    data = decl_buffer((64,), "float32", "A")
    out = an.simplify(data[(X * 32 + J) // 32 * 32 + (X * 32 + J) % 32] * 1.0)
    assert text(out.indices[0]) == "((i mul 32) add j)"


def test_mixed_widths(an):
    wide = Var("w", "int64")
    e = cast("int64", F * 4) + wide - cast("int64", F) * 4
    assert an.simplify(e) is wide
    assert an.simplify(cast("int64", F) * 4 + wide).dtype == "int64"
    assert isinstance(an.simplify(Cast("int32", wide) + 1).a, Cast)


def test_large_constants_wrap_in_values_and_stay_as_they_are_in_indices(an):
    e = F * 65536 * 65536 + J
    assert an.simplify(e) is e
    with an.places(False):
        assert text(an.simplify(e)) == "((f mul 0) add j)"


def test_nothing_to_do_gives_the_same_object(an):
    for e in (X * 32 + J, F < N, F // 4, F % 4, minimum(F, N)):
        assert an.simplify(e) is e


def test_linear():
    terms, const = linear((X * 4 + J - 3) * 2 + X + J // 2)
    assert {text(a): k for a, k in terms.items()} == {"i": 9, "j": 2, "(j floordiv 2)": 1} and const == -6


def test_proofs_about_fused_ragged_tiles():
    an, n, m, f = Analyzer(), Var("n"), Var("m"), Var("f")
    rows, columns = (n + 31) // 32, (m + 31) // 32
    an.assume_nonneg(n)
    an.assume_nonneg(m)
    an.bind(f, 0, rows * columns)
    row, column = f // columns, f % columns
    assert an.prove(row < rows) and an.prove(column < columns) and an.prove(row * 32 < n) and an.prove(column * 32 < m)
    assert not an.prove(row * 32 + 31 < n)


def test_proofs_about_three_fused_symbolic_loops():
    an, f, i, j, k = Analyzer(), Var("f"), Var("i"), Var("j"), Var("k")
    n, m, h = Var("n"), Var("m"), Var("h")
    for v, extent in ((i, n), (j, m), (k, h)):
        an.assume_nonneg(extent)
        an.bind(v, 0, extent)
    an.bind(f, 0, n * m * h)
    flat = (i * m + j) * h + k
    assert an.prove(flat < n * m * h) and an.prove(flat >= 0)
    assert [text(an.simplify(e)) for e in (flat // (m * h), flat // h % m, flat % h)] == ["i", "j", "k"]
    assert an.prove(f // (m * h) < n) and an.prove(f // h % m < m) and an.prove(f // h // m < n)
    assert an.simplify(f // (m * h) * (m * h) + f // h % m * h + f % h) is f


def test_proofs_about_partitioned_loops():
    an, n, outer, inner = Analyzer(), Var("n"), Var("xo"), Var("xi")
    an.assume_nonneg(n)
    an.bind(outer, 0, (n + 31) // 32)
    an.bind(inner, 0, 32)
    assert an.prove(minimum(n - outer * 32, 32) >= 1) and an.prove((n + 31) // 32 <= (n + 63) // 32)
    assert an.prove((n + 31) // 32 * 32 - n < 32) and an.prove(n // 4 * 4 <= n)
    assert not an.prove(outer * 32 + 31 < n)
    with an.constraint(outer < n // 32):
        assert an.prove(outer * 32 + inner < n)
    with an.constraint(n <= 128):
        assert an.prove(outer < 4) and an.bounds(outer * 32 + inner) == (0, 127)


def test_same_is_what_structural_keys_say():
    """Over all pairs of some expressions: of equal and other operators, constants, types, buffers and parts."""
    i, j = Var("i"), Var("j")
    a, b = decl_buffer((4,), "int32", name="A"), decl_buffer((4,), "int32", name="B")

    def make():
        return [i, j, i + 1, i + j, j + i, (i + 1) * 2, IntImm(0), IntImm(0, "int64"), FloatImm(0.0), FloatImm(-0.0),
                a[i], b[i], a[j], a[i] + 1, Load(a, (i,), i < 2), Load(a, (i,), i < 3), i < j,
                if_then_else(i < j, i, j), if_then_else(i < j, j, i), select(i < j, i, j), cast("int64", i)]
    for x in make():
        for y in make():
            assert same(x, y) == (structural_key(x) == structural_key(y)), (x, y)


def test_a_maximum_is_not_less_than_either_operand_and_a_minimum_not_greater(an):
    for x, y in ((F, N), (N, F)):
        assert an.prove(maximum(x, y) >= F) and an.prove(minimum(x, y) <= F)
    assert not an.prove(maximum(F, N) <= F) and not an.prove(minimum(F, N) >= F)


def test_the_end_of_a_loop_at_the_least_of_two_bounds_is_below_each():
    """v < min((n + 31) // 32 - q * 32, 32): the first element of tile v of slab q exists."""
    n, q, v = (Var(name, "int64") for name in "nqv")
    an = Analyzer()
    an.assume_nonneg(n)
    with an.loop(q, 0, (n + 1023) // 1024), an.loop(v, 0, minimum((n + 31) // 32 - q * 32, IntImm(32, "int64"))):
        assert an.prove(v * 32 + q * 1024 < n)
        assert an.prove(v < 32)
        assert not an.prove(v * 32 + q * 1024 + 1 < n)
    with an.loop(v, maximum(n, q), 8):
        assert an.prove(v >= n) and an.prove(v >= q) and not an.prove(v > n)


def test_bounds_of_an_index_that_its_type_does_not_hold(an):
    most = Binary("max", Binary("mul", IntImm(3), IntImm(2**30), "int32"), F, "int32")
    low, high = an.bounds(most)
    assert high is None and (low is None or low <= 3 * 2**30)
    with an.places(False):
        assert an.bounds(most) == (-(2**31), 2**31 - 1)
