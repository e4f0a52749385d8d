"""What Python runs between kernels: packed functions of the registry, choices and loops over functions."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tilewright import runtime
from tilewright.graph.ir.callees import Extern, Hosted
from tilewright.graph.ir.rebuild import Rebuild, rebuilt
from tilewright.graph.ir.regions import If, Loop
from tilewright.graph.ir.values import Call, Function, Value
from tilewright.runtime import Tensor
from tilewright.runtime.errors import ModelValueError
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import GraphError


class Run(Protocol):
    """A function that was compiled."""

    def results(self, arguments: Sequence[Any]) -> list[Tensor]:
        """Every result, also what says how much of others counts."""


Body = Callable[[Sequence[Tensor], Sequence[Tensor]], None]


def host_calls(function: Function, build: Callable[[Function], Run]) -> Function:
    """function in which packed functions, choices and loops are calls of what runs them; build compiles functions."""
    def step(new: Rebuild, c: Call, inputs: tuple[Value, ...]) -> Sequence[Value] | None:
        callee, types = c.callee, tuple(v.type for v in c.results)
        if isinstance(callee, Extern):
            hosted = Hosted(callee.name, types, _packed(function.name, callee), "a packed function")
        elif isinstance(callee, If):
            then, orelse = build(callee.then), build(callee.orelse)
            hosted = Hosted(callee.name, types, _choice(then, orelse), "a choice", callee, (then, orelse))
        elif isinstance(callee, Loop):
            turn = build(callee.body)
            hosted = Hosted(callee.name, types, _loop(callee, turn), "a loop", callee, (turn,))
        else:
            return None
        return new.emit_all(hosted, inputs, [v.name for v in c.results])
    return rebuilt(function, step)


def _packed(caller: str, callee: Extern) -> Body:
    def run(inputs: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        function = runtime.get_global_func(callee.name, allow_missing=True)
        if function is None:
            raise GraphError(f"{caller} calls the packed function {callee.name!r}, which is not registered",
                             f'register it: @tilewright.register_func("{callee.name}")')
        function(*inputs, *results)
    return run


def _choice(then: Run, orelse: Run) -> Body:
    def run(inputs: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        chosen = then if inputs[0].item() else orelse
        _keep(results, chosen.results(inputs[1:]))
    return run


def _loop(loop: Loop, body: Run) -> Body:
    def run(inputs: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        count, proceed = int(inputs[0].item()), bool(inputs[1].item())
        carried, read = list(inputs[2:2 + loop.carried]), inputs[2 + loop.carried:]
        stacks = [as_numpy(t) for t in results[loop.carried:]]
        at = 0
        while at < count and proceed:
            made = body.results([runtime.array(at, dtype="int64"), *carried, *read])
            proceed, carried = bool(made[0].item()), list(made[1:1 + loop.carried])
            for stack, t in zip(stacks, made[1 + loop.carried:]):
                if at >= stack.shape[0]:
                    raise ModelValueError(f"{loop.name}: step {at} gives a value, and the result has {stack.shape[0]}")
                stack[at] = as_numpy(t)
            at += 1
        if stacks and at != stacks[0].shape[0]:
            raise ModelValueError(f"{loop.name} ends after {at} steps, and the result has {stacks[0].shape[0]}")
        _keep(results[:loop.carried], carried)
    return run


def _keep(results: Sequence[Tensor], made: Sequence[Tensor]) -> None:
    for result, value in zip(results, made, strict=True):
        result.copyfrom(value)
