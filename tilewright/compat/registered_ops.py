"""Functions of programs' own: `register_intrin_lowering`, `register_intrin_rule`, `register_op_attr`, `Op`."""
from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from tilewright.lowering.intrin_rules import add_rule
from tilewright.support.errors import ArgumentError, described
from tilewright.tir import Call, Expr
from tilewright.tir.ops import INTRINSICS, Intrinsic


class Op(str):
    """A function that is called by name: its name without "tir.", which `name` has."""

    @property
    def name(self) -> str:
        """TVM's name."""
        return f"tir.{self}"

    @staticmethod
    def get(op_name: str) -> Op:
        """The function of that name. Raises ArgumentError where there is none."""
        if op_name in OTHER_OPS:
            return OTHER_OPS[op_name]
        plain = op_name.removeprefix("tir.")
        if plain not in INTRINSICS:
            raise ArgumentError(f"there is no function {op_name!r}", "tvm.ir.register_intrin_lowering makes one known")
        return Op(plain)


OTHER_OPS: dict[str, Op] = {}                   # operators that are no functions of expressions, by their full names


class RuleCall(Call):
    """A call as rules see it: `op.op.name` is TVM's name, `op.name` that of TVM up to 0.6."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(self.op)


class CallEffectKind(IntEnum):
    """What a call does beside its value."""
    ExprAnnotation, Pure, ReadState, UpdateState, SpecialCallArg, EmbedInfo, ControlJump = range(7)
    Opaque = UpdateState


def register_intrin_lowering(op_name: str, target: str, *, f: Callable[..., Any] | None = None, level: int = 10) -> Any:
    """Let calls of op_name be what f(call) gives, for targets of that kind. Without f a decorator.

    Of several rules that of the highest level is asked first; one that gives None or the call itself leaves the call.
    A name that is not known becomes a function without effects.
    """
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            raise ArgumentError(f"the rule for {op_name} is {described(function)}, not a function")

        def rule(call: Call) -> Expr | None:
            shown = RuleCall(Op(call.op), call.args, call.type)
            out: Expr | None = function(shown)
            return None if out is shown else out
        add_rule(op_name.removeprefix("tir."), target, rule, level)
        return function
    return register if f is None else register(f)


def register_intrin_rule(target: str, name: str, f: Callable[..., Any] | None = None, override: bool = False) -> Any:
    """`register_intrin_lowering` in the form that it had up to 0.7."""
    return register_intrin_lowering(name, target, f=f)


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """A property of a function of one's own: "TCallEffectKind" says whether calls must be kept and kept in order.

    Other properties are taken, and change nothing. Raises ArgumentError for a function of ours, which has its own.
    """
    plain = op_name.removeprefix("tir.")

    def register(given: Any) -> Any:
        known = INTRINSICS.get(plain)
        if known is not None and (known.arity >= 0 or known.evaluate is not None):
            raise ArgumentError(f"register_op_attr: the properties of {op_name} are fixed")
        pure = attr_key != "TCallEffectKind" or int(given) <= CallEffectKind.Pure
        INTRINSICS[plain] = Intrinsic(-1, "pure" if pure else "effect")
        return given
    return register if value is None else register(value)


IR_NAMES: dict[str, Any] = {"Op": Op, "register_op_attr": register_op_attr,
                            "register_intrin_lowering": register_intrin_lowering}
