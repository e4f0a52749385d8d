"""Graphs of ATen operators, as torch.fx has them, node by node: by rows of the table, else by decompositions."""
from __future__ import annotations

import functools
import operator as python_operator
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.frontend.torch import operators  # noqa: F401 - enters the rows
from tilewright.frontend.torch.arrays import array_of
from tilewright.frontend.torch.dtypes import dtype_name
from tilewright.frontend.torch.emit import Counted, Emitter, Scalar, Unknown
from tilewright.frontend.torch.regions import emit_cond, emit_while
from tilewright.frontend.torch.sizes import number
from tilewright.frontend.torch.table import OPERATORS
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.values import Value
from tilewright.support.errors import ImportModelError, TilewrightError
from tilewright.te.conditions import Condition
from tilewright.tir import Expr

IGNORED = frozenset({                    # they say what holds already, or where results are to lie
    "aten._assert_tensor_metadata.default", "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default", "aten._assert_async.msg", "aten._assert_async.default"})
_PLACES = frozenset({"device", "layout", "pin_memory", "memory_format", "non_blocking", "requires_grad"})
_MOST_NAMED = 20                         # nodes of an error


class Missing:
    """The result of a node that is not supported."""


MISSING = Missing()


class Importer:
    """Emits graphs to the function that a BlockBuilder has open. known: values of symbols that are no variables."""

    def __init__(self, bb: BlockBuilder, known: Mapping[str, int] | None = None) -> None:
        self.bb, self.known = bb, dict(known or {})
        self.problems: list[str] = []
        self.constants: dict[Any, Value] = {}
        self.memory: dict[Value, Value] = {}                 # what arguments are a part of, where a node reads more
        self.conditions: list[Condition] = []                # of the sizes

    def run(self, module: Any, inputs: Sequence[Any]) -> list[Any]:
        """The results of a GraphModule. Raises ImportModelError that names all nodes that are not supported."""
        results = self.graph(module, inputs)
        self.problems += [str(r.why) for r in results if isinstance(r, Unknown)]
        if self.problems:
            found = list(dict.fromkeys(self.problems))
            shown = found[:_MOST_NAMED] + ([f"and {len(found) - _MOST_NAMED} more"] if len(found) > _MOST_NAMED else [])
            raise ImportModelError("the model has nodes that cannot be imported:\n  " + "\n  ".join(shown),
                                   "docs/torch.md lists the operators that have a row")
        return results

    def within(self, bb: BlockBuilder) -> Importer:
        """An importer to another builder, whose problems and conditions are also those of this one."""
        other = Importer(bb, self.known)
        other.problems, other.conditions = self.problems, self.conditions
        return other

    def graph(self, module: Any, inputs: Sequence[Any]) -> list[Any]:
        """What a graph gives for its inputs; the missing nodes of it are noted."""
        values: dict[Any, Any] = {}
        given = iter(inputs)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "get_attr":
                values[node] = self._attribute(module, node.target)
            elif node.op == "call_function":
                values[node] = self._node(node, values)
            elif node.op == "output":
                return [_mapped(n, values) for n in output_nodes(module)]
            else:
                self.problems.append(f"{node.name}: a node of kind {node.op}")
                values[node] = MISSING
        return []

    def _attribute(self, module: Any, path: str) -> Any:
        found = functools.reduce(getattr, path.split("."), module)
        return self.constant(found, path) if hasattr(found, "detach") else found

    def constant(self, tensor: Any, name: str) -> Value:
        """A tensor of the model as a constant, whose memory is the tensor's where that is compact."""
        if tensor not in self.constants:                     # which are told apart by identity
            self.constants[tensor] = self.bb.const(array_of(tensor), name, share=True)
        return self.constants[tensor]

    def _node(self, node: Any, values: Mapping[Any, Any]) -> Any:
        try:
            with self.bb.source(node.name):
                return self._called(node, values)
        except Unsupported as error:
            for name in error.names:
                self.problems.append(f"{name} (node {node.name}{_place(node)})")
        except TilewrightError as error:
            self.problems.append(f"{node.target} (node {node.name}{_place(node)}): {error}")
        return MISSING

    def _called(self, node: Any, values: Mapping[Any, Any]) -> Any:
        meta, target = node.meta.get("val"), node.target
        if str(target) in ("aten._local_scalar_dense.default", "aten.item.default"):
            return Scalar(values[node.args[0]])
        if _is_symbolic(meta):
            return self._number(meta)
        arguments, named = _mapped(node.args, values), _mapped(node.kwargs, values)
        if _any_missing(arguments) or _any_missing(list(named.values())):
            if _is_operator(target) and str(target) not in OPERATORS and decomposition(target) is None:
                raise Unsupported([str(target)])
            return MISSING
        if target is python_operator.getitem:
            found = arguments[0][arguments[1]]
            left_out = found is None and meta is not None
            return Unknown(ImportModelError(f"{node.name} is a result that rows leave out")) if left_out else found
        if not _is_operator(target):
            return self._function(node, arguments, named)
        name = str(target)
        if name in IGNORED or name == "aten._assert_scalar.default" and self._asserted(*arguments):
            return None
        if any(isinstance(leaf, Counted) for leaf in _leaves([arguments, list(named.values())])):
            raise ImportModelError("the size of its input follows from elements of a tensor",
                                   "such a tensor can be a result of the graph, and nothing else")
        if name == "aten.slice.Tensor" and len(arguments) > 3:
            arguments[3] = None                              # the end: the extent of the result says it
        for leaf in _leaves([arguments, list(named.values())]):
            if isinstance(leaf, Unknown):
                raise leaf.why
        arguments, named = _as_tensors(arguments), _as_tensors(named)
        if target._schema.is_mutable:
            raise ImportModelError("the operator changes its inputs, and the graph must be made functional")
        row = OPERATORS.get(name)
        if row is None:
            return self._decomposed(node, arguments, named)
        emitter = Emitter(self.bb, meta, self.known, name, _fake(node.args), self.memory, self.conditions)
        if hasattr(meta, "shape") and any(isinstance(d, int) and d == 0 for d in meta.shape) \
                and name != "aten.nonzero.default":
            return emitter.tensor(0, emitter.dtype, emitter.shape)
        made = row.row(emitter, *arguments, **{k: v for k, v in named.items() if k not in _PLACES})
        if isinstance(meta, (tuple, list)):
            return tuple(emitter.fitted(x, m) for x, m in zip(made, meta))
        return emitter.fitted(made, meta)

    def _number(self, meta: Any) -> Any:
        try:
            return number(meta, self.known)
        except ImportModelError as error:
            return Unknown(error)

    def _asserted(self, condition: Any, message: str) -> bool:
        """Whether a condition needs no call: it holds, is checked of sizes, or is about counted results."""
        if isinstance(condition, Expr):
            self.conditions.append(Condition(condition, message))
        return condition is True or isinstance(condition, (Expr, Unknown))

    def _function(self, node: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """A call of a function of Python: arithmetic of numbers, a region of the graph, results that get names."""
        name = getattr(node.target, "__name__", str(node.target))
        if isinstance(node.target, type) and issubclass(node.target, tuple):       # torch.return_types.NAME
            return tuple(arguments[0] if len(arguments) == 1 else arguments)
        if name in ("wrap_with_set_grad_enabled", "wrap_with_autocast"):
            at = next(k for k, a in enumerate(arguments) if hasattr(a, "graph"))
            return tuple(self.graph(arguments[at], arguments[at + 1:]))
        if name in ("cond", "while_loop"):
            return (emit_cond if name == "cond" else emit_while)(self, *_as_tensors(arguments))
        if all(isinstance(a, (bool, int, float)) for a in arguments) and not named:
            return node.target(*arguments)
        raise Unsupported([name])

    def _decomposed(self, node: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """A node by the graph that PyTorch makes of it out of other operators."""
        rule = decomposition(node.target)
        if rule is None:
            raise Unsupported([str(node.target)])
        try:
            module, flat = decomposed(rule, node)
        except TilewrightError:
            raise
        except Exception as error:
            why = str(error).partition("\n")[0]
            raise ImportModelError(f"PyTorch's decomposition raises {type(error).__name__}: {why}") from error
        if module is None:
            raise Unsupported([str(node.target)])
        leaves = _leaves([list(arguments), dict(named)])
        results = self.graph(module, [leaves[k] for k in flat])
        if any(r is MISSING for r in results):
            return MISSING
        if not isinstance(node.meta.get("val"), (tuple, list)):
            return results[0]
        return tuple(results[0] if len(results) == 1 and isinstance(results[0], tuple) else results)


def output_nodes(module: Any) -> list[Any]:
    """What gives the results of a GraphModule: nodes, numbers, None."""
    given = next(n for n in module.graph.nodes if n.op == "output").args[0]
    return list(given) if isinstance(given, (list, tuple)) else [given]


class Unsupported(Exception):
    """Nodes of these operators have neither a row nor a decomposition."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(", ".join(names))
        self.names = list(names)


@functools.lru_cache(1)
def _tables() -> tuple[Mapping[Any, Any], Mapping[Any, Any]]:
    from torch._decomp import core_aten_decompositions, decomposition_table
    return core_aten_decompositions(), decomposition_table


@functools.lru_cache(4096)
def decomposition(target: Any) -> Any:
    """The function of PyTorch that makes an operator of others; None where there is none."""
    for table in _tables():
        if target in table:
            return table[target]
    return target.decompose if target._can_decompose() else None


def decomposed(rule: Any, node: Any) -> tuple[Any, list[int]]:
    """(the graph of a decomposition, which leaves of the arguments are its inputs); (None, []) of the node itself."""
    from torch._subclasses.functional_tensor import dispatch_functionalize
    from torch.fx.experimental.proxy_tensor import make_fx

    arguments, named = _fake(node.args), _fake(node.kwargs)
    leaves = _leaves([list(arguments), dict(named)])
    flat = [k for k, x in enumerate(leaves) if hasattr(x, "node") or hasattr(x, "detach")]

    def function(*tensors: Any) -> Any:
        given = iter(tensors)
        filled = [next(given) if k in flat else x for k, x in enumerate(leaves)]
        args, kwargs = _unflattened([list(arguments), dict(named)], iter(filled))
        return rule(*args, **kwargs)

    inputs = [leaves[k] for k in flat]
    mode = next((x.fake_mode for x in inputs if hasattr(x, "fake_mode")), None)
    for traced in (function, dispatch_functionalize(function)):
        if mode is None:
            module = make_fx(traced, tracing_mode="fake")(*inputs)
        else:
            with mode:
                module = make_fx(traced)(*inputs)
        called = [n for n in module.graph.nodes if n.op == "call_function" and _is_operator(n.target)]
        if any(n.target is node.target for n in called):
            return None, []
        if not any(n.target._schema.is_mutable for n in called):
            break
    return module, flat


def _is_operator(target: Any) -> bool:
    return hasattr(target, "_schema")


def _is_symbolic(meta: Any) -> bool:
    return hasattr(meta, "node") and hasattr(meta.node, "expr")


def _place(node: Any) -> str:
    """The line of the program that a node comes from."""
    lines = [t.strip() for t in str(node.meta.get("stack_trace") or "").splitlines() if t.strip().startswith("File ")]
    return f", {lines[-1].partition(', in ')[0].removeprefix('File ')}" if lines else ""


def _mapped(x: Any, values: Mapping[Any, Any]) -> Any:
    """Arguments of a node with what the nodes in them have become."""
    if isinstance(x, (list, tuple)):
        return [_mapped(y, values) for y in x]
    if isinstance(x, Mapping):
        return {k: _mapped(y, values) for k, y in x.items()}
    if isinstance(x, slice):
        return slice(*(_mapped(y, values) for y in (x.start, x.stop, x.step)))
    if type(x).__name__ == "dtype":
        return dtype_name(x)
    return values[x] if hasattr(x, "all_input_nodes") else x


def _fake(x: Any) -> Any:
    """Arguments of a node with PyTorch's fake tensors for the nodes in them."""
    if isinstance(x, (list, tuple)):
        return [_fake(y) for y in x]
    if isinstance(x, Mapping):
        return {k: _fake(y) for k, y in x.items()}
    return x.meta["val"] if hasattr(x, "all_input_nodes") else x


def _leaves(x: Any) -> list[Any]:
    if isinstance(x, (list, tuple)):
        return [leaf for y in x for leaf in _leaves(y)]
    if isinstance(x, dict):
        return [leaf for y in x.values() for leaf in _leaves(y)]
    return [x]


def _unflattened(x: Any, leaves: Any) -> Any:
    """x with its leaves replaced in order."""
    if isinstance(x, (list, tuple)):
        return [_unflattened(y, leaves) for y in x]
    if isinstance(x, dict):
        return {k: _unflattened(y, leaves) for k, y in x.items()}
    return next(leaves)


def _as_tensors(x: Any) -> Any:
    """Arguments with tensors for the numbers that are elements of tensors."""
    if isinstance(x, list):
        return [_as_tensors(y) for y in x]
    if isinstance(x, dict):
        return {k: _as_tensors(y) for k, y in x.items()}
    return x.value if isinstance(x, Scalar) else x


def _any_missing(x: Sequence[Any]) -> bool:
    return any(leaf is MISSING for leaf in _leaves(list(x)))
