"""Kernels of graphs: functions scheduled by the rules, and what of them is computed before, from constants."""
from __future__ import annotations

import json
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.codegen.registry import back_end
from tilewright.driver.build import Compiled, by_rules, cached, flatten, generate, is_cached, rules_key
from tilewright.lowering import PassOptions, split
from tilewright.lowering.hoist_constants import Split, hoist_constants
from tilewright.lowering.merge_axes import merge_axes
from tilewright.lowering.options import current_options
from tilewright.support.target import Target
from tilewright.tir import IntImm, PrimFunc
from tilewright.tir.printer import show


@dataclass(frozen=True)
class KernelCode:
    """The objects of a kernel and of what prepares constants for it.

    arguments: what NAME__kernel takes: k >= 0 is parameter k of the function, -1 - j the array `prepared[j]`, which
    NAME_prepare__kernel makes of the parameters at the positions `read`. prepared: shapes and dtypes.
    """
    name: str
    data: bytes
    arguments: tuple[int, ...]
    prepare: bytes = b""
    read: tuple[int, ...] = ()
    prepared: tuple[tuple[tuple[int, ...], str], ...] = ()

    def to_bytes(self) -> bytes:
        """All of it as one entry of the cache."""
        head = json.dumps([self.name, self.arguments, self.read, self.prepared, len(self.prepare)]).encode()
        return struct.pack("<I", len(head)) + head + self.prepare + self.data

    @staticmethod
    def from_bytes(entry: bytes) -> KernelCode:
        size, = struct.unpack_from("<I", entry)
        name, arguments, read, prepared, length = json.loads(entry[4:4 + size])
        at = 4 + size
        return KernelCode(name, entry[at + length:], tuple(arguments), entry[at:at + length], tuple(read),
                          tuple((tuple(shape), dtype) for shape, dtype in prepared))


def compile_graph_kernel(func: PrimFunc, target: Target, constant: Collection[int], key: str | None) -> KernelCode:
    """The code of a function in block form that is to be scheduled by the rules, of which the parameters at some
    positions never change. One with the attribute "tir.is_scheduled" is taken as it is. key: its name in the cache."""
    return KernelCode.from_bytes(cached(key, lambda: _compiled(func, target, constant).to_bytes()))


def is_portable(key: str | None) -> bool:
    """True where other processes would compile the same code, and where the cache does not have it yet."""
    return key is not None and current_options().key == PassOptions().key and not is_cached(key)


def kernel_key(func: PrimFunc, target: Target, constant: Collection[int]) -> str | None:
    """The name of the code of a kernel in the cache; None where some passes or rules are not those of the package."""
    return rules_key(f"{show(func)}\nconstant={sorted(constant)}", target)


def _compiled(func: PrimFunc, target: Target, constant: Collection[int]) -> KernelCode:
    scheduled, hoisted = _scheduled(func, target, constant)
    if hoisted is None:
        return KernelCode(func.name, _object(scheduled, target), tuple(range(len(func.params))))
    own = {p: -1 - j for j, b in enumerate(hoisted.prepared)
           for p, q in hoisted.main.buffer_map.items() if q is b}
    given = {p: k for k, p in enumerate(scheduled.params)}
    shapes = tuple((tuple(_number(e) for e in b.shape), b.dtype) for b in hoisted.prepared)
    return KernelCode(func.name, _object(hoisted.main, target),
                      tuple(own[p] if p in own else given[p] for p in hoisted.main.params),
                      _object(hoisted.prepare, target), hoisted.read, shapes)


def flat_kernel(func: PrimFunc, target: Target, constant: Collection[int], *disabled: str) -> list[PrimFunc]:
    """The flat form of what `compile_graph_kernel` makes the object of, and of its regions, without some passes."""
    (scheduled, hoisted), options = _scheduled(func, target, constant), current_options()
    options = replace(options, disable=(*options.disable, *disabled))
    return split(flatten(scheduled if hoisted is None else hoisted.main, target, options), target, options)


def files_of_graph(entry: PrimFunc, others: Sequence[PrimFunc], kernels: Sequence[tuple[PrimFunc, Collection[int]]],
                   target: Target, constants: Callable[[], bytes]) -> Callable[[], Mapping[str, str | bytes]] | None:
    """What makes source files of a flat function and of what it calls; None where the back end makes none.

    others: flat functions; kernels: as `compile_graph_kernel` takes them. constants: what the entry reads.
    """
    make = back_end(target).files
    if make is None:
        return None

    def flat(*disabled: str) -> list[PrimFunc]:
        inner = [f for func, constant in kernels for f in flat_kernel(func, target, constant, *disabled)]
        return [*(f for func in (entry, *others) for f in split(func, target)), *inner]
    return lambda: make(flat(), flat("vectorize"), target, entry.name, constants())


def _scheduled(func: PrimFunc, target: Target, constant: Collection[int]) -> tuple[PrimFunc, Split | None]:
    """func under the rules, and what depends on constants split off it; None where nothing does."""
    scheduled = func if func.attrs.get("tir.is_scheduled") else by_rules(merge_axes(func), target, constant)
    return scheduled, hoist_constants(scheduled, constant) if constant else None


def _object(func: PrimFunc, target: Target) -> bytes:
    return Compiled.from_bytes(generate(func, target)).data


def _number(extent: Any) -> int:
    assert isinstance(extent, IntImm)
    return extent.value
