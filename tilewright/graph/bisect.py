"""Which step of the compiler makes a result of a model wrong: the interpreter, the oracle, runs what each one gives."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewright.driver import Target, target
from tilewright.graph.bisect_kernel import KernelSearch
from tilewright.graph.compile import LOWER, SIMPLIFY, build_function, lowered
from tilewright.graph.culprit import Culprit, difference, shown
from tilewright.graph.evaluate import Evaluation, RegionCall
from tilewright.graph.ir.callees import Kernel
from tilewright.graph.ir.values import Call, Function
from tilewright.graph.passes.fold import constant_part, with_constants
from tilewright.graph.plan.executable import Executable
from tilewright.runtime import Tensor
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import GraphError, described, nearest

Arrays = Sequence[np.ndarray]


def bisect(function: Function, *inputs: Any, tolerance: float = 1e-3, spec: str | Target | None = None,
           expected: Mapping[str, Any] | None = None) -> Culprit | None:
    """The first step of compiling function whose result differs for these inputs; None where none does.

    What the operators of the function compute is the reference: the interpreter runs their te rules. expected: what
    some values are to be, by name, or by source where the node has one result; then the first operator, in order, whose
    result is another is the culprit.

    The interpreter runs one element at a time: take small inputs. Of steps that raise, the first is the culprit.
    Branches and bodies of loops are bisected with the inputs that they are called with.
    Raises GraphError for names in `expected` that the function has not, and for inputs that do not fit.
    """
    arrays = [np.asarray(x) for x in inputs]
    if len(arrays) != len(function.params):
        raise GraphError(f"bisect: {function.name} takes {len(function.params)} argument(s), {len(arrays)} are given")
    search = _Search(function, arrays, tolerance, target(spec))
    return search.operators(expected or {}) or search.run()


@dataclass(frozen=True)
class _Step:
    """A change of the function, which leaves what it computes as it is."""
    name: str
    apply: Callable[[Function], Function]


class _Search:
    def __init__(self, function: Function, inputs: Arrays, tolerance: float, where: Target) -> None:
        self.given, self.inputs, self.tolerance, self.target = function, inputs, tolerance, where
        self.first = Evaluation(function, inputs)
        self.wanted = self.first.ends(function.updates)
        self.final = function
        self.constants: Function | None = None

    def run(self) -> Culprit | None:
        return (self.regions() or self.steps([_Step(p.__name__, p) for p in SIMPLIFY]) or self.folding()
                or self.steps([_Step(p.__name__, p) for p in LOWER]) or self.kernels()
                or self.whole(lambda: build_function(self.given, self.target)))

    # operators, by what others say of them

    def operators(self, expected: Mapping[str, Any]) -> Culprit | None:
        """The first operator whose result is not the one that is expected."""
        wanted = dict(expected)
        for c in self.given.calls:
            for v in c.results:
                keys = [v.name, *([v.source] if len(c.results) == 1 and v.source else [])]
                found = next((wanted.pop(k) for k in keys if k in wanted), None)
                if found is None:
                    continue
                error = difference([self.first.values[v]], [np.asarray(found)])
                if error > self.tolerance:
                    return Culprit("operator", c.callee.name, v.name, c.source, error)
        if wanted:
            names = [v.name for c in self.given.calls for v in c.results]
            name = next(iter(wanted))
            raise GraphError(f"bisect: {self.given.name} has no value of the name {described(name)}",
                             nearest(str(name), names))
        return None

    # the graph

    def steps(self, passes: Sequence[_Step]) -> Culprit | None:
        """The first step behind which the function computes something else, or that raises."""
        for step in passes:
            try:
                self.final = step.apply(self.final)
                made = Evaluation(self.final, self.inputs).ends(self.given.updates)
            except Exception as why:                       # a defect of the compiler may raise anything
                return Culprit("graph pass", step.name, why=shown(why))
            error = difference(made, self.wanted)
            if error > self.tolerance:
                return Culprit("graph pass", step.name, error=error)
        return None

    def folding(self) -> Culprit | None:
        """What is computed of constants alone: a function of its own, of which the interpreter gives the values."""
        def fold(function: Function) -> Function:
            fixed = constant_part(function)
            if fixed is None:
                return function
            self.constants = fixed
            return with_constants(function, dict(zip(fixed.results, Evaluation(fixed, ()).results())))
        found = self.steps([_Step("fold_constants", fold)])
        if found is not None or self.constants is None:
            return found
        return _Search(self.constants, (), self.tolerance, self.target).lowering()

    def lowering(self) -> Culprit | None:
        """What is wrong in a function that has been simplified."""
        found = self.steps([_Step(p.__name__, p) for p in LOWER]) or self.kernels() or \
            self.whole(lambda: lowered(self.given, self.target))
        return found and replace(found, function=self.given.name)

    # the kernels

    def kernels(self) -> Culprit | None:
        evaluation = Evaluation(self.final, self.inputs)
        for c in self.final.calls:
            if isinstance(c.callee, Kernel):
                found = self.kernel(c, evaluation)
                if found is not None:
                    return found
        return None

    def kernel(self, c: Call, evaluation: Evaluation) -> Culprit | None:
        inputs = [evaluation.array(v) for v in c.inputs]
        made = [evaluation.values[v] for v in c.results]
        return KernelSearch(c, inputs, made, evaluation.sizes, self.target, self.tolerance).run()

    # branches and bodies

    def regions(self) -> Culprit | None:
        """The first branch or body that is compiled wrongly, for inputs that it is called with."""
        built: dict[Function, Executable | None] = {}
        for made in self.first.regions:
            function = made.function
            if function not in built:
                built[function] = self.built(function)
            run = built[function]
            if run is None or self.differs(run, made):
                found = _Search(function, made.inputs, self.tolerance, self.target).run()
                if found is not None:
                    return replace(found, function=found.function or function.name)
        return None

    def built(self, function: Function) -> Executable | None:
        try:
            return build_function(function, self.target)
        except Exception:
            return None

    def differs(self, run: Executable, made: RegionCall) -> bool:
        try:
            return difference(_arrays(run.results(made.inputs)), made.results) > self.tolerance
        except Exception:
            return True

    def whole(self, build: Callable[[], Executable]) -> Culprit | None:
        """What is left where each kernel is right: results, and what parameters are updated to."""
        given = dict(zip(self.given.params, (np.array(x) for x in self.inputs)))
        try:
            got = [*_arrays(build().results([*given.values()])), *(given[p] for p in self.given.updates)]
        except Exception as why:
            return Culprit("plan", self.given.name, why=shown(why))
        error = difference(got, self.wanted)
        return Culprit("plan", self.given.name, error=error) if error > self.tolerance else None


def _arrays(made: Sequence[Tensor]) -> list[np.ndarray]:
    return [as_numpy(t) for t in made]
