"""The table of rules: what matches and in which order, rules of one's own, and what a wrong one is told."""
from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from fuzz import check as fuzz
from fuzz.generate import program as random_program

import tilewright as tw
from tilewright import rules, te, tir, topi
from tilewright.rules.table import Match, Rule
from tilewright.schedule import Schedule
from tilewright.support.errors import ArgumentError

from .products import S8, ZEN4, extremes
from .products import product as low_bit_product

TARGET = tw.target("llvm -num-cores=2 -opt-level=1")


def product(epilogue=True):
    """D = max(A @ B, 0), or A @ B."""
    a, b = te.placeholder((40, 30), name="A"), te.placeholder((30, 50), name="B")
    k = te.reduce_axis((0, 30), name="k")
    c = te.compute((40, 50), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((40, 50), lambda i, j: te.max(c[i, j], 0.0), name="D")
    return te.create_prim_func([a, b, d if epilogue else c])


def doubled(n=64):
    a = te.placeholder((n,), name="A")
    return te.create_prim_func([a, te.compute((n,), lambda i: a[i] * 2.0, name="B")])


def names(found):
    return [(rule.name, tuple(b.rv.name for b in match.blocks)) for rule, match in found]


@pytest.fixture
def own():
    """`rules.rule`; what the test puts in the table is taken out again."""
    before = dict(rules.RULES)
    yield rules.rule
    rules.RULES.clear()
    rules.RULES.update(before)


def scaled(sch, match, target):
    """Write out the elements of a small block.

    They are few.
    """
    for loop in sch.get_loops(match.first.rv):
        sch.unroll(loop)


ELEMENTWISE = rules.every("elementwise")


# ---- what matches

def test_every_rule_of_the_package_is_told_apart():
    for phase in ("rewrite", "prepare", "schedule"):
        of_phase = [r for r in rules.RULES.values() if r.phase == phase]
        assert of_phase and all(r.doc for r in of_phase)
        last = [r for r in of_phase if r.priority == 10 and phase == "schedule"]     # one for each kind of block
        priorities = [r.priority for r in of_phase if r not in last]
        priorities += [r.with_epilogue for r in of_phase if r.with_epilogue is not None]
        assert not [n for n, rules_of_it in Counter(priorities).items() if rules_of_it > 1], f"priorities of {phase}"
    assert {r.name for r in last} == {"elementwise", "plain_reduction", "step"} and rules.are_built_in()


def test_all_rules_that_match_in_order():
    found = list(rules.matches(Schedule(product()), TARGET))
    both, alone = ("C", "D"), ("C",)
    assert names(found) == [("contraction", both), ("reduction", both), ("contraction", alone), ("reduction", alone),
                            ("plain_reduction", alone)]
    assert found[0][1].epilogue.name == "D" and found[2][1].epilogue is None
    assert names(rules.matches(Schedule(doubled()), TARGET)) == [("elementwise", ("B",))]
    assert list(rules.matches(Schedule(doubled()), TARGET, [])) == []
    assert list(rules.matches(Schedule(doubled()), tw.target("cuda"))) == []
    assert names(rules.matches(Schedule(product()), TARGET, phase="prepare")) == []


def test_the_first_that_is_legal_is_taken():
    work = rules.Scheduling(product(), TARGET)
    assert [b.rv.name for b in work.left] == ["C", "D"] and not work.decisions
    first = names(work.matches())[0]
    work.finish()
    assert [(d.rule, d.blocks) for d in work.decisions] == [first] and not work.left
    assert str(work.schedule) == str(rules.apply_rules(product(), TARGET))


@pytest.mark.parametrize("place", range(5))
def test_another_rule_than_the_first(place):
    """Each that matches a product is right."""
    work = rules.Scheduling(product(), TARGET)
    assert work.take(*list(work.matches())[place])
    work.finish()
    assert work.decisions[0].rule == names(rules.matches(Schedule(product()), TARGET))[place][0]
    a, b = (np.random.default_rng(k).random(shape, "float32") for k, shape in enumerate([(40, 30), (30, 50)]))
    got = np.zeros((40, 50), "float32")
    tw.build(work.schedule.func, target=TARGET)(a, b, got)
    np.testing.assert_allclose(got, a @ b, rtol=1e-5)


def later(func):
    """The function for all values of its axes but the first."""
    def step(n):
        if isinstance(n, tir.For):
            return n.replace(min=n.min + 1, extent=n.extent - 1)
        return n.replace(iter_vars=tuple(iv.replace(dom=tir.Range(iv.domain.min + 1, iv.domain.extent - 1))
                                         for iv in n.iter_vars)) if isinstance(n, tir.Block) else None
    return func.with_body(tir.rewrite(func.body, step))


def places_of_the_largest():
    a = te.placeholder((4, 300), name="A")
    return te.create_prim_func([a, topi.argmax(a, axis=1)])


def convolution():
    x, w = te.placeholder((1, 32, 30, 30), name="x"), te.placeholder((32, 32, 3, 3), name="w")
    return te.create_prim_func([x, w, topi.conv(x, w)])


REWRITTEN = {"signed_product": lambda: low_bit_product(12, 16, 24, S8), "winograd_form": convolution,
             "lanes_of_places": places_of_the_largest}


@pytest.mark.parametrize("name", [r.name for r in rules.RULES.values() if r.phase == "rewrite"])
def test_only_axes_that_begin_at_0_are_replaced(name):
    """A rule that rewrites a function has axes of its own for those of the block."""
    def found(func):
        return [rule.name for rule, _ in rules.matches(Schedule(func), tw.target(ZEN4), phase="rewrite")]
    func = REWRITTEN[name]()
    assert found(func) == [name] and found(later(func)) == []


def test_a_product_as_a_step_is_left_in_its_scan():
    """The first step is given, and the axis of the others begins behind it."""
    x, w = te.placeholder((3, 12, 24), "int8", name="X"), te.placeholder((3, 16, 24), "int8", name="W")
    state, k = te.placeholder((3, 12, 16), "int32"), te.reduce_axis((0, 24), name="k")
    start = te.compute((1, 12, 16), lambda t, i, j: te.const(5, "int32"))
    step = te.compute(state.shape, lambda t, i, j: te.sum(
        x[t, i, k].astype("int32") * w[t, j, k].astype("int32"), axis=k))
    a, b, got = extremes("int8", (3, 12, 24)), extremes("int8", (3, 16, 24), 1), np.zeros((3, 12, 16), "int32")
    tw.compile([x, w, te.scan(start, step, state)], target=TARGET)(a, b, got)
    wanted = np.einsum("tik,tjk->tij", a.astype("int32"), b.astype("int32"))
    wanted[0] = 5
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("seed", range(7100, 7115))
def test_random_programs_by_rules_in_random_order(seed):
    source, order = random_program(seed), random.Random(seed)
    work = rules.Scheduling(source.function(), TARGET)
    while work.left:
        found = list(work.matches())
        order.shuffle(found)
        if not any(work.take(rule, match) for rule, match in found):
            work.leave()
    fuzz.check_schedule(source, work.schedule, fuzz.Report(seed), str(TARGET))


# ---- rules of one's own

def test_a_rule_of_ones_own(own):
    own("scaled", matches=ELEMENTWISE, priority=95, targets=("cpu",))(scaled)
    assert names(rules.matches(Schedule(doubled()), TARGET)) == [("scaled", ("B",)), ("elementwise", ("B",))]
    e = tw.explain(doubled(), TARGET)
    assert "# B: scaled. Write out the elements of a small block.\n" in str(e) and "unroll" in str(e)
    a, b = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    tw.compile(doubled(), target=TARGET)(a, b)
    np.testing.assert_array_equal(b, a * 2)
    rules.remove("scaled")
    assert [d.rule for d in tw.explain(doubled(), TARGET).decisions] == ["elementwise"] and rules.are_built_in()


@pytest.mark.parametrize("targets, matches", [
    ((), True), (("llvm",), True), (("cpu", "cuda"), True), (("cuda",), False)])
def test_it_is_for_some_targets(own, targets, matches):
    own("scaled", matches=ELEMENTWISE, priority=95, targets=targets)(scaled)
    assert ("scaled" in dict(names(rules.matches(Schedule(doubled()), TARGET)))) is matches


def test_where_a_primitive_refuses_the_next_rule_follows(own):
    @own("hasty", matches=ELEMENTWISE, priority=95)
    def hasty(sch, match, target):
        """Split, and then run a loop on threads that is gone."""
        (loop,) = sch.get_loops(match.first.rv)
        sch.split(loop, [None, 4])
        sch.parallel(loop)
    decision, = tw.explain(doubled(), TARGET).decisions
    assert decision.rule == "elementwise" and decision.refused[0][0] == "hasty"
    assert str(rules.apply_rules(doubled(), TARGET).trace).count("split") == 1


def test_it_takes_the_block_that_reads_a_result(own):
    @own("joined", matches=rules.every("reduction"), priority=1, with_epilogue=95)
    def joined(sch, match, target):
        """Compute each result where it is read."""
        sch.compute_at(match.first.rv, sch.get_loops(match.epilogue)[-1])
    found = names(rules.matches(Schedule(product()), TARGET))
    assert found[0] == ("joined", ("C", "D")) and found[-1] == ("joined", ("C",))
    assert [(d.rule, d.blocks) for d in tw.explain(product(), TARGET).decisions] == [("joined", ("C", "D"))]
    assert tw.explain(product(epilogue=False), TARGET).decisions[0].rule == "contraction"


def test_it_may_plan_and_take_what_no_other_rule_does(own):
    """An argmax is two results of one block: opaque to the rules of the package."""
    a, k = te.placeholder((20, 50), "int32", name="A"), te.reduce_axis((0, 50), name="k")
    largest = te.comm_reducer(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1])),
        lambda t0, t1: (te.const(-1, t0), te.min_value(t1)))
    index, value = te.compute((20,), lambda i: largest((k.var, a[i, k]), axis=k), name="argmax")
    func = te.create_prim_func([a, index, value])

    @own("several", matches=lambda work: work.match(plan=2) if work.kind == "opaque" else None, priority=10)
    def several(sch, match, target):
        """Cut the results in parts."""
        sch.split(sch.get_loops(match.first.rv)[0], [match.plan, None])
    assert [d.rule for d in tw.explain(func, TARGET).decisions] == ["several"]
    x, found, most = np.random.default_rng(0).integers(-9, 9, (20, 50)).astype("int32"), *np.zeros((2, 20), "int32")
    tw.compile(func, target=TARGET)(x, found, most)
    np.testing.assert_array_equal(found, x.argmax(1))


def test_it_may_rewrite_the_function(own):
    @own("other", matches=lambda work: work.match(), priority=5, phase="rewrite")
    def other(sch, match, target):
        """Compute something else."""
        return doubled(32)
    e = tw.explain(doubled(64), TARGET)
    assert [d.rule for d in e.rewrites] == ["other"] and "Buffer((32,)" in str(e.func)


def test_what_it_makes_is_not_kept_in_the_cache(own, monkeypatch, tmp_path):
    for name, value in (("VERIFY", "0"), ("CACHE", "1"), ("CACHE_DIR", str(tmp_path))):
        monkeypatch.setenv(f"TILEWRIGHT_{name}", value)
    own("scaled", matches=ELEMENTWISE, priority=95)(scaled)
    func = doubled(67)
    sources = [tw.compile(func, target=TARGET).get_source("tir")]
    before = sorted(tmp_path.rglob("*"))
    rules.remove("scaled")
    sources.append(tw.compile(func, target=TARGET).get_source("tir"))
    assert not [p for p in before if p.is_file()] and sources[0] != sources[1]


# ---- wrong ones

def lacks_words(sch, match, target):
    pass


@pytest.mark.parametrize("change, apply, message", [
    ({"name": "two words"}, scaled, r"rule\('two words'\): its name is no identifier"),
    ({"name": ["x"]}, scaled, "its name is no identifier"),
    ({"name": "rows"}, scaled, r"rule\('rows'\): there is a rule of this name, which rules.remove\(name\) takes out"),
    ({"matches": 3}, scaled, r"matches is no function of \(work\)"),
    ({"matches": lambda: None}, scaled, r"matches is no function of \(work\)"),
    ({}, lambda sch: None, r"it decorates a function of \(schedule, match, target\)"),
    ({}, None, r"it decorates a function of \(schedule, match, target\)"),
    ({}, lacks_words, r"it has no docstring, whose first paragraph explain\(...\) shows"),
    ({"phase": "after"}, scaled, "phase is one of rewrite, prepare, schedule"),
    ({"priority": "high"}, scaled, "priorities are integers"), ({"with_epilogue": 1.5}, scaled, "priorities are"),
    ({"targets": "llvm"}, scaled, r'targets is a tuple of kinds or keys, such as \("llvm",\) or \("cpu",\)'),
    ({"targets": (3,)}, scaled, "targets is a tuple")])
def test_wrong_rules(own, change, apply, message):
    fields = {"name": "scaled", "matches": ELEMENTWISE, "priority": 95, **change}
    with pytest.raises(ArgumentError, match=message):
        own(fields.pop("name"), **fields)(apply)
    assert rules.are_built_in()


@pytest.mark.parametrize("given", [True, 3, Match(()), "other"])
def test_a_match_that_is_none(own, given):
    other, = rules.Scheduling(doubled(), TARGET).left
    own("scaled", matches=lambda work: Match((other,)) if given == "other" else given, priority=95)(scaled)
    with pytest.raises(ArgumentError, match=r"rule scaled: matches\(work\) gave .*\n\nhint: it gives work.match"):
        rules.apply_rules(doubled(), TARGET)


def test_a_rule_that_is_not_there():
    with pytest.raises(ArgumentError, match="there is no rule 'tiles'\n\nhint: the rules are elementwise, columns, "):
        rules.remove("tiles")
    assert isinstance(rules.RULES["rows"], Rule)
