"""FuseOps: how functions of blocks read their inputs, and which calls become one function by it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.compat.relax import expr as rx
from tilewright.compat.relax.groups import Group, split, uses
from tilewright.compat.relax.ops import CALL_TIR
from tilewright.support.errors import ArgumentError, described
from tilewright.tir import COMM_REDUCE, Block, IntImm, IRModule, Load, PrimFunc, Store, Var, walk

ELEMENTWISE, BROADCAST, INJECTIVE, REDUCTION, CONTRACTION, OPAQUE = 0, 1, 2, 3, 4, 8      # TVM's numbers


def annotate_pattern(mod: IRModule) -> IRModule:
    """mod in which functions of blocks have "op_pattern"."""
    return IRModule({n: f.with_attr("op_pattern", pattern_of(f)) if isinstance(f, PrimFunc) and "op_pattern" not in
                     f.attrs else f for n, f in mod.functions.items()})


def pattern_of(func: PrimFunc) -> int:
    """How func reads its inputs."""
    blocks = [n for n in walk(func.body) if isinstance(n, Block) and n.name != "root"]
    found, reduced = ELEMENTWISE, False
    for b in blocks:
        stores = [n for n in walk(b.body) if isinstance(n, Store)]
        if len(stores) != 1:
            return OPAQUE
        kind = _of_block(b, stores[0])
        if reduced and kind > BROADCAST:
            return OPAQUE
        reduced = reduced or kind in (REDUCTION, CONTRACTION)
        found = max(found, kind)
    return found if blocks else OPAQUE


def _of_block(b: Block, store: Store) -> int:
    if any(iv.iter_type == COMM_REDUCE for iv in b.iter_vars):
        products = [n for n in walk(store.value) if getattr(n, "op", "") == "mul"]
        return CONTRACTION if any(sum(isinstance(x, Load) for x in walk(p)) > 1 for p in products) else REDUCTION
    return max((_of_load(n, store) for n in walk(store.value) if isinstance(n, Load)), default=ELEMENTWISE)


def _of_load(load: Load, store: Store) -> int:
    own = [i for i in load.indices if not (isinstance(i, IntImm) and i.value == 0)]
    if len(own) == len(store.indices) and all(a is b for a, b in zip(own, store.indices)):
        return ELEMENTWISE
    at = -1
    for i in own:
        place = next((k for k, x in enumerate(store.indices) if x is i and isinstance(i, Var)), -1)
        if place <= at:
            return INJECTIVE
        at = place
    return BROADCAST


def fuse_ops(mod: IRModule) -> IRModule:
    """mod with groups of calls as functions that are primitive."""
    mod = annotate_pattern(mod)
    return split(mod, lambda f: _groups(f, mod))


def _groups(f: rx.Function, mod: IRModule) -> list[Group]:
    counts = uses(f)
    return [g for block in f.body.blocks if isinstance(block, rx.DataflowBlock) for g in _of_flow(block, mod, counts)]


def _of_flow(block: Any, mod: IRModule, counts: dict[Any, int]) -> list[Group]:
    calls = [b for b in block.bindings if _pattern(b, mod) is not None]
    kind = {b.var: _pattern(b, mod) or 0 for b in calls}
    reader: dict[Any, Any] = {}
    for b in calls:
        reader.update((a, b) for a in b.value.args[1].fields if isinstance(a, rx.Var))
    group: dict[Any, list[Any]] = {}
    for b in reversed(calls):
        group[b.var] = [b]
        user = reader.get(b.var)
        if user is None or counts.get(b.var) != 1 or not isinstance(b.var, rx.DataflowVar):
            continue
        target = group[user.var]
        if _joins(b, user, target, kind):
            target.append(b)
            group[b.var] = target
    distinct = {id(g): g for g in group.values() if len(g) > 1}.values()
    order = {b.var: k for k, b in enumerate(calls)}
    made = []
    for g in reversed(list(distinct)):
        g.sort(key=lambda b: order[b.var])
        made.append(Group("fused_" + "_".join(str(b.value.args[0]) for b in g), g, {"Primitive": 1}, False))
    return made


def _pattern(b: Any, mod: IRModule) -> int | None:
    """The pattern of a binding that calls a function of blocks with one result."""
    v = b.value
    if not isinstance(v, rx.Call) or v.op != CALL_TIR or len(v.sinfo_args) != 1 or len(v.args) != 2:
        return None
    func = mod.functions.get(v.args[0])
    return int(func.attrs.get("op_pattern", OPAQUE)) if isinstance(func, PrimFunc) else None


def _joins(b: Any, user: Any, group: Sequence[Any], kind: dict[Any, int]) -> bool:
    own, there = kind[b.var], kind[user.var]
    if OPAQUE in (own, there):
        return False
    if own <= INJECTIVE:
        return there <= INJECTIVE or there == REDUCTION
    shape = b.var.struct_info_
    return all(kind[g.var] <= BROADCAST and g.var.struct_info_.same_shape(shape) for g in group)


def fuse_ops_by_pattern(mod: IRModule, patterns: Sequence[Any], keep_constants: bool = True) -> IRModule:
    """mod with what matches as functions that are composite; the first pattern that matches takes it."""
    named = []
    for p in patterns:
        given = (p.name, p.pattern) if hasattr(p, "pattern") else p
        if not isinstance(given, (tuple, list)) or len(given) < 2:
            raise ArgumentError(f"FuseOpsByPattern: {described(p)} is no pattern", '("relax.name", pattern)')
        named.append(tuple(given))

    def groups(f: rx.Function) -> list[Group]:
        counts, taken, made = uses(f), set[Any](), list[Group]()
        values = {b.var: b.value for block in f.body.blocks for b in block.bindings}
        order = [b for block in f.body.blocks for b in block.bindings]
        for name, pattern, *rest in named:
            for b in reversed(order):
                found = pattern.matched(b.value, values) if b.var not in taken else None
                inside = [v for v in found or () if v is not b.var]
                if found is None or any(v in taken or counts.get(v, 0) != 1 for v in inside):
                    continue
                if len(rest) > 1 and not rest[1](_Context(b, values)):
                    continue
                own = [x for x in order if x.var is b.var or x.var in inside]
                taken.update(x.var for x in own)
                called = "_".join(str(getattr(x.value.op, "name", x.value.op)).replace(".", "_") for x in own
                                  if isinstance(x.value, rx.Call))
                made.append(Group(f"fused_{called}", own, {"Primitive": 1, "Composite": name}, keep_constants))
        return made
    return split(mod, groups)


class _Context:
    """What a check of a pattern is asked about."""

    def __init__(self, binding: Any, values: dict[Any, Any]) -> None:
        self.matched_expr, self.matched_bindings = binding.value, values
