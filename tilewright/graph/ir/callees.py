"""What functions call: operators, which are te rules with attributes, functions of blocks, packed functions."""
from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any

import numpy as np

from tilewright import te, topi
from tilewright.graph.ir.types import TensorType, of_sizes, size_variables
from tilewright.runtime import Tensor
from tilewright.support.errors import GraphError, TilewrightError, described
from tilewright.support.locks import ForkSafeLock
from tilewright.te.conditions import Condition, noted
from tilewright.te.fingerprint import graph_text
from tilewright.tir import Expr, PrimFunc, Var

Rule = Callable[..., Any]


@dataclass(frozen=True)
class Slot:
    """The place of input number `index` among the arguments of a rule."""
    index: int

    def __repr__(self) -> str:
        return f"%{self.index}"


@dataclass(frozen=True)
class Like:
    """The place of a tensor of which a rule uses the type alone."""
    type: TensorType

    def __repr__(self) -> str:
        return f"like {self.type}"


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator: a rule that makes te tensors of te tensors, and the other arguments that it is called with.

    args and kwargs are those of the rule, with Slot(k) where input k goes, and Like(t) where any tensor of the type t
    does; the rest, the attributes, is plain data.
    Types of results follow from running the rule on placeholders, as does how it reads its inputs (`access.py`).
    """
    name: str
    rule: Rule
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def key(self) -> tuple[Any, ...]:
        """Equal for operators that compute the same of the same inputs."""
        return (self.name, self.rule, _compared(self.args), _compared(dict(sorted(self.kwargs.items()))))

    @functools.cached_property
    def leaves(self) -> tuple[Any, ...]:
        """Slots and attributes: what is no list, tuple or dict in the arguments."""
        found: list[Any] = []
        _mapped((self.args, dict(self.kwargs)), found.append)
        return tuple(found)

    @functools.cached_property
    def sizes(self) -> tuple[Var, ...]:
        """The size variables in the attributes."""
        return tuple(size_variables(d for x in self.leaves for d in (x.type.shape if isinstance(x, Like) else [x])))

    def without(self, unread: Collection[int], *inputs: TensorType) -> Operator:
        """The operator of the other inputs, for inputs of these types of which its rule does not read some."""
        kept = [k for k in range(len(inputs)) if k not in unread]
        place = {k: Slot(kept.index(k)) if k in kept else Like(t) for k, t in enumerate(inputs)}

        def moved(x: Any) -> Any:
            return _mapped(x, lambda leaf: place[leaf.index] if isinstance(leaf, Slot) else leaf)
        made, traced = Operator(self.name, self.rule, moved(self.args), moved(dict(self.kwargs))), self.traced(*inputs)
        _remember((made.key, tuple(inputs[k] for k in kept)),
                  replace(traced, inputs=tuple(traced.inputs[k] for k in kept)))
        return made

    def apply(self, tensors: Sequence[te.Tensor]) -> tuple[te.Tensor, ...]:
        """The results of the rule. Raises GraphError where the rule refuses, with the types of the inputs."""
        def leaf(x: Any) -> Any:
            if isinstance(x, Like):
                return te.placeholder(x.type.shape, x.type.dtype, name="like")
            return tensors[x.index] if isinstance(x, Slot) else x

        def filled(x: Any) -> Any:
            return _mapped(x, leaf)
        args, kwargs = filled(self.args), filled(dict(self.kwargs))
        try:
            made = self.rule(*args, **kwargs)
        except TypeError as error:
            if _accepts(self.rule, args, kwargs):
                raise
            raise GraphError(f"{self.name}: {error}", f"the rule is {self.name}{_parameters(self.rule)}") from error
        except GraphError:                               # it says of which operator
            raise
        except TilewrightError as error:
            raise GraphError(f"{self.name}({', '.join(map(_described_tensor, tensors))}): {error}") from error
        results = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        for t in results:
            if not isinstance(t, te.Tensor):
                raise GraphError(f"{self.name}: the rule gives {described(t)}, not a tensor",
                                 "a rule returns what te.compute gives, or a tuple of such tensors")
        return results

    def again(self, tensors: Sequence[te.Tensor], *inputs: TensorType) -> tuple[te.Tensor, ...]:
        """`apply` of a rule that was traced for these types of inputs. Raises GraphError for a rule of the program that
        gives another program now, since what it reads from outside has changed."""
        if not str(getattr(self.rule, "__module__", "")).startswith("tilewright."):
            first, now = self.traced(*inputs), _trace(self, inputs)
            if graph_text([*first.inputs, *first.outputs]) != graph_text([*now.inputs, *now.outputs]):
                raise GraphError(f"{self.name}: the rule gives another program now than when it was called",
                                 "what it reads from outside has changed: give it as an argument or as a default, "
                                 "such as lambda t, k=k: ...")
        return self.apply(tensors)

    def traced(self, *inputs: TensorType) -> Traced:
        """The rule on placeholders of these types; remembered."""
        return _remembered(self, inputs)

    def types(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        return self.traced(*inputs).types


@dataclass(frozen=True)
class Traced:
    """What a rule makes of placeholders, the types of the results, what the rule takes for granted of sizes."""
    inputs: tuple[te.Tensor, ...]
    outputs: tuple[te.Tensor, ...]
    types: tuple[TensorType, ...]
    conditions: tuple[Condition, ...]


_traced: OrderedDict[Any, Traced] = OrderedDict()
_lock = ForkSafeLock()
_MOST = 4096


def _remembered(op: Operator, inputs: tuple[TensorType, ...]) -> Traced:
    key = (op.key, inputs)
    with _lock:
        found = _traced.get(key)
        if found is not None:
            _traced.move_to_end(key)
            return found
    found = _trace(op, inputs)
    _remember(key, found)
    return found


def _trace(op: Operator, inputs: tuple[TensorType, ...]) -> Traced:
    placeholders = tuple(te.placeholder(t.shape, t.dtype, name=f"x{k}") for k, t in enumerate(inputs))
    with noted() as conditions:
        outputs = op.apply(placeholders)
    return Traced(placeholders, outputs, tuple(TensorType.of(t.shape, t.dtype) for t in outputs), tuple(conditions))


def _remember(key: tuple[Any, ...], traced: Traced) -> None:
    with _lock:
        _traced[key] = traced
        if len(_traced) > _MOST:
            _traced.popitem(last=False)


def operator(rule: Rule, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None,
             value_type: type | tuple[type, ...] = ()) -> tuple[Operator, list[Any]]:
    """(the operator of rule(*args, **kwargs), its inputs: the leaves of the arguments that are of value_type)."""
    inputs: dict[Any, int] = {}

    def slot(leaf: Any) -> Any:
        if isinstance(leaf, value_type):
            return Slot(inputs.setdefault(leaf, len(inputs)))
        if isinstance(leaf, np.ndarray):                 # which the program may fill again
            return leaf.copy()
        return of_sizes(leaf) if isinstance(leaf, Expr) else leaf
    called = rule if isinstance(rule, Hashable) else rule.__call__       # which is one with itself, whatever rule holds
    op = Operator(rule_name(rule), called, _mapped(tuple(args), slot), _mapped(dict(kwargs or {}), slot))
    return op, list(inputs)


def rule_name(rule: Rule) -> str:
    """topi.NAME for operators of topi, te.NAME for rules of programs."""
    name = getattr(rule, "__name__", type(rule).__name__)
    return f"topi.{name}" if getattr(topi, name, None) is rule else f"te.{name}"


def _accepts(rule: Rule, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """False where a rule does not take such arguments at all."""
    try:
        inspect.signature(rule).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:                                   # a function that does not say what it takes
        return True
    return True


def _parameters(rule: Rule) -> str:
    return str(inspect.signature(rule))


def _mapped(x: Any, leaf: Callable[[Any], Any]) -> Any:
    """x with leaf(y) in the place of each y that is not a list, tuple or dict."""
    if type(x) in (list, tuple):
        return type(x)(_mapped(y, leaf) for y in x)
    if type(x) is dict:
        return {k: _mapped(y, leaf) for k, y in x.items()}
    return leaf(x)


class _Itself:
    """An object that is compared by identity, and lives as long as it is."""
    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def _compared(x: Any) -> Any:
    """What is equal for equal data, and can be hashed; numbers of different types differ, and so do zeros of two signs.

    Frozen dataclasses are compared by their class and what they hold, all else by identity.
    """
    if isinstance(x, (list, tuple)):
        return tuple(map(_compared, x))
    if isinstance(x, dict):
        return tuple((k, _compared(v)) for k, v in x.items())
    if isinstance(x, np.ndarray):
        return str(x.dtype), x.shape, x.tobytes()
    if isinstance(x, Like):
        return Like, x.type
    if isinstance(x, Expr):
        return "expr", str(x), tuple(v.name for v in size_variables([x]))
    if isinstance(x, (Slot, int, float, str, type(None), np.generic)):
        return type(x), str(x)
    if is_dataclass(x) and hasattr(x, "__dict__") and type(x).__hash__ not in (None, object.__hash__):
        return type(x), _compared(vars(x))
    return _Itself(x)


def _described_tensor(t: te.Tensor) -> str:
    return f"{t.dtype}[{', '.join(map(str, t.shape))}]"


@dataclass(frozen=True, eq=False)
class Kernel:
    """A function of blocks that writes its results: its parameters are the inputs, the results, and then the sizes.

    over: the inputs whose memory result 0 may take, since each element is read only where that one is written.
    inplace: the input whose memory result 0 has to take: elements that are not stored keep their values.
    """
    func: PrimFunc
    results: tuple[TensorType, ...]
    sizes: tuple[Var, ...] = ()
    over: tuple[int, ...] = ()
    operators: tuple[str, ...] = ()
    inplace: int | None = None

    @property
    def name(self) -> str:
        return self.func.name

    def types(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        return self.results


@dataclass(frozen=True, eq=False)
class Native:
    """The compiled code of a kernel, NAME__kernel: it takes inputs, results and sizes, as `Kernel` does.

    definition: the function that was compiled, for tools that look at what it does, and for source files; constant:
    the positions of its parameters that it was told never change.
    """
    name: str
    results: tuple[TensorType, ...]
    sizes: tuple[Var, ...] = ()
    over: tuple[int, ...] = ()
    operators: tuple[str, ...] = ()
    definition: PrimFunc | None = None
    constant: tuple[int, ...] = ()

    def types(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        return self.results


@dataclass(frozen=True, eq=False)
class Extern:
    """A packed function of the registry that is called with the inputs and then the results, which it writes."""
    name: str
    results: tuple[TensorType, ...]

    def types(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        return self.results


@dataclass(frozen=True, eq=False)
class Hosted:
    """What Python runs between native kernels: run(inputs, results) writes the results. kind: what it is, in words.

    region: the choice or loop that it is, whose functions are compiled as `built`; None for other functions.
    """
    name: str
    results: tuple[TensorType, ...]
    run: Callable[[Sequence[Tensor], Sequence[Tensor]], None]
    kind: str = "a function of Python"
    region: Any = None
    built: tuple[Any, ...] = ()

    def types(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        return self.results
