"""A class of nodes says once what it holds: a kind of statement defined here is seen by all that reads the table."""
import importlib
import pkgutil
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from tir_programs import function

import tilewright
from tilewright.lowering.copying import specialize
from tilewright.support.errors import StructuralError
from tilewright.tir import (
    Allocate,
    Block,
    BlockRealize,
    Call,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    IntImm,
    Let,
    LetStmt,
    Load,
    MatchBuffer,
    PrimFunc,
    Stmt,
    Store,
    Var,
    children,
    decl_buffer,
    interp,
    loop,
    map_children,
    rewrite,
    seq,
    structural_equal,
    structural_hash,
    substitute,
    verify,
    walk,
)
from tilewright.tir.accesses import effects, uses, uses_below
from tilewright.tir.interp import statements as interpreter
from tilewright.tir.node import same, statements, sub_statements
from tilewright.tir.printer import statements as printer
from tilewright.tir.stmt import map_sub_statements
from tilewright.tir.structure import STRUCTURE, Effect, structure
from tilewright.tir.symbols import defined, expressions, free_vars, fresh_copy, replace_buffers, uses_any


@structure(defines=("var",), within=("indices", "value"), labels=("title",), effect=Effect.READS | Effect.WRITES)
@dataclass(slots=True, eq=False, repr=False)
class Each(Stmt):
    """for var in range(extent): buffer[indices] += value; and then `after`."""
    title: str
    var: Var
    extent: Expr
    buffer: tilewright.tir.Buffer
    indices: tuple[Expr, ...]
    value: Expr
    after: Stmt | None = None


n = Var("n")
A, B = decl_buffer((8,), "int32", "A"), decl_buffer((8,), "int32", "B")


def each(title="first", extent=n, buffer=A, scale=2, after=None):
    v = Var("v")
    return Each(title, v, extent, buffer, (v,), Load(B, (v,)) * scale, after)


def test_the_row_of_a_class():
    row = STRUCTURE[Each]
    assert row.children == ("extent", "indices", "value", "after") and row.statements == ("after",)
    assert row.symbols == ("var", "buffer") and row.compared == ("extent", "buffer", "after", "var", "indices", "value")
    assert row.spoken == ("extent", "buffer", "indices", "value")


def test_rows_of_the_ir():
    assert STRUCTURE[For].children == ("min", "extent", "body") and STRUCTURE[For].within == ("body",)
    assert STRUCTURE[Block].statements == ("init", "body") and "name" not in STRUCTURE[Block].compared
    assert STRUCTURE[Load].symbols == ("buffer",) and STRUCTURE[Load].effect is Effect.READS
    assert {cls for cls in (For, Let, LetStmt, Allocate, Block, MatchBuffer, PrimFunc, Store, IfThenElse, BlockRealize)
            if STRUCTURE[cls].defines} == {For, Let, LetStmt, Allocate, Block, MatchBuffer, PrimFunc}
    x = Var("x")
    assert [effects(e) for e in (A[x], Call("exp", (x,), "float32"), Call("call_extern", (x,), "int32"), x + 1)] == [
        Effect.READS, Effect.NONE, Effect.CALLS, Effect.NONE]


def test_traversals_see_a_new_kind():
    s = each(after=each("second"))
    v, after = s.var, s.after
    assert list(children(s)) == [s.extent, v, s.value, after]
    assert [type(x).__name__ for x in walk(s)][:6] == ["Each", "Var", "Var", "Binary", "Load", "Var"]
    whole = loop(Var("i"), 2, s)
    assert list(statements(whole)) == [whole, s, after] and list(sub_statements(s)) == [after]
    assert list(sub_statements(after)) == [] and expressions(s) == [n, v, s.value]
    assert map_children(s, lambda x: x) is s and rewrite(s, lambda x: None) is s
    doubled = rewrite(s, lambda x: IntImm(4) if isinstance(x, IntImm) and x.value == 2 else None)
    assert [x.value.b.value for x in (doubled, doubled.after)] == [4, 4] and doubled.var is v
    assert substitute(s, {n: IntImm(8)}).after.extent.value == 8
    assert map_sub_statements(s, lambda x: Evaluate(n)).after.value is n


def test_structure_is_compared_up_to_what_a_new_kind_defines():
    assert structural_equal(each(), each("other")) and structural_hash(function(each(extent=IntImm(2)), A, B)) == (
        structural_hash(function(each(extent=IntImm(2)), A, B)))
    for other in (each(scale=3), each(extent=IntImm(2)), each(buffer=B), each(after=Evaluate(n))):
        assert not structural_equal(each(), other)
    s = each()
    assert not same(s, each()) and same(s, s.replace(title="other")) and same(s.value, Load(B, (s.var,)) * 2)


def test_copies_have_definitions_of_their_own():
    own = decl_buffer((n,), "int32", "own")
    s = Allocate(own, each(buffer=own, after=each("second")))
    copy = fresh_copy(s, lambda title: f"{title}_1")
    assert structural_equal(copy, s) and copy.buffer is copy.body.buffer is not own and copy.buffer.data is not own.data
    assert [x.title for x in walk(copy) if isinstance(x, Each)] == ["first_1", "second_1"]
    assert copy.body.after.buffer is A and copy.body.extent is n
    assert not {x.var for x in walk(copy) if isinstance(x, Each)} & {x.var for x in walk(s) if isinstance(x, Each)}
    assert copy.body.indices[0] is copy.body.var
    folded = specialize(s.body, {n: IntImm(3)}, fresh=True)
    assert folded.extent.value == 3 and folded.indices[0] is folded.var is not s.body.var
    assert specialize(s.body, {n: IntImm(3)}).var is s.body.var
    assert replace_buffers(s, {A: B}).body.after.buffer is B


def test_views_and_arguments_are_copied_with_their_sizes():
    offset = Var("offset")
    view = decl_buffer((4,), "int32", "view", elem_offset=offset)
    body = Block("b", (), (), (), Store(view, offset, (IntImm(0),)),
                 match_buffers=(MatchBuffer(view, tilewright.tir.BufferRegion(A, ())),))
    copy = fresh_copy(body, lambda name: f"{name}_1")
    made = copy.match_buffers[0].buffer
    assert copy.name == "b_1" and made is copy.body.buffer is not view
    assert copy.body.value is made.elem_offset is not offset
    func = function(loop(Var("i"), n, Store(A, n, (IntImm(0),))), A, n)
    again = fresh_copy(func)
    assert structural_equal(again, func) and again.params[1] is again.body.extent is not n
    assert again.body.body.buffer is again.buffer_map[again.params[0]] is not A


def test_free_variables():
    s, m = each(), Var("m")
    assert defined(s) == [s.var] and list(free_vars(s)) == [n]
    assert list(free_vars(each(extent=s.var, after=Evaluate(m)))) == [s.var, m]
    assert list(free_vars(Allocate(decl_buffer((m,), "int32"), s))) == [m, n]
    assert list(free_vars(Allocate(decl_buffer((4, 4), "int32", strides=(m, 1)), s))) == [m, n]
    x = Var("x")
    assert list(free_vars(Let(x, x + m, x * n))) == [x, m, n] and list(free_vars(Let(x, m, x * n))) == [m, n]
    assert uses_any(s, {n}) and not uses_any(s, {m}) and not uses_any(s, set())


def test_accesses_of_a_new_kind():
    s = each(after=Store(B, IntImm(1), (IntImm(0),)))
    assert [(u.buffer, u.field, u.reads, u.writes) for u in uses(s)] == [
        (B, "value", True, False), (A, "buffer", True, True)]
    assert uses(s)[1].indices == s.indices and [u.buffer for u in uses_below(s)] == [B, A, B]


def written_out(s):
    """What Each means, in other statements."""
    step = Store(s.buffer, Load(s.buffer, s.indices) + s.value, s.indices)
    return seq([loop(s.var, s.extent, step), *([] if s.after is None else [s.after])])


def test_the_verifier_needs_no_rule_and_the_others_one_each(monkeypatch):
    func = function(each(extent=IntImm(8), after=each("second", IntImm(4))), A, B)
    verify(func, "loop")
    with pytest.raises(KeyError):
        str(func)
    monkeypatch.setitem(printer._STMT, Each, lambda p, s: p.line(f"each {s.title}", s))
    assert "each first" in str(func)
    wrong = each(extent=IntImm(8))
    wrong = wrong.replace(after=Evaluate(wrong.var))
    with pytest.raises(StructuralError, match="v is used, but nothing defines it here"):
        verify(function(wrong, A, B), "loop")
    with pytest.raises(StructuralError, match="nothing defines the buffer B here"):
        verify(function(each(extent=IntImm(8)), A), "loop")
    a, b = np.arange(8, dtype="int32"), np.arange(8, dtype="int32")
    monkeypatch.setitem(interpreter._STATEMENTS, Each, lambda c, s: c.stmt(written_out(s)))
    interp.run(func, a, b)
    assert a.tolist() == [k * (5 if k < 4 else 3) for k in range(8)]


# What a new kind of statement needs besides its class. Scripts are parsed by the statements of Python: a rule in
# script/parser.py. Passes that rewrite one kind name it, and leave others alone.
NEEDED = {"tilewright.tir.printer.statements", "tilewright.tir.interp.statements"}
BACK_ENDS = "tilewright.codegen."
# Tables with rules for what more than the structure is known of; other kinds are copied, verified, not vectorised.
SPECIAL = {"tilewright.lowering.copying", "tilewright.lowering.vector_code", "tilewright.tir.verify.function"}


def test_the_tables_that_have_a_rule_for_each_kind_of_statement():
    for module in pkgutil.walk_packages(tilewright.__path__, "tilewright."):
        if module.name.split(".")[1] in ("tir", "arith", "schedule", "lowering", "codegen"):
            importlib.import_module(module.name)
    found = {name for name, module in sys.modules.items() if name.startswith("tilewright.")
             for value in vars(module).values() if type(value) is dict and {Store, For, IfThenElse} <= value.keys()}
    assert {name for name in found if not name.startswith(BACK_ENDS)} == NEEDED | SPECIAL
    assert any(name.startswith(BACK_ENDS) for name in found)
