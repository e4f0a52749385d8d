"""One planned step of a graph: a place for every value and one native function that runs the kernels in order."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from tilewright import runtime
from tilewright.graph.kernels import Kernel
from tilewright.graph.memory import MemoryPlan
from tilewright.graph.value import TensorType, Value
from tilewright.runtime import Tensor
from tilewright.runtime.loader import Library, support_address
from tilewright.support.errors import GraphError
from tilewright.tir import dtype as dt


@dataclass(eq=False)
class Step:
    """A compiled step. `run` fills a table of addresses and makes one native call.

    slots gives the position in the table of every value that lies in memory; values planned into the arena and
    parameters have constant addresses, feeds and outputs are filled in at each run.
    """
    kernels: Sequence[Kernel]
    types: Mapping[Value, TensorType]
    memory: MemoryPlan[Value]
    placeholders: tuple[Value, ...]
    outputs: tuple[Value, ...]
    slots: Mapping[Value, int]
    library: Library
    entry: Any                  # void step(void** table)
    table: Any                  # ctypes array of addresses
    arena: Tensor               # keeps the memory of the plan alive

    def __reduce__(self) -> NoReturn:
        raise GraphError("a step cannot be pickled: it is code and memory of this process",
                         "pickle the Executor, which plans its steps again")

    def run(self, arrays: Sequence[Tensor]) -> list[Tensor]:
        """Execute on the feeds, given in the order of `placeholders`; the outputs are new tensors.

        Raises GraphError when a kernel got no memory for its workspace: its results are lost then.
        """
        table, slots = self.table, self.slots
        for v, a in zip(self.placeholders, arrays):
            if v in slots:
                table[slots[v]] = a.data_ptr
        results = []
        for v in self.outputs:
            t = self.types[v]
            out = runtime.empty(t.shape, t.dtype)
            table[slots[v]] = out.data_ptr
            results.append(out)
        refused = ctypes.c_int64.from_address(support_address("tw_refused"))
        refused.value = 0
        self.entry(table)
        if refused.value:
            raise GraphError(f"run: there is no memory for a workspace of {refused.value % 2**64} bytes")
        return results

    def calls(self) -> list[Callable[[], None]]:
        """One function per kernel, in order, that runs it alone (to time it); feeds are zeros.

        Kernels that update a parameter do update it.
        """
        held = {v: runtime.array(np.zeros(self.types[v].shape, dt.numpy_dtype(self.types[v].dtype)))
                for v in (*self.placeholders, *self.outputs) if v in self.slots}

        def call(kernel: Kernel) -> Callable[[], None]:
            types = [ctypes.c_void_p] * len(kernel.arguments)
            function = ctypes.CFUNCTYPE(None, *types)(self.library.address(f"{kernel.name}__kernel"))
            arguments = [held[v].data_ptr if v in held else self.table[self.slots[v]] for v in kernel.arguments]

            def run() -> None:
                assert held is not None                      # the closure keeps the memory alive
                function(*arguments)
            return run
        return [call(k) for k in self.kernels]
