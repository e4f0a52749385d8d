"""Choices and loops: callees that are made of functions."""
from __future__ import annotations

from dataclasses import dataclass

from tilewright.graph.ir.types import Dim, TensorType
from tilewright.graph.ir.values import Function
from tilewright.support.errors import GraphError


@dataclass(frozen=True, eq=False)
class If:
    """then(*rest) where the first input, a bool of one element, is true, else orelse(*rest)."""
    then: Function
    orelse: Function
    name: str = "if"

    def types(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        """Those of both functions. Raises GraphError where they differ."""
        _check_effects(self.name, self.then, self.orelse)
        _check_count(self.name, "condition", inputs, 1)
        _check_scalar(self.name, "the condition", inputs[0], "bool")
        then, orelse = self.then.types(*inputs[1:]), self.orelse.types(*inputs[1:])
        if then != orelse:
            raise GraphError(f"{self.name}: {self.then.name} gives {_shown(then)}, {self.orelse.name} {_shown(orelse)}",
                             "both branches give results of the same types")
        return then


@dataclass(frozen=True, eq=False)
class Loop:
    """(carried, scanned) after steps 0, 1, ... while step < count and proceed.

    Inputs: count, an int64, and proceed, a bool, of one element each; then `carried` values; then what the body only
    reads. body(step, *carried, *read) gives proceed, the carried values of the next step, and values that are stacked
    along a new first axis of `steps` elements. Raises GraphError at run time where there are not so many steps.
    """
    body: Function
    carried: int
    steps: Dim = 0
    name: str = "loop"

    def types(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        _check_effects(self.name, self.body)
        _check_count(self.name, "count, proceed" + ", carried values" * (self.carried > 0), inputs, 2 + self.carried)
        if len(self.body.results) < 1 + self.carried:
            raise GraphError(f"{self.name}: {self.body.name} gives {len(self.body.results)} value(s), and "
                             f"{1 + self.carried} are needed: whether to proceed, and the carried values")
        _check_scalar(self.name, "count", inputs[0], "int64")
        _check_scalar(self.name, "proceed", inputs[1], "bool")
        first = inputs[2:2 + self.carried]
        made = self.body.types(TensorType((), "int64"), *inputs[2:])
        _check_scalar(self.name, "what the body gives first", made[0], "bool")
        kept, scanned = made[1:1 + self.carried], made[1 + self.carried:]
        if kept != first:
            raise GraphError(f"{self.name}: the carried values are {_shown(first)}, and the body gives {_shown(kept)}",
                             "carried values keep their types from step to step")
        return (*kept, *(TensorType.of((self.steps, *t.shape), t.dtype) for t in scanned))


def _check_effects(name: str, *functions: Function) -> None:
    for f in functions:
        if f.updates:
            raise GraphError(f"{name}: {f.name} updates {next(iter(f.updates)).name}, and calls have no effects",
                             "give the new value as a result")


def _check_count(name: str, first: str, inputs: tuple[TensorType, ...], least: int) -> None:
    if len(inputs) < least:
        raise GraphError(f"{name}: {len(inputs)} input(s) are given, and the first {least} are its {first}")


def _check_scalar(name: str, what: str, t: TensorType, dtype: str) -> None:
    if t.dtype != dtype or any(d != 1 for d in t.shape):
        raise GraphError(f"{name}: {what} is {t}, and one {dtype} is needed")


def _shown(types: tuple[TensorType, ...]) -> str:
    return ", ".join(map(str, types)) or "nothing"
