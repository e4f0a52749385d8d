"""Defects in the compiler that `tw.bisect` has to find: `python -m tests.graph.bisect_defects --defects 50 --seed 0`.

One at a time is planted in what the models of `bisect_models.py` run: in a pass over graphs, the folding of constants,
a rule that rewrites, a primitive as the rules use it, a lowering pass, the preparation of constants, code generation,
the plan, or the te rule of an operator. A defect counts where the result of a model is wrong by it. Then bisect, in the
same process, has to name that place. Prints one line for each, and found / planted; the exit status is 1 where one is
not found.
"""
from __future__ import annotations

import argparse
import ast
import collections
import json
import os
import random
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import tilewright as tw
from tests.fuzz.compiler_mutations import mutations
from tests.fuzz.planting import Functions, plant
from tests.fuzz.warm import PASSED, fork, wait
from tests.graph.bisect_models import MODELS, inputs_of
from tilewright import te
from tilewright.graph.compile import LOWER, SIMPLIFY, build_function
from tilewright.graph.culprit import difference
from tilewright.graph.evaluate import Evaluation
from tilewright.graph.ir.callees import Operator
from tilewright.lowering.passes import CPU
from tilewright.rules.table import RULES
from tilewright.schedule.primitive import PRIMITIVES

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120                                            # for a defect
WRONG = 1e-2                                             # of a result, over its largest element


@dataclass(frozen=True)
class Place:
    """A module in which defects are planted, and what bisect may call the step: names, where these say it."""
    kind: str
    path: str
    names: frozenset[str] = frozenset()


def places():
    """The modules that belong to one step, or to the steps of one family."""
    def path(module):
        return f"{module.replace('.', '/')}.py"
    found = []

    def add(kind, rows):
        own = collections.defaultdict(set)
        for name, module in rows:
            own[path(module)].add(name)
        found.extend(Place(kind, p, frozenset(names)) for p, names in sorted(own.items()))
    add("graph pass", [(p.__name__, p.__module__) for p in (*SIMPLIFY, *LOWER)
                       if ".passes." in p.__module__])
    add("graph pass", [(name, "tilewright.graph.passes.access") for name in ("fuse", "sink_views")])
    add("graph pass", [("fold_constants", "tilewright.graph.passes.fold")])
    add("lowering pass", [(p.name, p.run.__module__) for p in CPU
                          if p.run.__module__.startswith("tilewright.lowering")])
    add("preparation", [("hoist_constants", "tilewright.lowering.hoist_constants")])
    add("primitive", [(name, f.__module__) for name, f in PRIMITIVES.items()])
    add("rule", [(r.name, r.apply.__module__) for r in RULES.values() if r.phase == "rewrite"])
    add("code generation", [("", f"tilewright.codegen.llvm.{p.stem}")
                            for p in sorted((ROOT / "tilewright/codegen/llvm").glob("*.py")) if p.stem != "__init__"])
    add("plan", [("", f"tilewright.graph.{m}") for m in ("memory", "plan.plan", "plan.executable", "passes.native")])
    add("operator", [("", f"tilewright.topi.{p.stem}") for p in sorted((ROOT / "tilewright/topi").glob("*.py"))
                     if p.stem not in ("__init__", "shapes", "types")])
    return found


# what the models run


def in_child(work, seconds):
    """What work() gives, as JSON data, in a child; None where it ends otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        status = wait(fork(lambda: out.write_text(json.dumps(work())) and PASSED), seconds)
        return json.loads(out.read_text()) if status == PASSED and out.exists() else None


def entered(work):
    """(file, line) of every function of the package that work() enters."""
    codes, package = set(), str(ROOT / "tilewright") + "/"

    def note(frame, event, _):
        if event == "call":
            codes.add(frame.f_code)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return sorted({(c.co_filename.removeprefix(f"{ROOT}/"), c.co_firstlineno) for c in codes
                   if c.co_filename.startswith(package)})


def functions_run(name):
    """The functions that building and running a model enters, where no cache has its kernels."""
    os.environ["TILEWRIGHT_CACHE"] = "0"
    return entered(lambda: build_function(MODELS[name]())(*inputs_of(name)))


def operators_run(name):
    """(file, line, operator): the functions that the te rule of each operator enters; of one in a branch or a body the
    choice or loop, too, which is the node of the model that it makes wrong."""
    model, found = MODELS[name](), set()
    calls = [(c, c.callee.name) for c in model.calls]
    for outer in model.calls:
        inner = [getattr(outer.callee, part, None) for part in ("then", "orelse", "body")]
        calls += [(c, outer.callee.name) for f in inner if f is not None for c in f.calls]
    for c, node in calls:
        if isinstance(c.callee, Operator):
            tensors = [te.placeholder(v.shape, v.dtype) for v in c.inputs]
            found |= {(*place, n) for place in entered(partial(c.callee.apply, tensors)) for n in (c.callee.name, node)}
    return sorted(found)


def arrays_of(name):
    """The value of each result of a call of a model, by name, and the results: lists, as JSON."""
    evaluation = Evaluation(MODELS[name](), inputs_of(name))
    values = {v.name: [str(x.dtype), list(x.shape), x.reshape(-1).tolist()] for v, x in evaluation.values.items()
              if v.call is not None}
    return values, [[str(x.dtype), list(x.shape), x.reshape(-1).tolist()] for x in evaluation.results()]


def loaded(entry):
    dtype, shape, elements = entry
    return np.array(elements, dtype).reshape(shape)


# a defect


@dataclass
class Defect:
    place: Place
    mutation: object
    function: int                                        # its first line
    model: str                                           # the first that runs it


def defects(runs):
    """Every defect of the functions that models run, by the kind of place."""
    entering = collections.defaultdict(list)
    for name in runs:
        for place in runs[name]:
            entering[place].append(name)
    made = collections.defaultdict(list)
    for place in places():
        source = (ROOT / place.path).read_text()
        spans = [(f.decorator_list[0].lineno if f.decorator_list else f.lineno, f.end_lineno)
                 for f in ast.walk(ast.parse(source)) if isinstance(f, ast.FunctionDef)]
        for m in mutations(place.path, source):
            around = [first for first, last in spans if first <= m.first <= last]
            models = entering.get((place.path, max(around, default=0)))
            if models and not m.top:
                made[place.kind].append(Defect(place, m, max(around), models[0]))
    return made


def defect_at(path, function, operator, text, model):
    """The defect of an operator of mutations where a function has some text."""
    source = (ROOT / path).read_text()
    f = next(f for f in ast.walk(ast.parse(source)) if isinstance(f, ast.FunctionDef) and f.name == function)
    m = next(m for m in mutations(path, source) if f.lineno <= m.first <= f.end_lineno and m.operator == operator
             and source[m.start:m.end] == text)
    return Defect(next(p for p in places() if p.path == path), m, f.lineno, model)


def attempt(defect, changes, wanted):
    """{"status": "same", "raises" or "wrong", "found": what bisect says}, of one model with the defect."""
    name = defect.model
    os.environ["TILEWRIGHT_CACHE"] = "0"
    plant(changes)
    values, results = wanted[name]
    arrays = inputs_of(name)
    try:
        made = build_function(MODELS[name]())(*arrays)
        got = [np.array(t.numpy()) for t in (made if isinstance(made, tuple) else (made,))]
        off = difference(got, [loaded(e) for e in results])
    except Exception:
        return {"status": "raises"}
    if not off > WRONG:
        return {"status": "same"}
    expected = {k: loaded(e) for k, e in values.items()} if defect.place.kind == "operator" else None
    try:
        found = tw.bisect(MODELS[name](), *arrays, expected=expected)
    except Exception as error:
        return {"status": "wrong", "found": f"{type(error).__name__}: {error}"[:300], "kind": "raises", "name": ""}
    if found is None:
        return {"status": "wrong", "found": "nothing", "kind": "", "name": ""}
    return {"status": "wrong", "found": str(found)[:300], "kind": found.kind, "name": found.name}


def named(defect, outcome, operators):
    """Bisect has named the place of the defect."""
    place, name = defect.place, outcome["name"].split(" (number")[0]
    if outcome["kind"] != place.kind:
        return False
    if place.kind == "operator":
        return name in {op for path, line, op in operators if (path, line) == (place.path, defect.function)}
    if place.kind in ("code generation", "plan"):
        return True
    return name in place.names or place.kind == "rule" and bool(set(name.split(", ")) & place.names)


def run(count, seed, report=print, kinds=None, names=tuple(MODELS)):
    """(how many were planted, the lines of those that were not found, how many were tried)."""
    functions = Functions()
    runs = {n: [tuple(x) for x in in_child(partial(functions_run, n), SECONDS * 3)] for n in names}
    wanted = {n: in_child(partial(arrays_of, n), SECONDS) for n in names}
    operators = {n: [tuple(x) for x in in_child(partial(operators_run, n), SECONDS)] for n in names}
    pools, rng = defects(runs), random.Random(seed)
    for kind in sorted(pools):
        rng.shuffle(pools[kind])
    planted, missed, tried, at_places = 0, [], 0, collections.Counter()
    turns = sorted(k for k in pools if kinds is None or k in kinds)
    while planted < count and any(pools[k] for k in turns):
        kind = next(k for k in sorted(turns, key=lambda k: at_places[k]) if pools[k])
        defect = pools[kind].pop()
        at_places[kind] += 0.02                          # a kind whose defects do nothing makes room for others
        changes = functions.changes(defect.mutation, ROOT)
        if not changes:
            continue
        tried += 1
        outcome = in_child(partial(attempt, defect, changes, wanted), SECONDS)
        if outcome is None or outcome["status"] != "wrong":
            continue
        planted += 1
        at_places[kind] += 1
        right = named(defect, outcome, operators[defect.model])
        m = defect.mutation
        line = (f"{'found' if right else 'NOT FOUND'}: {kind}, {m.path}:{m.first} ({m.operator}), {defect.model}: "
                f"{outcome['found']}")
        report(line, flush=True)
        if not right:
            missed.append(line)
    return planted, missed, tried


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--defects", type=int, default=50)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--kinds", nargs="*")
    given = options.parse_args()
    planted, missed, tried = run(given.defects, given.seed, kinds=given.kinds)
    print(f"{planted - len(missed)} found of {planted} planted ({tried} tried, seed {given.seed})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())


