"""Runs plans: the places of values in memory, calls of the code, results."""
from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilewright import runtime
from tilewright.driver import Target
from tilewright.graph.ir.callees import Hosted, Native
from tilewright.graph.ir.types import TensorType, extents
from tilewright.graph.memory import MemoryPlan
from tilewright.graph.plan.arguments import arguments as tensors_of
from tilewright.graph.plan.arguments import in_order
from tilewright.graph.plan.code import FAULT_BYTES, Code, raise_fault
from tilewright.graph.plan.counted import handed_out
from tilewright.graph.plan.export import module_of
from tilewright.graph.plan.interface import bound
from tilewright.graph.plan.plan import ARENA, CONSTANT, HELD, Plan, Step
from tilewright.runtime import Module, Tensor
from tilewright.runtime.dtypes import numpy_dtype
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import GraphError
from tilewright.support.locks import ForkSafeLock
from tilewright.support.views import View, Viewed, readable_bytes

MOST_FRAMES = 64                  # combinations of sizes of which an instance keeps the plan of memory


class Executable(Viewed):
    """A compiled function: `executable(*arrays)` gives its result, or a tuple of them, as new tensors. Arguments go by
    position or by name.

    Arguments are Tensors, NumPy arrays or DLPack objects, read in place where they are contiguous; parameters that the
    function updates are written in place. Calls from several threads run side by side, each with an arena of its own;
    who updates parameters sees to it that they wait for each other. held: the parameters that calls do not give. Raises
    GraphError, which is a CallError too, for an argument that does not fit, CallError where a kernel meets an index
    outside of its tensor.
    """

    def __init__(self, plan: Plan, target: Target, objects: Mapping[str, bytes], held: Sequence[Tensor] = ()) -> None:
        self.plan, self.target, self.objects, self.held = plan, target, objects, held
        self.variables = tuple(b.variable for b in plan.sizes)
        other = next((s.callee for s in plan.steps if not isinstance(s.callee, (Native, Hosted))), None)
        if other is not None:
            raise GraphError(f"{plan.name}: nothing runs {other!r}")
        self.code = Code(plan, target, objects, self.variables)
        self._constants = [runtime.view(a) for a in plan.constants]
        self._free: list[Instance] = []
        self._lock = ForkSafeLock()

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        results = self.results(in_order(self.plan, arguments, named) if named else arguments)
        if self.plan.counted:
            return handed_out(results, self.plan.counted)
        return results[0] if len(results) == 1 else tuple(results)

    def results(self, arguments: Sequence[Any]) -> list[Tensor]:
        """Every result of the plan, also what says how much of others counts."""
        return self.run(self.tensors(arguments))

    def run(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The results for arguments that are such tensors as the parameters want."""
        with self._lock:
            instance = self._free.pop() if self._free else Instance(self)
        try:
            return instance.run(tensors)
        finally:
            with self._lock:
                self._free.append(instance)

    def calls(self, *arguments: Any) -> list[Callable[[], None]]:
        """One function for each kernel, in the order of a run, that calls it alone: to see how long it takes.

        Without arguments these are zeros, where no call decides a size. Kernels that update a parameter do update it.
        Raises GraphError where the plan calls Python.
        """
        if any(not isinstance(s.callee, Native) for s in self.plan.steps):
            raise GraphError(f"{self.plan.name} calls Python between its kernels", "look at its functions alone")
        zeros = [] if self.plan.sizes else [np.zeros(extents(t.shape, {}), numpy_dtype(t.dtype))
                                            for _, t in self.plan.params]
        tensors, instance = self.tensors(arguments or zeros), Instance(self)
        return instance.calls(tensors, instance.bind(tensors))

    def tensors(self, arguments: Sequence[Any]) -> list[Tensor]:
        """The arguments of a call as compact tensors of the dtypes of the parameters. Raises GraphError."""
        return tensors_of(self.plan, arguments)

    @property
    def kernels(self) -> list[Native]:
        """The kernels in the order in which a run calls them."""
        return [s.callee for s in self.plan.steps if isinstance(s.callee, Native)]

    @property
    def memory(self) -> MemoryPlan[int]:
        """Where in one arena the values lie. Raises GraphError for a plan whose sizes each call decides."""
        if self.plan.sizes:
            raise GraphError(f"{self.plan.name}: the plan of memory depends on the sizes of each call",
                             "plan.memory(sizes) is that for values of the size variables")
        return self.plan.memory({})

    def __reduce__(self) -> tuple[Any, ...]:
        """The plan with its constants, and the objects. Raises GraphError for a plan that calls Python, or holds
        parameters."""
        if self.held:
            raise GraphError("a step cannot be pickled: it is code and memory of this process",
                             "pickle the Executor, which plans its steps again")
        if any(isinstance(s.callee, Hosted) for s in self.plan.steps):
            raise GraphError(f"{self.plan.name} cannot be pickled: it calls Python between its kernels")
        return Executable, (self.plan, self.target, dict(self.objects))

    def __copy__(self) -> Executable:
        return self                                    # code and constants do not change

    def __deepcopy__(self, memo: object) -> Executable:
        return self

    def view(self) -> View:
        plan = self.plan
        params = ", ".join(f"{name}: {t}" for name, t in plan.params)
        results = ", ".join(str(t) for _, t in plan.results)
        held = sum(a.nbytes for a in plan.constants)
        rows = [("kernels", f"{len(self.objects)}, called {len(plan.steps)} times"),
                ("code", readable_bytes(sum(map(len, self.objects.values())))), ("constants", readable_bytes(held))]
        if not plan.sizes:
            memory = plan.memory({})
            rows.append(("arena", f"{readable_bytes(memory.planned)}, {readable_bytes(memory.unshared)} without reuse"))
        if plan.held:
            rows.append(("held", readable_bytes(sum(t.nbytes() for _, t in plan.held))))
        return View(f"tilewright.Executable {plan.name}({params}) -> {results}", rows)

    def module(self, name: str | None = None) -> Module:
        """The module of the one function NAME(inputs..., results...), which writes its results, with all constants."""
        return module_of(self.plan, self.objects, self.target, name or self.plan.name)

    def export(self, path: str | Path, name: str | None = None, cc: str | None = None) -> None:
        """Write a shared library (.so) or an object (.o) that stands alone, weights included.

        `tilewright.load`, `load_module` and `tvm_ffi.load_module` load it, and programs of C call it: its function is
        NAME(inputs..., results...). Raises GraphError where the plan calls Python, ArgumentError for another ending.
        """
        self.module(name).save(path, cc)

    def export_source(self, folder: str | Path, name: str | None = None) -> list[Path]:
        """Write files of C, as `Module.export_source` does: the one function, its kernels, and the constants.

        For target="c". The passes and rules are those of this call. Raises as `export` and `Module.export_source` do.
        """
        return self.module(name).export_source(folder)


class Instance:
    """A table of addresses and an arena: one run at a time."""

    def __init__(self, owner: Executable) -> None:
        self.owner, self.plan, self.code = owner, owner.plan, owner.code
        self.table = (ctypes.c_uint64 * max(len(self.plan.slots), 1))()
        self.sizes = (ctypes.c_int64 * max(len(owner.variables), 1))()
        self.frames: OrderedDict[tuple[int, ...], _Frame] = OrderedDict()
        self.arena: Tensor = runtime.empty((0,), "uint8")
        self.current: tuple[int, ...] | None = None
        self.held: dict[int, Tensor] = {}
        place = ctypes.create_string_buffer(FAULT_BYTES)
        self.message = ctypes.c_char_p.from_buffer(place)       # of the run, where its kernels have left one
        self.places = tuple(ctypes.addressof(p) for p in (self.table, self.sizes, place))
        for k, s in enumerate(self.plan.slots):
            if s.kind in (CONSTANT, HELD):
                self.table[k] = self.fixed(s.kind)[s.data].data_ptr

    def fixed(self, kind: str) -> Sequence[Tensor]:
        """The tensors whose places do not change: constants, or held parameters."""
        return self.owner.held if kind == HELD else self.owner._constants

    def run(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """The results, as new tensors."""
        results = self.bind(arguments)
        self._steps(arguments, results)
        return results

    def bind(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """New tensors for the results; their addresses, and those of all else, are in the table."""
        plan, table = self.plan, self.table
        shapes = [a.shape for a in arguments]
        try:
            values = tuple(shapes[b.parameter][b.axis] for b in plan.sizes)
        except IndexError:
            bound(plan, shapes)                            # says which shape has too few dimensions
            raise
        frame = self.frames.get(values)
        if frame is None or frame.shapes != shapes:
            frame = self.frames[values] = _Frame(plan, shapes)
            if len(self.frames) > MOST_FRAMES:
                self.frames.popitem(last=False)
        if self.current != values:
            self._enter(values, frame)
        for slot, a in zip(plan.param_slots, arguments):
            if slot is not None:
                table[slot] = a.data_ptr
        results = []
        for (slot, _), (shape, dtype) in zip(plan.results, frame.results):
            out = runtime.empty(shape, dtype)
            table[slot] = out.data_ptr
            results.append(out)
        return results

    def calls(self, arguments: Sequence[Tensor], results: Sequence[Tensor]) -> list[Callable[[], None]]:
        """One function for each kernel, which calls it as a run does that these are bound for."""
        alive = self, arguments, results

        def call(step: Step) -> Callable[[], None]:
            given = [*(ctypes.c_void_p(self.table[s]) for s in step.slots),
                     *(ctypes.c_int64(self.sizes[self.owner.variables.index(v)]) for v in step.sizes)]
            entry = ctypes.CFUNCTYPE(None, *map(type, given))(
                self.code.library.address(f"{step.callee.name}__kernel"))  # type: ignore[attr-defined]

            def run() -> None:
                assert alive                             # the closure keeps their memory
                entry(*given)
            return run
        return [call(s) for s in self.plan.steps]

    def _enter(self, values: tuple[int, ...], frame: _Frame) -> None:
        """Fill in the addresses in the arena for values of the sizes."""
        self.current = None
        if frame.planned > self.arena.shape[0]:
            self.arena = runtime.empty((frame.planned,), "uint8")
        base = self.arena.data_ptr
        for slot, offset in frame.offsets.items():
            self.table[slot] = base + offset
        self.sizes[:len(values)] = list(values)
        self.current = values

    def _steps(self, arguments: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        self.message.value = None
        run, places = self.code.run, self.places
        try:
            for part in self.code.parts:
                if not isinstance(part, list):
                    run(part, *places)
                    continue
                self.held = {s: a for s, a in zip(self.plan.param_slots, arguments) if s is not None}
                self.held.update((slot, r) for (slot, _), r in zip(self.plan.results, results))
                for step in part:
                    self._host(step)
        finally:
            self.held = {}
        if (message := self.message.value) is not None:
            raise_fault(self.plan, message)

    def _host(self, step: Step) -> None:
        """Run a step that calls Python."""
        callee = step.callee
        assert isinstance(callee, Hosted)
        given = [self.tensor(*place) for place in zip(step.slots, step.types, strict=True)]
        count = len(given) - len(callee.results)
        callee.run(given[:count], given[count:])

    def tensor(self, slot: int, t: TensorType) -> Tensor:
        """What is in a slot, as a value of the type t: of the slot itself, or of a view of it."""
        assert self.current is not None
        s, sizes = self.plan.slots[slot], dict(zip(self.owner.variables, self.current))
        shape = extents(t.shape, sizes)
        if s.kind == ARENA:
            offset = self.frames[self.current].offsets[slot]
            memory = as_numpy(self.arena)[offset:offset + t.nbytes(sizes)]
            return runtime.from_dlpack(memory.view(numpy_dtype(t.dtype)).reshape(shape))
        held = self.fixed(s.kind)[s.data] if s.kind in (CONSTANT, HELD) else self.held[slot]
        return held if held.shape == shape else runtime.from_dlpack(as_numpy(held).reshape(shape))


class _Frame:
    """What a run needs to know for values of the sizes: offsets in the arena, shapes of results."""

    def __init__(self, plan: Plan, shapes: Sequence[tuple[int, ...]]) -> None:
        self.shapes = list(shapes)
        sizes = bound(plan, shapes)
        memory = plan.memory(sizes)
        self.planned, self.offsets = memory.planned, dict(memory.offset)
        self.results = [(extents(t.shape, sizes), t.dtype) for _, t in plan.results]
