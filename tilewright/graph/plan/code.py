"""The code of a plan in memory: kernels linked, one native function for the steps between two calls of Python."""
from __future__ import annotations

import ctypes
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from typing import NoReturn

from tilewright import driver
from tilewright.driver import Target
from tilewright.graph.ir.callees import Native
from tilewright.graph.plan.plan import Plan, Step
from tilewright.runtime.loader import Library, load_objects, support_address
from tilewright.support.errors import CallError
from tilewright.tir import Buffer, Call, Cast, Evaluate, IntImm, PrimFunc, StringImm, Var, seq
from tilewright.tir.printer import show

FAULT_BYTES = 8 + 1024            # of a place in which kernels leave a message: its address, and room for a text


class Code:
    """Code of a plan, which any number of runs share.

    parts: in the order of a run, addresses of native functions of two tables, and steps that Python runs.
    """

    def __init__(self, plan: Plan, target: Target, objects: Mapping[str, bytes], variables: Sequence[Var]) -> None:
        segments = [list(steps) for _, steps in itertools.groupby(plan.steps, lambda s: isinstance(s.callee, Native))]
        natives = [native_steps(plan, s, variables) if isinstance(s[0].callee, Native) else None for s in segments]
        codes = [driver.compile_flat(f, target) for f in natives if f is not None]
        self.library: Library = load_objects([*dict.fromkeys([*objects.values(), *codes])])
        self.parts: list[int | list[Step]] = [s if f is None else self.library.address(f"{f.name}__kernel")
                                              for f, s in zip(natives, segments)]
        # run(part, table, sizes, place): the native function, whose kernels leave a message in the place
        self.run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(support_address("tw_guard"))


def raise_fault(plan: Plan, message: bytes) -> NoReturn:
    """Raise CallError for the message that a kernel has left."""
    text = message.decode(errors="replace")
    raise CallError(text, _described(plan, text.partition(": ")[0]))


def native_steps(plan: Plan, steps: Sequence[Step], variables: Sequence[Var]) -> PrimFunc:
    """The function that calls kernels in order, on addresses and sizes from two tables. Its name is made of its body.

    The calls may write any memory, so what follows one reads the tables again.
    """
    table = Buffer("table", (IntImm(max(len(plan.slots), 1)),), "uint64")
    sizes = Buffer("sizes", (IntImm(max(len(variables), 1)),), "int64")
    place = {v: k for k, v in enumerate(variables)}
    calls = [Evaluate(Call("call_extern", (
        StringImm(f"{s.callee.name}__kernel"), *(table[k] for k in s.slots),  # type: ignore[attr-defined]
        *(Cast(v.dtype, sizes[place[v]]) for v in s.sizes)), "int32")) for s in steps]
    params, body = (Var("table", "handle"), Var("sizes", "handle")), seq(calls)
    name = f"run_{hashlib.sha256(show(body).encode()).hexdigest()[:16]}"
    return PrimFunc(params, body, dict(zip(params, (table, sizes))), {"global_symbol": name, "tir.noalias": False})


def _described(plan: Plan, kernel: str) -> str:
    """What a kernel is to those who made the model: its operators, their source, and which inputs are parameters."""
    names = {slot: name for (name, _), slot in zip(plan.params, plan.param_slots) if slot is not None}
    out = []
    for s in plan.steps:
        if isinstance(s.callee, Native) and s.callee.name == kernel:
            operators = " + ".join(o.rsplit(".", 1)[-1] for o in s.callee.operators) or kernel
            whole = s.callee.definition is not None and len(s.callee.definition.params) == len(s.slots) + len(s.sizes)
            inputs = [f"in{k} is {names[slot]}" for k, slot in enumerate(s.slots) if slot in names and whole]
            out.append(", ".join([f"{operators} of {s.source}" if s.source else operators, *inputs]))
    return f"the kernel is {' or '.join(dict.fromkeys(out))}" if out else ""
