"""Tensor intrinsics: pairs of functions, one that says what an instruction computes and one that runs it."""
from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from tilewright.support.errors import ArgumentError, IRError
from tilewright.tir.buffer import Buffer
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Var
from tilewright.tir.stmt import Block, BlockRealize, PrimFunc


class TensorIntrin:
    """`desc` computes with loops and blocks what `impl` computes with an instruction, a call or better code.

    Both take the same parameters in the same order: buffers, and scalars that stand for whatever a program has in
    their places. The buffers of `desc` say extents, dtypes and
    scopes; those of `impl` may say more of the memory that the implementation gets: strides (a Var matches any
    stride, a number that stride only, none: compact, where a pointer is taken), the offset (`elem_offset` a Var,
    a multiple of `offset_factor`).

    `TensorIntrin.register(name, desc, impl)` makes it known to `Schedule.tensorize(loop, name)`.
    """
    __slots__ = ("name", "desc", "impl", "checked")
    _registry: ClassVar[dict[str, TensorIntrin | Callable[[], TensorIntrin]]] = {}       # or what makes it

    def __init__(self, desc: PrimFunc, impl: PrimFunc, name: str = "") -> None:
        for what, func in (("description", desc), ("implementation", impl)):
            _check_function(what, func)
        _check_parameters(desc, impl)
        self.name, self.desc, self.impl = name or impl.name, desc, impl
        self.checked = False                     # tensorize has looked at the description

    def __repr__(self) -> str:
        return f"TensorIntrin({self.name})"

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> TensorIntrin:
        """The intrinsic, known by `name` from now on.

        Raises ArgumentError for a name that is taken (without override), IRError for functions that do not fit.
        """
        _check_name(name, override)
        made = TensorIntrin._registry[name] = TensorIntrin(desc, impl, name)
        return made

    @staticmethod
    def register_maker(name: str, make: Callable[[], tuple[PrimFunc, PrimFunc]]) -> None:
        """Like register, of the two functions that make gives: they are made when the intrinsic is first asked for."""
        _check_name(name, False)
        TensorIntrin._registry[name] = lambda: TensorIntrin(*make(), name)

    @staticmethod
    def get(name: str, allow_missing: bool = False) -> TensorIntrin | None:
        """The intrinsic registered as `name`; None with allow_missing where there is none, else ArgumentError."""
        found = TensorIntrin._registry.get(name) if isinstance(name, str) else None
        if found is None and not allow_missing:
            known = ", ".join(sorted(TensorIntrin._registry)) or "none"
            raise ArgumentError(f"no tensor intrinsic {name!r} is registered", f"registered: {known}")
        if found is not None and not isinstance(found, TensorIntrin):
            found = TensorIntrin._registry[name] = found()
        return found

    @staticmethod
    def list() -> list[str]:
        """The names of the registered intrinsics, sorted."""
        return sorted(TensorIntrin._registry)


def _check_name(name: str, override: bool) -> None:
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"the name {name!r} of a tensor intrinsic is not a string with characters")
    if name in TensorIntrin._registry and not override:
        raise ArgumentError(f"a tensor intrinsic {name!r} is registered already", "pass override=True")


def parameter_buffers(func: PrimFunc) -> tuple[Buffer, ...]:
    """The buffers behind the parameters, in order."""
    return tuple(func.buffer_map[p] for p in func.params if p in func.buffer_map)


def scalar_parameters(func: PrimFunc) -> tuple[Var, ...]:
    """The parameters that are scalars, in order."""
    return tuple(p for p in func.params if p not in func.buffer_map)


def root_block(func: PrimFunc) -> Block:
    """The block that is the body of a description or implementation."""
    assert isinstance(func.body, BlockRealize)
    return func.body.block


def _check_function(what: str, func: PrimFunc) -> None:
    if not isinstance(func, PrimFunc):
        raise ArgumentError(f"the {what} of a tensor intrinsic is a PrimFunc, not a {type(func).__name__}")
    if not isinstance(func.body, BlockRealize) or func.body.iter_values:
        raise IRError(f"the {what} {func.name} of a tensor intrinsic is not in block form: its body is no root block")


def _check_parameters(desc: PrimFunc, impl: PrimFunc) -> None:
    kinds = [[str(p.dtype) if p not in f.buffer_map else "a buffer" for p in f.params] for f in (desc, impl)]
    if kinds[0] != kinds[1]:
        raise IRError(f"the description {desc.name} takes ({', '.join(kinds[0])}), the implementation {impl.name} "
                      f"({', '.join(kinds[1])})")
    a, b = parameter_buffers(desc), parameter_buffers(impl)
    for x, y in zip(a, b, strict=True):
        if x.dtype != y.dtype:
            raise IRError(f"buffer {x.name} of the description is {x.dtype}, {y.name} of the implementation {y.dtype}")
        if not structural_equal(x.shape, y.shape, map_free_vars=True):
            shapes = [", ".join(map(str, z.shape)) for z in (x, y)]
            raise IRError(f"buffer {x.name} of the description has the shape ({shapes[0]}), {y.name} of the "
                          f"implementation ({shapes[1]})")
