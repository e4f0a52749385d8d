"""Packed functions as Python callables: the fast call, and what happens when an argument does not fit."""
from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from tilewright.runtime import ffi, interrupts
from tilewright.runtime.dtypes import dtype_string
from tilewright.runtime.errors import CallTypeError, CallValueError
from tilewright.runtime.scalars import number, packed, unpacked
from tilewright.runtime.signature import Param, Signature
from tilewright.runtime.tensor import Tensor, share
from tilewright.support.errors import ArgumentError, CallError, nearest, type_name

_loaded = sys.modules
_PLAIN = frozenset((Tensor, np.ndarray, bool, int, float))      # types of arguments that are of no other library


class Function:
    """A function of a module or of the global table.

    Tensor arguments are Tilewright tensors, NumPy arrays or anything with `__dlpack__`; their memory is
    used in place. Each argument is given by position or by the name of its parameter. Raises CallError (a
    ValueError or TypeError too) for arguments that do not fit, before anything is written. A torch tensor that
    requires grad is refused while torch records gradients: the call would be invisible to it.
    """
    __slots__ = ("name", "signature", "definition", "_native")

    def __init__(self, native: Any, name: str, signature: Signature | None = None,
                 definition: Callable[[], Any] | None = None) -> None:
        """definition: gives the IR of what is computed, for tools that know IR."""
        self._native, self.name, self.signature, self.definition = native, name, signature, definition

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        if named:
            args = self.ordered(args, named)
        if "torch" in _loaded or "jax" in _loaded:
            for a in args:
                if type(a) not in _PLAIN and _needs_a_look(a):
                    self._look_at_foreign(args)
        try:
            result = self._native(*args)
        except Exception as error:
            failure = error                        # handled below, where it is no context of a clearer one
        else:
            return result if result is None else wrap_result(result)
        stop = interrupts.taken(failure)
        if stop is not None:
            raise stop
        return wrap_result(self._second_try(args, failure))

    def __tvm_ffi_object__(self) -> Any:
        return self._native

    def __repr__(self) -> str:
        return f"<tilewright.Function {self.signature or self.name}>"

    def _second_try(self, args: tuple[Any, ...], error: BaseException) -> Any:
        """Call with converted arguments where the fast conversion gave up; raise the clearest error otherwise.

        The fast conversion gives up, before the function runs, on read-only and bfloat16 NumPy arrays; it makes
        objects of some numbers, which the argument checker refuses.
        """
        raised_inside = getattr(error, "__tvm_ffi_error__", None)
        refused = raised_inside is not None and self._is_refusal(error)
        converted = self._numbers(args) if refused else self.convert(args) if raised_inside is None else args
        if converted is not args:
            try:
                return self._native(*converted)
            except Exception as second:
                error, raised_inside = interrupts.taken(second) or second, getattr(second, "__tvm_ffi_error__", None)
        unread = raised_inside is None and isinstance(error, (BufferError, TypeError, ValueError))
        if self.signature is not None and (unread or raised_inside is not None and self._is_refusal(error)):
            self._explain(args)
            if not isinstance(error, CallError):
                kind = CallTypeError if isinstance(error, TypeError) else CallValueError
                raise kind(str(error)) from None
        raise error

    def _is_refusal(self, error: BaseException) -> bool:
        """True for an error of the argument checker, before anything has run: the native library may know only the
        plain Python kinds. Of a function without a signature, such as a global one, the kernel's name is not known."""
        if not isinstance(error, (ValueError, TypeError)):
            return False
        names = {self.name} if self.signature is None else {self.name, self.signature.name}
        return str(error).startswith(tuple(f"{name}: " for name in names)) or (
            self.signature is None and isinstance(error, CallError))

    def ordered(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments in the order of the parameters. Raises CallTypeError unless each is given once."""
        known = [p.name for p in self.signature.params] if self.signature else []
        takes = f"its parameters are {', '.join(known)}" if known else "its parameters have no names: pass by position"
        for name in named:
            if name not in known:
                raise CallTypeError(f"{self.name}: there is no parameter {name!r}",
                                    f"{nearest(name, known)} {takes}".lstrip())
            if known.index(name) < len(args):
                raise CallTypeError(f"{self.name}: argument {name} is given twice, by position and by name", takes)
        missing = [name for name in known[len(args):] if name not in named]
        if missing:
            raise CallTypeError(f"{self.name}: {_are_not_given(missing)}", takes)
        return *args, *(named[name] for name in known[len(args):])

    def __copy__(self) -> Function:
        return self                                    # as for Python's functions: code does not change

    def __deepcopy__(self, memo: object) -> Function:
        return self

    def __reduce__(self) -> NoReturn:
        raise ArgumentError(f"the function {self.name} cannot be pickled: it is loaded code",
                            "pickle the module that it is a function of")

    def convert(self, args: tuple[Any, ...]) -> list[Any]:
        """The arguments as tvm-ffi takes them without any further conversion. Raises CallError."""
        return [self._convert(p, a) for p, a in self._pairs(args)]

    def _numbers(self, args: tuple[Any, ...]) -> Sequence[Any]:
        """The arguments with the numbers that tvm-ffi does not know converted; args where there is none."""
        out = list(args)
        for k, (p, arg) in enumerate(self._pairs(args)):
            if not p.dtype:
                out[k] = packed(arg)
            elif not p.is_buffer and type(arg) not in (bool, float):
                with suppress(ArgumentError):                 # the argument checker has said it
                    out[k] = packed(number(arg, p.dtype))
        return out if any(a is not b for a, b in zip(args, out)) else args

    def _pairs(self, args: tuple[Any, ...]) -> list[tuple[Param, Any]]:
        """Every argument with its parameter; unnamed parameters where there is no signature, or too few."""
        known = self.signature.params if self.signature else ()
        return [(known[i] if i < len(known) else Param(f"#{i}", "", ()), a) for i, a in enumerate(args)]

    def _convert(self, p: Param, arg: Any) -> Any:
        if not p.is_buffer:
            try:
                return packed(number(arg, p.dtype))
            except ArgumentError as error:
                raise CallTypeError(f"{self.name}: argument {p.name} {error}\n\nexpected: {self.signature}") from None
        if not isinstance(arg, np.ndarray) and not hasattr(arg, "__dlpack__"):
            return bool(arg) if isinstance(arg, np.bool_) else arg
        if isinstance(arg, Tensor):
            if p.written and not arg.writable:
                raise self._read_only(p, "tensor")
            return arg.handle()
        if isinstance(arg, np.ndarray):
            if p.written and not arg.flags.writeable:
                raise self._read_only(p, "NumPy array")
            self._check_dtype(p, arg)
        try:
            return share(arg) if isinstance(arg, np.ndarray) else ffi.from_dlpack(arg)
        except ArgumentError as error:
            raise CallTypeError(f"{self.name}: argument {p.name}: {error}") from None

    def _read_only(self, p: Param, what: str) -> CallValueError:
        return CallValueError(f"{self.name}: argument {p.name} is a read-only {what}, expected one that can be "
                              "written: the function stores its result there",
                              "pass a writable one, e.g. numpy.empty(shape, dtype)")

    def _check_dtype(self, p: Param, arg: np.ndarray) -> None:
        try:
            fits = arg.dtype.isnative and bool(dtype_string(arg.dtype))
        except ArgumentError:
            fits = False
        if not fits:
            raise CallTypeError(f"{self.name}: argument {p.name}.dtype is {arg.dtype.str} ({arg.dtype}), "
                                f"expected {p.dtype or 'a type that DLPack has'}")

    def _explain(self, args: tuple[Any, ...]) -> None:
        """Raise for the first argument that is of no usable kind, by the name of its Python type."""
        assert self.signature is not None
        if len(args) != len(self.signature.params):
            return
        for p, arg in self._pairs(args):
            if p.is_buffer and not hasattr(arg, "__dlpack__") and not hasattr(arg, "__tvm_ffi_object__"):
                got = "None" if arg is None else f"of type {type_name(arg)}"
                raise CallTypeError(
                    f"{self.name}: argument {p.name} is {got}, expected a tensor of {p.dtype}\n\nexpected: "
                    f"{self.signature}",
                    "tilewright.nd.array(x) makes a tensor of a list or number" if arg is not None else "")

    def _look_at_foreign(self, args: tuple[Any, ...]) -> None:
        """Refuse what a call would read or write otherwise than the library that it is of."""
        torch = _loaded.get("torch")
        for p, arg in self._pairs(args):
            if torch is not None and isinstance(arg, torch.Tensor) and arg.requires_grad and torch.is_grad_enabled():
                raise CallValueError(f"{self.name}: argument {p.name} is a torch tensor that requires grad, which the "
                                     "call would not record", "pass x.detach(), or call under torch.no_grad()")
            if ffi.is_negated(arg):
                raise CallValueError(f"{self.name}: argument {p.name} is a torch tensor whose memory holds the "
                                     "negative of its elements", "pass x.resolve_neg()")
            if p.written and ffi.is_constant(arg):
                raise self._read_only(p, "array of JAX")


def _needs_a_look(a: Any) -> bool:
    """True for a tensor of torch that records gradients or is negated, and for every array of JAX."""
    if getattr(a, "requires_grad", False):
        return True
    is_neg = getattr(a, "is_neg", None)
    return hasattr(a, "addressable_shards") if is_neg is None else is_neg()


def _are_not_given(names: Sequence[str]) -> str:
    several = len(names) > 1
    return f"argument{'s' if several else ''} {', '.join(names)} {'are' if several else 'is'} not given"


def wrap_result(result: Any) -> Any:
    """A result of a packed function: its tensors and functions as Tilewright's, its uint64 as an int."""
    if isinstance(result, ffi.FFITensor):
        return Tensor(result)
    if isinstance(result, ffi.FFIFunction):
        return Function(result, "function")
    return unpacked(result)
