"""Fusion: which calls become one kernel, and the kernels."""
from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence

from tilewright import te
from tilewright.graph.ir.callees import Kernel, Operator
from tilewright.graph.ir.deferred import loaded
from tilewright.graph.ir.rebuild import Rebuild, rebuilt
from tilewright.graph.ir.types import TensorType, size_variables
from tilewright.graph.ir.values import Call, Function, Value, readers
from tilewright.graph.passes.access import CONTRACTION, INJECTIVE, REDUCTION, ROWS, Access, access
from tilewright.graph.passes.views import is_view_call
from tilewright.support.names import identifier
from tilewright.te.fingerprint import graph_text
from tilewright.tir.conversion import convert
from tilewright.tir.node import same

MOST_CALLS = 32                  # of one kernel: longer expressions gain nothing and take long to compile


def fuse(function: Function) -> Function:
    """function with every operator that is no view in a kernel: a call of a function of blocks.

    A call joins the kernel of its readers where that is one. An injective one does where each element is read at most
    once, or computing it again is cheap. An elementwise reader joins the kernel of the reduction, contraction or
    normalisation whose result it reads at the index it writes. A kernel has one of these at most, and at most
    MOST_CALLS calls.
    """
    return _in_kernels(function, _groups(function))


def apart(function: Function) -> Function:
    """function with every operator that is no view in a kernel of its own."""
    alone = [c for c in function.calls if isinstance(c.callee, Operator) and not is_view_call(c)]
    return _in_kernels(function, {c: [c] for c in alone})


def _in_kernels(function: Function, groups: Mapping[Call, Sequence[Call]]) -> Function:
    made: dict[str, Kernel] = {}

    def step(new: Rebuild, c: Call, inputs: tuple[Value, ...]) -> Sequence[Value] | None:
        group = groups.get(c)
        if group is None:
            return None
        if c is not group[-1]:
            return c.results                                 # read inside of the kernel alone
        kernel, read = make_kernel(group, made)
        return new.emit_all(kernel, [new[v] for v in read], [v.name for v in c.results])
    return rebuilt(function, step)


def access_of(call: Call) -> Access:
    """How the operator of a call reads its inputs."""
    traced = call.callee.traced(*(v.type for v in call.inputs))
    return _access(traced)


_known: dict[int, tuple[object, Access]] = {}


def _access(traced: object) -> Access:
    found = _known.get(id(traced))
    if found is None or found[0] is not traced:
        if len(_known) > 4096:
            _known.clear()
        found = _known[id(traced)] = (traced, access(traced.inputs, traced.outputs))  # type: ignore[attr-defined]
    return found[1]


def _groups(function: Function) -> dict[Call, list[Call]]:
    """For each operator that is no view the calls of its kernel, in order."""
    position = {c: k for k, c in enumerate(function.calls)}
    read_by, ends = readers(function), set(function.ends)
    group: dict[Call, list[Call]] = {}
    for c in reversed(function.calls):                       # a call meets its reader's group, already formed
        if not isinstance(c.callee, Operator) or is_view_call(c):
            continue
        group[c] = [c]
        if len(c.results) != 1 or c.results[0] in ends:
            continue
        users = read_by.get(c.results[0], [])
        if not users or any(group.get(u) is not group.get(users[0]) for u in users) or users[0] not in group:
            continue
        target = group[users[0]]
        if len(target) < MOST_CALLS and _may_repeat(c, users) and all(_joins(c, u, target) for u in users):
            target.append(c)
            group[c] = target
    ordered = {id(g): sorted(g, key=position.__getitem__) for g in group.values()}
    return {c: ordered[id(g)] for c, g in group.items()}


def _may_repeat(c: Call, users: Sequence[Call]) -> bool:
    """False where a kernel would compute the call for several readers in loops of their own, which takes long."""
    own = access_of(c)
    return len(users) == 1 or own.kind != INJECTIVE or own.cheap or all(access_of(u).kind == INJECTIVE for u in users)


def _joins(c: Call, reader: Call, group: Sequence[Call]) -> bool:
    own, there = access_of(c), access_of(reader)
    value = c.results[0]
    places = [k for k, v in enumerate(reader.inputs) if v is value]
    if own.kind == INJECTIVE:
        if there.kind == CONTRACTION or not all(k in there.moved for k in places):
            return False
        if there.kind == REDUCTION:
            return all(k in there.once for k in places)
        return there.kind in (INJECTIVE, ROWS) and (own.cheap or not any(k in there.spread for k in places))
    if own.kind not in (CONTRACTION, REDUCTION, ROWS) or not own.elementwise_end:
        return False
    return _is_epilogue(value, group)


def _is_epilogue(value: Value, group: Sequence[Call]) -> bool:
    """The calls of a group (readers first) are injective, and read what depends on the value where they write."""
    below = {value}
    for c in reversed(group):
        found = access_of(c)
        if found.kind != INJECTIVE:
            return False
        places = [k for k, v in enumerate(c.inputs) if v in below]
        if places:
            if c.results[0].type.shape != value.type.shape or any(k not in found.aligned for k in places):
                return False
            below.add(c.results[0])
    return True


def _is_literal(value: Value) -> bool:
    """A constant of one element is written into the code."""
    return value.is_constant and math.prod(value.type.shape) == 1


def make_kernel(group: Sequence[Call], known: dict[str, Kernel] | None = None) -> tuple[Kernel, list[Value]]:
    """(the kernel of some calls, the values that it reads); its name has the operators and a digest of its program.

    known: the kernels that there are, by name, to which this one is added.
    """
    inside = {v for c in group for v in c.results}
    inputs = list(dict.fromkeys(v for c in group for v in c.inputs if v not in inside and not _is_literal(v)))
    placeholders = {v: te.placeholder(v.type.shape, v.type.dtype, name=f"in{k}") for k, v in enumerate(inputs)}
    tensors: dict[Value, te.Tensor] = dict(placeholders)
    for c in group:
        for v in c.inputs:
            if v not in tensors:
                tensors[v] = _literal(v)
        made = c.callee.again([tensors[v] for v in c.inputs], *(v.type for v in c.inputs))
        tensors.update((v, _typed(t, v.type)) for v, t in zip(c.results, made, strict=True))
    outputs = [tensors[v] for v in group[-1].results]
    tensors_of_call = [*placeholders.values(), *_own_memory(outputs, placeholders.values())]
    types = tuple(v.type for v in group[-1].results)
    used = size_variables(d for t in tensors_of_call for d in t.shape)
    args: list[te.Tensor | te.Var] = [*tensors_of_call, *sorted(used, key=lambda v: v.name)]
    names = [c.callee.name.rsplit(".", 1)[-1] for c in group]
    digest = hashlib.sha256(graph_text(args).encode()).hexdigest()[:16]
    name = identifier("_".join([*names[-4:], digest]))
    if known is not None and name in known:
        return known[name], inputs
    func, _ = te.lower_ops(args, name=name, partial=True)
    found = access(list(placeholders.values()), outputs)
    over = tuple(k for k in found.aligned if inputs[k].type == types[0] and len(types) == 1)
    sizes = tuple(p for p in func.params if p not in func.buffer_map)
    kernel = Kernel(func, types, sizes, over, tuple(c.callee.name for c in group))
    if known is not None:
        known[name] = kernel
    return kernel, inputs


def _typed(t: te.Tensor, wanted: TensorType) -> te.Tensor:
    """t with the extents of a type, by which its readers were chosen: written in another way, they are those of t."""
    if all(same(convert(a), convert(b)) for a, b in zip(t.shape, wanted.shape, strict=True)):
        return t
    return te.compute(wanted.shape, lambda *i: t(*i), name="typed")


def _own_memory(outputs: Sequence[te.Tensor], inputs: Collection[te.Tensor]) -> list[te.Tensor]:
    """The outputs, with a copy of each that is an input or another output."""
    taken = set(inputs)
    made = []
    for t in outputs:
        own = t
        if t in taken:
            own = te.compute(t.shape, lambda *i, t=t: t(*i), name="copy")  # type: ignore[misc]
        taken.add(own)
        made.append(own)
    return made


def _literal(v: Value) -> te.Tensor:
    """A tensor of one element that is a number in the code."""
    assert v.held is not None
    value = loaded(v.held).reshape(()).item()
    return te.compute(v.type.shape, lambda *_: te.const(value, v.type.dtype), name="literal")
