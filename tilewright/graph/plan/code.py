"""The code of a plan in memory: kernels linked, one native function for the steps between two calls of Python."""
from __future__ import annotations

import ctypes
import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright import driver
from tilewright.driver import Target
from tilewright.graph.ir.callees import Native
from tilewright.graph.plan.plan import Plan, Step
from tilewright.runtime import elf
from tilewright.runtime.loader import Library, load_objects
from tilewright.support.errors import CallError
from tilewright.tir import Buffer, Call, Cast, Evaluate, IntImm, PrimFunc, StringImm, Var, seq
from tilewright.tir.printer import show

Part = Callable[[int, int], None] | list[Step]


class Code:
    """Code of a plan, for one run at a time where kernels may leave messages: these lie beside the code.

    parts: in the order of a run, native functions of the addresses of two tables, and steps that Python runs.
    """

    def __init__(self, plan: Plan, target: Target, objects: Mapping[str, bytes], variables: Sequence[Var]) -> None:
        segments = [list(steps) for _, steps in itertools.groupby(plan.steps, lambda s: isinstance(s.callee, Native))]
        natives = [native_steps(plan, s, variables) if isinstance(s[0].callee, Native) else None for s in segments]
        codes = [driver.compile_flat(f, target) for f in natives if f is not None]
        self._data = [*dict.fromkeys([*objects.values(), *codes])]
        self._names = [s if f is None else f.name for f, s in zip(natives, segments)]
        self._failing = {name: _described(plan, name) for name, data in objects.items()
                         if f"{name}__take_fault" in elf.symbols(data)[0]}
        self._load()

    def _load(self) -> None:
        self.library: Library = load_objects(self._data)
        self.parts: list[Part] = [_entry(self.library, s) if isinstance(s, str) else s for s in self._names]
        self._faults = [_fault(self.library, name) for name in self._failing]

    def another(self) -> Code:
        """Code for a run beside those of this one."""
        if not self._failing:
            return self
        made = object.__new__(Code)
        made._data, made._names, made._failing = self._data, self._names, self._failing
        made._load()
        return made

    def forget_faults(self) -> None:
        """Drop the messages of a run that ended in an error before they were read."""
        for take in self._faults:
            take()

    def check_faults(self) -> None:
        """Raise CallError for the first message that a kernel has left."""
        texts = [(text, where) for take, where in zip(self._faults, self._failing.values()) if (text := take())]
        if texts:
            text, where = texts[0]
            raise CallError(ctypes.string_at(text).decode(errors="replace"), where)


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
    return f"the kernel is {' or '.join(dict.fromkeys(out))}"


def _entry(library: Library, name: str) -> Any:
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address(f"{name}__kernel"))


def _fault(library: Library, name: str) -> Any:
    return ctypes.CFUNCTYPE(ctypes.c_void_p)(library.address(f"{name}__take_fault"))
