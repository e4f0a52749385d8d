"""The oracle notices wrong functions, and the comparison that judges it is right itself."""
from __future__ import annotations

import numpy as np
import pytest

from tilewright import te
from tilewright.schedule import Schedule
from tilewright.support.errors import unchecked
from tilewright.te import create_prim_func
from tilewright.tir import interp
from tilewright.tir.expr import IntImm
from tilewright.tir.node import rewrite
from tilewright.tir.stmt import PARALLEL, For

from . import values
from .mutants import FORMS, comparable, in_form, run_mutants, scheduled
from .mutations import OPERATORS, mutations
from .symbolic import equivalent, outputs, steady
from .symbolic_memory import Conflict
from .terms import Term, Terms


def test_no_mutant_is_missed():
    made = run_mutants(24, seed=0, jobs=2)
    assert not [m for m in made if m.verdict == "missed"]
    assert {m.operator for m in made} == set(OPERATORS) and {m.form for m in made} == set(FORMS)


def number(value, arrays, scalars):
    """The value of a term, with the arguments' elements as they are in arrays."""
    if not isinstance(value, Term):
        return value
    if value.op == "argument":
        position, element = value.args
        return arrays[position].reshape(-1)[element]
    if value.op == "scalar":
        return scalars[value.args[0]]
    args = value.args
    if value.op in ("add", "mul", "min", "max"):
        items = [number(x, arrays, scalars) for x, count in args[1] for _ in range(count)]
        return {"add": sum, "mul": np.prod, "min": min, "max": max}[value.op](items)
    if value.op == "sub":
        return number(args[1], arrays, scalars) - number(args[2], arrays, scalars)
    if value.op == "float":
        return args[1]
    if value.op == "cast":
        return np.dtype(values.numpy_dtype(args[0])).type(number(args[1], arrays, scalars))
    raise NotImplementedError(value.op)


@pytest.mark.parametrize("form", ["block", "simple", "flat"])
def test_the_comparison_agrees_with_the_interpreter(form):
    """On functions that nobody changed, the terms of the outputs have the values that the interpreter computes."""
    compared = 0
    for seed in range(64):
        found = scheduled(seed)
        if found is None or any(i.dtype != "int32" for i in found[0].inputs):
            continue
        program, sch = found
        func = in_form(sch.func, form)
        if not comparable(func):                          # threads may share a reduction: the symbols do not
            continue
        args, scalars, _ = program.data(0)
        arrays = [a.copy() for a in args]
        given = dict(enumerate(scalars, len(args)))
        interp.run(func, *args, *scalars)
        for position, terms in outputs(func, Terms()).items():
            try:
                got = [int(number(t, arrays, given)) for t in terms]
            except NotImplementedError:
                continue
            want = args[position].reshape(-1).astype("int64")
            bits = args[position].dtype.itemsize * 8
            assert all((a - int(b)) % 2**bits == 0 for a, b in zip(got, want, strict=True)), (seed, position)
            compared += 1
    assert compared >= 5


def product():
    a = te.placeholder((4, 6), "float32", name="A")
    b = te.placeholder((6, 5), "float32", name="B")
    k = te.reduce_axis((0, 6), name="k")
    c = te.compute((4, 5), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return create_prim_func([a, b, c])


def test_schedules_do_not_change_what_is_compared():
    func = product()
    sch = Schedule(func)
    i, j, k = sch.get_loops("C")
    io, _ = sch.split(i, [None, 3])
    sch.reorder(k, io, j)
    assert equivalent(func, sch.func)
    for form in ("flat", "simple"):
        assert equivalent(func, in_form(sch.func, form))


def changed(func, loop, **fields):
    """func with fields of the loop of that name changed."""
    def change(n):
        return n.replace(**fields) if isinstance(n, For) and n.loop_var.name == loop else None
    return func.with_body(rewrite(func.body, change))


def test_a_block_that_runs_before_its_input_is_ready_is_seen():
    """D = C * 2 below the loop of the sum C: right in the end, but each run stores another value."""
    a = te.placeholder((4, 6), "float32", name="A")
    k = te.reduce_axis((0, 6), name="k")
    c = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="C")
    sch = Schedule(create_prim_func([a, te.compute((4,), lambda i: c[i] * 2.0, name="D")]))
    assert steady(sch.func, {})
    with unchecked():
        sch.reverse_compute_at("D", sch.get_loops("C")[1])
    assert not steady(sch.func, {})


def test_a_shorter_reduction_is_another_function():
    func = product()
    shorter = changed(func, "k", extent=IntImm(5))
    assert not equivalent(func, shorter)


@pytest.mark.parametrize(("loop", "conflict"), [("i", False), ("j", False), ("k", True)])
def test_iterations_that_meet_conflict(loop, conflict):
    func = product()
    parallel = changed(func, loop, kind=PARALLEL)
    assert equivalent(func, parallel) != conflict
    if conflict:
        with pytest.raises(Conflict):
            outputs(parallel, Terms())


def test_terms_that_are_always_equal_are_one_object():
    t = Terms()
    x, y, c = (t.make("argument", 0, k) for k in range(3))
    assert t.binary("sub", "int32", x, x) == 0 and t.binary("sub", "float32", x, x) is t.make("float", "float32", 0.0)
    assert t.binary("min", "uint8", x, 0) == 0 and t.binary("max", "int8", 127, x) == 127
    assert isinstance(t.binary("min", "int8", x, 0), Term) and isinstance(t.binary("sub", "int32", x, y), Term)
    assert t.choose(t.binary("ne", "int32", x, 0), x, 0) is x and t.choose(t.binary("eq", "int32", x, y), x, y) is y
    assert t.choose(t.binary("ne", "int32", x, 1), x, 0) is not x
    both = t.binary("mul", "int32", t.choose(c, x, 0), t.choose(c, y, 1))
    assert both is t.choose(c, t.binary("mul", "int32", x, y), 0)
    assert t.call("floor", "float32", t.make("float", "float32", 1.5)) is t.make("float", "float32", 1.0)


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_change_one_thing(operator):
    """Every mutation gives a function with another text; those of a plain product are enumerated."""
    sch = Schedule(product())
    i, _ = sch.split(sch.get_loops("C")[0], [None, 3])
    found = mutations(sch.func, operator)
    assert found and all(str(m.apply()) != str(sch.func) for m in found)
    assert len({(m.text, str(m.apply())) for m in found}) == len(found)
