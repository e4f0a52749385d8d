"""The result of a function: what T.ret gives, the last thing that it does."""
from __future__ import annotations

from tilewright.tir.expr import Call
from tilewright.tir.node import Node, walk
from tilewright.tir.stmt import Allocate, Block, BlockRealize, Evaluate, IfThenElse, LetStmt, PrimFunc, Seq

RET = "ret"


def is_return(s: Node) -> bool:
    """True for `T.ret(value)`."""
    return isinstance(s, Evaluate) and isinstance(s.value, Call) and s.value.op == RET


def returns(node: Node) -> list[Call]:
    """The calls of T.ret below node."""
    return [n for n in walk(node) if isinstance(n, Call) and n.op == RET]


def result_dtype(func: PrimFunc) -> str | None:
    """The dtype of what func, a verified function, returns; None where it returns nothing."""
    found = last_returns(func.body)
    return found[0].args[0].dtype if found else None


def wrong_return(func: PrimFunc, found: list[Call]) -> tuple[str, Node] | None:
    """What is wrong with `found`, the returns of func, and where; None where all is well."""
    if not found:
        return None
    other = next((r for r in found if r.args[0].dtype != found[0].args[0].dtype), None)
    if other is not None:
        return f"T.ret gives {found[0].args[0].dtype} and {other.args[0].dtype}", other
    ends = last_returns(func.body)
    early = next((r for r in found if not any(r is e for e in ends)), None)
    return None if early is None else ("T.ret is not the last thing that the function does", early)


def always_returns(body: Node) -> bool:
    """True where every way through the body of a function ends in a return, or none does. What the lowering guards does
    not count: where it fails, the call raises.
    """
    return not last_returns(body) or _always(body)


def last_returns(s: Node) -> list[Call]:
    """The returns that come last on a way through s."""
    if is_return(s):
        return [s.value]                                                            # type: ignore[attr-defined]
    if isinstance(s, Seq):
        return last_returns(s.stmts[-1]) if s.stmts else []
    if isinstance(s, IfThenElse):
        return [*last_returns(s.then_case), *(last_returns(s.else_case) if s.else_case is not None else [])]
    if isinstance(s, (LetStmt, Allocate)) or isinstance(s, Block) and s.name == "root":
        return last_returns(s.body)
    return last_returns(s.block) if isinstance(s, BlockRealize) else []


def _always(s: Node) -> bool:
    """True where every way through s ends in a return."""
    if isinstance(s, Seq):
        return bool(s.stmts) and _always(s.stmts[-1])
    if isinstance(s, IfThenElse):
        return s.else_case is not None and _always(s.then_case) and _always(s.else_case)
    if isinstance(s, (LetStmt, Allocate, Block)):
        return _always(s.body)
    return _always(s.block) if isinstance(s, BlockRealize) else is_return(s)
