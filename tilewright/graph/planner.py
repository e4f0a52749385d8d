"""Plans a step: types, fusion, order, places in memory, kernels, and the function that calls them."""
from __future__ import annotations

import ctypes
import hashlib
import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright import driver, runtime
from tilewright.driver import Target
from tilewright.graph.fuse import Group, fuse
from tilewright.graph.kernels import Kernel, inplace_candidates, make_kernel
from tilewright.graph.memory import Lifetime, MemoryPlan, plan_memory
from tilewright.graph.operators.elementwise import Copy
from tilewright.graph.optimizers import Update
from tilewright.graph.step import Step
from tilewright.graph.value import TensorType, Value, topological
from tilewright.runtime.loader import load_objects
from tilewright.support.errors import GraphError
from tilewright.tir import Buffer, Call, Evaluate, IntImm, PrimFunc, StringImm, Var, seq
from tilewright.tir import dtype as dt
from tilewright.tir.printer import show


def order_groups(groups: Sequence[Group], writes: Mapping[Value, Value]) -> tuple[list[Group], set[Value]]:
    """(groups in an order that can run, updates that cannot be done in place).

    writes: update value -> the parameter whose place it takes. A cycle of "must read before" and "needs the result
    of" is broken by naming the updates in it; the caller gives those a value of their own and copies at the end.
    """
    producer = {g.output: k for k, g in enumerate(groups)}
    after: list[set[int]] = [set() for _ in groups]           # after[k]: groups that must run later than k
    for k, g in enumerate(groups):
        for x in g.inputs:
            if x in producer:
                after[producer[x]].add(k)
    updater = {parameter: producer[value] for value, parameter in writes.items()}
    for k, g in enumerate(groups):
        for x in g.inputs:
            if x in updater and updater[x] != k:
                after[k].add(updater[x])
    waiting = [0] * len(groups)
    for later in after:
        for k in later:
            waiting[k] += 1
    ready = [k for k, n in enumerate(waiting) if n == 0]
    order: list[int] = []
    while ready:
        k = heapq.heappop(ready)
        order.append(k)
        for j in after[k]:
            waiting[j] -= 1
            if waiting[j] == 0:
                heapq.heappush(ready, j)
    stuck = {v for v in writes if waiting[producer[v]] > 0}
    return [groups[k] for k in order], stuck


class KernelCache:
    """Objects of kernels by name (a name says what a kernel computes), for one target and kind of schedule."""

    def __init__(self, target: Target, schedule: str) -> None:
        self.target, self.schedule = target, schedule
        self.objects: dict[str, bytes] = {}

    def object_of(self, kernel: Kernel) -> bytes:
        """The compiled object of the kernel, built at the first request."""
        if kernel.name not in self.objects:
            alias = {} if kernel.inplace is None else {len(kernel.inputs): kernel.inplace}
            self.objects[kernel.name] = driver.compile_kernel(
                kernel.func, self.target, rules=self.schedule == "rules", alias=alias)
        return self.objects[kernel.name]


@dataclass(frozen=True)
class Program:
    """What a step computes: outputs and updates whose values are all results of operators, no value used twice."""
    outputs: tuple[Value, ...]
    updates: tuple[Update, ...]
    apart: frozenset[Value]          # values that must lie in memory of their own

    @property
    def order(self) -> list[Value]:
        return topological([*self.outputs, *(u.value for u in self.updates)])


def normalize(outputs: Sequence[Value], updates: Sequence[Update]) -> Program:
    """The program with a Copy wherever a leaf, or a value that has a place already, is asked for."""
    placed: set[Value] = set()

    def place(v: Value) -> Value:
        if v.op is None or v in placed:
            v = Copy()(v)
        placed.add(v)
        return v

    new_updates = tuple(Update(u.target, place(u.value)) for u in updates)
    return Program(tuple(place(v) for v in outputs), new_updates, frozenset())


def copy_at_end(program: Program, stuck: set[Value]) -> Program:
    """The program in which the updates with values in `stuck` are computed aside and copied into place."""
    updates = tuple(Update(u.target, Copy()(u.value)) if u.value in stuck else u for u in program.updates)
    return Program(program.outputs, updates, program.apart | frozenset(stuck))


def infer_types(order: Sequence[Value], fed: Mapping[Value, TensorType]) -> dict[Value, TensorType]:
    """The type of every value, from those of the feeds and parameters. Raises GraphError naming the operator."""
    types: dict[Value, TensorType] = {}
    for v in order:
        if v.op is not None:
            types[v] = v.op.infer(*(types[x] for x in v.inputs))
        else:
            types[v] = fed[v] if v.data is None else TensorType(tuple(v.data.shape), str(v.data.dtype))
    return types


def check_updates(updates: Sequence[Update], types: Mapping[Value, TensorType]) -> None:
    """Raise GraphError unless every update has the type of its parameter."""
    for u in updates:
        want, got = types.get(u.target) or _leaf_type(u.target), types[u.value]
        if want != got:
            raise GraphError(f"the update of {u.target.name} is {got}, the parameter is {want}")


def _leaf_type(v: Value) -> TensorType:
    assert v.data is not None
    return TensorType(tuple(v.data.shape), str(v.data.dtype))


def nbytes(t: TensorType) -> int:
    """Bytes that a value of the type takes."""
    return math.prod(t.shape) * dt.bytes_of(t.dtype)


def arrange(program: Program, fed: Mapping[Value, TensorType],
            fused: bool) -> tuple[Program, list[Group], dict[Value, TensorType]]:
    """Groups in an order in which every update can be written in place, copying those that otherwise cannot."""
    while True:
        order = program.order
        types = infer_types(order, fed)
        check_updates(program.updates, types)
        writes = {u.value: u.target for u in program.updates}
        keep = {*program.outputs, *writes, *program.apart}
        groups, stuck = order_groups(fuse(order, keep, types, fused), writes)
        producer = {g.output: g for g in groups}
        for value, target in writes.items():
            if value not in stuck and target in producer[value].inputs:
                place = producer[value].inputs.index(target)
                if place not in inplace_candidates(producer[value]):
                    stuck.add(value)
        if not stuck:
            return program, groups, types
        program = copy_at_end(program, stuck)


def choose_places(groups: Sequence[Group], program: Program,
                  types: Mapping[Value, TensorType]) -> tuple[MemoryPlan[Value], dict[Value, int]]:
    """(plan of the arena, {output of a group: position of the input it is written over})."""
    writes = {u.value: u.target for u in program.updates}
    outside = {*program.outputs, *writes}
    made = {g.output: t for t, g in enumerate(groups)}
    last = {x: t for t, g in enumerate(groups) for x in g.inputs}
    inplace: dict[Value, int] = {}
    lifetimes = []
    for t, g in enumerate(groups):
        v = g.output
        candidates = inplace_candidates(g)
        if v in writes:
            if writes[v] in g.inputs:
                inplace[v] = g.inputs.index(writes[v])
            continue
        if v in outside:
            continue
        taken = None
        for k in candidates:
            x = g.inputs[k]
            if x in made and x not in outside and last[x] == t and types[x] == types[v]:
                inplace[v], taken = k, x
                break
        lifetimes.append(Lifetime(v, nbytes(types[v]), t, last.get(v, t), taken))
    return plan_memory(lifetimes), inplace


def plan_step(outputs: Sequence[Value], updates: Sequence[Update], fed: Mapping[Value, TensorType],
              placeholders: Sequence[Value], kernels: KernelCache, fused: bool) -> Step:
    """The compiled step that computes outputs, then updates, from feeds of the given types."""
    program, groups, types = arrange(normalize(outputs, updates), fed, fused)
    memory, inplace = choose_places(groups, program, types)
    made = [make_kernel(g, types, inplace.get(g.output)) for g in groups]
    writes = {u.value: u.target for u in program.updates}
    slots: dict[Value, int] = {}
    for k in made:
        for v in (*k.inputs, k.output):
            slots.setdefault(v, len(slots))
    calls = step_function(made, slots)
    objects = {k.name: kernels.object_of(k) for k in made}
    library = load_objects([*objects.values(), driver.compile_flat(calls, kernels.target)])
    arena = runtime.empty((max(memory.planned, 1),), "uint8")
    table = (ctypes.c_void_p * max(len(slots), 1))()
    for v, slot in slots.items():
        if v in memory.offset:
            table[slot] = arena.data_ptr + memory.offset[v]
        elif v in writes:
            table[slot] = writes[v].data.data_ptr  # type: ignore[union-attr]
        elif v.data is not None:
            table[slot] = v.data.data_ptr
    entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address(f"{calls.name}__kernel"))
    return Step(made, types, memory, tuple(placeholders), program.outputs, slots, library, entry, table, arena)


def step_function(kernels: Sequence[Kernel], slots: Mapping[Value, int]) -> PrimFunc:
    """The function that calls the kernels in order, on addresses from its only argument. Its name is made of its body.

    The calls may write any memory, so what follows one reads the table again.
    """
    table = Buffer("table", (IntImm(max(len(slots), 1)),), "uint64")
    calls = [Evaluate(Call("call_extern", (StringImm(f"{k.name}__kernel"), *(table[slots[v]] for v in k.arguments)),
                           "int32")) for k in kernels]
    param, body = Var("table", "handle"), seq(calls)
    name = f"step_{hashlib.sha256(show(body).encode()).hexdigest()[:16]}"
    return PrimFunc((param,), body, {param: table}, {"global_symbol": name, "tir.noalias": False})
