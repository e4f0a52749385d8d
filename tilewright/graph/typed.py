"""From values of a graph to a function of typed values, for feeds of some types."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright import te
from tilewright.graph.ir import values as ir
from tilewright.graph.ir.callees import Operator as Callee
from tilewright.graph.ir.callees import Slot
from tilewright.graph.ir.types import TensorType
from tilewright.graph.operator import Operator
from tilewright.graph.optimizers import Update
from tilewright.graph.value import Value, topological
from tilewright.runtime import Tensor
from tilewright.support.errors import GraphError, described


def typed(outputs: Sequence[Value], updates: Sequence[Update],
          fed: Mapping[Value, TensorType]) -> tuple[ir.Function, dict[ir.Value, Tensor]]:
    """(the function of the feeds and of the parameters that computes outputs and updates, what the parameters hold).

    Raises GraphError where an operator refuses its inputs, or an update is of another type than its parameter.
    """
    known: dict[Value, ir.Value] = {v: ir.Value(t, v.name) for v, t in fed.items()}
    held: dict[ir.Value, Tensor] = {}
    calls: list[ir.Call] = []
    for v in topological([*outputs, *(u.value for u in updates), *(u.target for u in updates)]):
        if v.data is not None:
            known[v] = ir.Value(TensorType.of(v.data.shape, v.data.dtype), v.name)
            held[known[v]] = v.data
        elif v.op is not None:
            calls.append(_call(v, [known[x] for x in v.inputs]))
            known[v], = calls[-1].results
    for u in updates:
        if known[u.value].type != known[u.target].type:
            raise GraphError(f"the update of {u.target.name} is {known[u.value].type}, the parameter is "
                             f"{known[u.target].type}")
    return ir.Function("step", (*(known[v] for v in fed), *held), tuple(calls), tuple(known[v] for v in outputs),
                       {known[u.target]: known[u.value] for u in updates}), held


def _call(v: Value, inputs: Sequence[ir.Value]) -> ir.Call:
    wanted: TensorType | None = v.op.infer(*(x.type for x in inputs))
    callee = Callee(type(v.op).__name__.lower(), _compute, (v.op, *(Slot(k) for k in range(len(inputs)))))
    made = ir.call(callee, inputs, [v.name])
    found = made.results[0].type
    if wanted is not None and found != wanted:
        raise GraphError(f"{v.op}: compute gives {found}, infer says {wanted}", "the two describe one result")
    return made


def _compute(op: Operator, *inputs: te.Tensor) -> te.Tensor:
    """What an operator computes: the rule of its calls."""
    made = op.compute(*inputs)
    if not isinstance(made, te.Tensor):
        raise GraphError(f"{op}: compute gives {described(made)}, not a tensor")
    return made
