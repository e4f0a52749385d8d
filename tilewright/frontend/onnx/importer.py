"""Walks a graph of a file, node by node, and emits what the table of operators makes of each."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.frontend.onnx.limits import MOST_BYTES, MOST_DEPTH, MOST_ENDS, MOST_NODES, MOST_REPORTED, MOST_ZEROS
from tilewright.frontend.onnx.node import Node, Unknown, Unsupported
from tilewright.frontend.onnx.registry import EVALUATED, ROWS, find
from tilewright.frontend.onnx.schemas import check_known, check_node, defaults, function_of, has_function
from tilewright.frontend.onnx.scope import POISON, UNMADE, Poisoned, Scope
from tilewright.frontend.onnx.tensors import ReadExternal, dense_array, tensor_of
from tilewright.frontend.onnx.values import Held, Share, bounded_sizes, elements, first, holds
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.deferred import loaded
from tilewright.graph.ir.values import Value, constant
from tilewright.support.errors import GraphError, ImportModelError, TilewrightError
from tilewright.support.files import shown
from tilewright.te.conditions import Condition
from tilewright.tir.arithmetic import binary

MOST_CHOSEN = 256                      # elements of a tensor of sizes that is made in the graph
_WRONG = (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError, ZeroDivisionError)


class Importer:
    """One model. functions: those of the file, by domain and name; external: what reads tensors of other files."""

    def __init__(self, builder: BlockBuilder, functions: Mapping[tuple[str, str], Any],
                 external: ReadExternal | None) -> None:
        self.builder, self.functions, self.external = builder, functions, external
        self.parameters: Sequence[Value] = ()
        self.symbolic: dict[Held, Value] = {}
        self.clipped: dict[str, Any] = {}                  # extents of slices -> what they are where nothing is cut off
        self.conditions: dict[str, Condition] = {}         # what is taken for granted of sizes, by its text
        self.problems: list[str] = []
        self.unequal: list[tuple[Any, Any]] = []           # extents that would have to be equal
        self.needs: dict[str, None] = {}
        self.unreported = 0
        self.nodes = 0
        self.zeros = 0                                     # bytes of constants that the file has as sparse tensors
        self.depth = 0
        self.calling: list[tuple[str, str]] = []

    # values

    def value(self, held: Held) -> Value:
        """What stands for a tensor in the graph."""
        if held.counted is not None:
            raise Unsupported("a tensor whose size depends on elements, which is supported of results of the model")
        if held.value is not None:
            return held.value
        assert held.data is not None
        if not held.is_symbolic:
            held.value = constant(held.data)
            return held.value
        if held not in self.symbolic:
            array = loaded(held.data)
            if array.size > MOST_CHOSEN:
                raise Unsupported(f"a tensor of {array.size} elements that depend on sizes")
            given = tuple(e.real() if isinstance(e, Share) else e for e in array.reshape(-1).tolist())
            self.symbolic[held] = self.emit(elements, given, held.shape, held.dtype)
        return self.symbolic[held]

    def granted(self, op: str, a: Any, b: Any, label: str) -> bool:
        """Whether `a op b` holds for all sizes of at least 1: a run in which it does not is an error."""
        if not holds(op, a, b, least=1):
            return False
        if not holds(op, a, b):
            self.take_for_granted(binary(op, a, b), label)
        return True

    def take_for_granted(self, condition: Any, label: str) -> None:
        """A run in which a condition on sizes does not hold is an error."""
        self.conditions[str(condition)] = Condition(condition, f"{label} takes for granted that {condition}")

    def emit(self, rule: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a rule makes of values. Raises Unsupported for a result that no machine holds.

        Where a rule refuses slices whose ends depend on sizes and may lie beyond a tensor, such as a table of positions
        beside as many words, it is given slices of full length: a run in which the tensor is too short is an error.
        """
        try:
            made = self.builder.emit_te(rule, *args, **kwargs)
        except GraphError:
            whole = [self.whole(a) for a in args]
            if all(a is b for a, b in zip(whole, args)):
                raise
            made = self.builder.emit_te(rule, *whole, **kwargs)
        self.check_sizes(made if isinstance(made, tuple) else (made,))
        return made

    def whole(self, arg: Any) -> Any:
        """An argument of a rule, with slices in the full length that they say; the same one where it has none."""
        if isinstance(arg, (list, tuple)):
            parts = [self.whole(a) for a in arg]
            return arg if all(a is b for a, b in zip(parts, arg)) else type(arg)(parts)
        if isinstance(arg, Value):
            for axis, d in enumerate(arg.shape):
                if str(d) in self.clipped:
                    arg = self.builder.emit_te(first, arg, self.clipped[str(d)], axis)
        return arg

    @staticmethod
    def check_sizes(values: Sequence[Value]) -> None:
        """Raise Unsupported for a tensor that no machine holds."""
        for v in values:
            bounded_sizes(v.shape)
            if v.type.is_constant and v.type.nbytes() > MOST_BYTES:
                raise Unsupported(f"a result is {v.type}: {v.type.nbytes()} bytes")

    # graphs

    def graph(self, proto: Any, scope: Scope, given: Sequence[Any]) -> list[Any]:
        """The results of a graph within a node, for its inputs."""
        if len(given) != len(proto.input):
            raise Unsupported(f"a graph within it takes {len(proto.input)} input(s), {len(given)} are given")
        with self.deeper():
            self.initializers(proto, scope)
            scope.names.update((i.name, entry) for i, entry in zip(proto.input, given))
            self.run(proto.node, scope)
            return [self.read(scope, o.name, "the result") for o in proto.output]

    def dense(self, sparse: Any) -> Held:
        """A constant that the file has as a sparse tensor. Raises ImportModelError for more than MOST_ZEROS in all."""
        made = dense_array(sparse, self.external, MOST_ZEROS - self.zeros)
        self.zeros += made.nbytes
        return Held.known(made)

    def deeper(self) -> _Depth:
        return _Depth(self)

    def initializers(self, proto: Any, scope: Scope) -> None:
        """The constants of a graph."""
        for t in (*proto.initializer, *(s.values for s in proto.sparse_initializer)):
            if t.name in scope.names:
                raise ImportModelError(f"the name {shown(repr(t.name))} is given to two tensors")
            scope.names[t.name] = None
        try:
            for t in proto.initializer:
                elements, kind = tensor_of(t, self.external)
                scope.names[t.name] = Held.known(elements, kind=kind)
            for s in proto.sparse_initializer:
                scope.names[s.values.name] = self.dense(s)
        except MemoryError:
            raise ImportModelError("there is no memory for the constants of the model",
                                   "import the model where there is more") from None

    def run(self, nodes: Any, scope: Scope) -> None:
        """Import nodes, in order. What goes wrong in them is kept as problems, their results are poisoned."""
        for k, proto in enumerate(nodes):
            self.nodes += 1
            if self.nodes > MOST_NODES:
                raise ImportModelError(f"the model has more than {MOST_NODES} nodes, functions and loops written out")
            label = f"{scope.prefix}{proto.name or f'{proto.op_type}_{k}'}"
            results = self._results(proto, label, scope)
            for name, entry in zip(proto.output, results):
                if name:
                    if name in scope.names:
                        raise ImportModelError(f"{label}: the name {name!r} is given to two tensors")
                    scope.names[name] = entry

    def read(self, scope: Scope, name: str, what: str) -> Any:
        """What a name stands for. Raises Unsupported for an unknown one."""
        there, entry = scope.find(name)
        if not there:
            raise Unsupported(f"{what} is {name!r}, which nothing before it makes: a cycle, a wrong order, or a "
                              "node that is missing")
        if entry is POISON:
            raise Poisoned
        if entry is UNMADE:
            raise Unsupported(f"{what} is {name!r}, a result of an operator of which others alone are supported")
        return entry

    def _results(self, proto: Any, label: str, scope: Scope) -> Sequence[Any]:
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        where = f"{label} ({f'{domain}.' if domain else ''}{proto.op_type})"
        try:
            with self.builder.source(label):
                return self._imported(proto, domain, label, scope)
        except Poisoned:
            pass
        except Unknown as unknown:
            self.problem(f"{where}: {unknown.what} has to be known when the model is imported, and is computed by it",
                         [unknown.held])
        except Unsupported as problem:
            self.problem(f"{where}: {problem}", problem.needs)
        except ImportModelError as error:
            raise ImportModelError(f"{where}: {error}") from error
        except TilewrightError as error:
            self.unequal += [pair for pair in [getattr(error.__cause__, "unequal", None)] if pair is not None]
            self.problem(f"{where}: {str(error).strip()}")
        except RecursionError:
            self.problem(f"{where}: expressions of sizes that are nested too deeply")
        except MemoryError:
            self.problem(f"{where}: there is no memory for its results")
        except _WRONG as error:
            self.problem(f"{where}: its inputs and attributes do not fit ({type(error).__name__}: {error})")
        return [POISON] * len(proto.output)

    def mark(self) -> tuple[int, int, int, dict[str, None], dict[str, Condition]]:
        """What `restore` brings back: the problems and the conditions so far."""
        return len(self.problems), len(self.unequal), self.unreported, dict(self.needs), dict(self.conditions)

    def restore(self, before: tuple[int, int, int, dict[str, None], dict[str, Condition]]) -> None:
        """Forget the problems and the conditions since `before`, of a way that was tried."""
        del self.problems[before[0]:], self.unequal[before[1]:]
        self.unreported, self.needs, self.conditions = before[2:]

    def problem(self, text: str, needs: Sequence[Held] = ()) -> None:
        """Keep a problem for the error at the end."""
        if len(self.problems) < MOST_REPORTED:
            self.problems.append(text)
        else:
            self.unreported += 1
        for held in needs:
            self.needs.update(dict.fromkeys(roots(held)))

    # nodes

    def _imported(self, proto: Any, domain: str, label: str, scope: Scope) -> Sequence[Any]:
        inputs = [self.read(scope, name, "an input") if name else None for name in proto.input]
        while inputs and inputs[-1] is None and not proto.input[len(inputs) - 1]:
            inputs.pop()
        attributes = self._attributes(proto, scope)
        local = self.functions.get((domain, proto.op_type))
        if local is not None:
            return self.call(local, (domain, proto.op_type), proto, label, attributes, inputs, {})
        version = self.version(scope, domain)
        check_node(proto, domain, version, attributes)
        node = Node(self, scope, proto, label, version, attributes, inputs)
        made = self._by_table(node, domain)
        results = list(made) if isinstance(made, tuple) else [made]
        return [_entry(r) for r in results] + [None] * (len(proto.output) - len(results))

    def _by_table(self, node: Node, domain: str) -> Any:
        unknown: Unknown | Unsupported | None = None
        row = find(EVALUATED, domain, node.op, node.version)
        if row is not None:
            before = self.mark()
            try:
                return row.make(node)
            except (Unknown, Unsupported) as error:
                self.restore(before)
                unknown = error
        row = find(ROWS, domain, node.op, node.version)
        if row is not None:
            check_known(node.attributes, len(node), row)
            made = row.make(node)
            return made if row.attributes is None else _whole(made, node)
        if unknown is not None:
            raise unknown
        return self.by_function(node)

    def by_function(self, node: Node) -> Any:
        """The results of a node by the definition of its operator by others."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        body = function_of(node.proto, domain, node.version, node.inputs)
        attributes = {**defaults(domain, node.op, node.version), **node.attributes}
        return tuple(self.call(body, (domain, node.op), node.proto, node.label, attributes, node.inputs,
                               node.scope.versions))

    def version(self, scope: Scope, domain: str) -> int:
        """The version of a domain's operators."""
        if domain not in scope.versions:
            raise Unsupported(f"the model says no version of the domain {domain or 'ai.onnx'!r}")
        return scope.versions[domain]

    def call(self, body: Any, name: tuple[str, str], proto: Any, label: str, attributes: Mapping[str, Any],
             inputs: Sequence[Any], outer: Mapping[str, int]) -> list[Any]:
        """The results of a function of operators, written out. outer: versions of domains that it says none of."""
        if name in self.calling and name in self.functions:
            raise Unsupported("the function calls itself")
        if len(inputs) > len(body.input):
            raise Unsupported(f"the function takes {len(body.input)} input(s), {len(inputs)} are given")
        own = {a.name: a for a in body.attribute_proto}
        own.update((k, a) for k, a in attributes.items())
        scope = Scope({**outer, **versions_of(body.opset_import)}, None, own, f"{label}/")
        scope.names.update((n, None) for n in body.input)
        scope.names.update(zip(body.input, inputs))
        before = len(self.problems) + self.unreported
        self.calling.append(name)
        try:
            with self.deeper():
                self.run(body.node, scope)
                if len(self.problems) + self.unreported > before:
                    raise Poisoned
                return [self.read(scope, n, "a result") if n in scope.names else None
                        for n in body.output][:len(proto.output)]
        finally:
            self.calling.pop()

    def _attributes(self, proto: Any, scope: Scope) -> dict[str, Any]:
        """The attributes by name; those that stand for an attribute of the function have its value."""
        meant = ((a.name, scope.attributes.get(a.ref_attr_name) if a.ref_attr_name else a) for a in proto.attribute)
        return {name: a for name, a in meant if a is not None}

    # what cannot be imported, before anything is

    def survey(self, nodes: Any, versions: Mapping[str, int], missing: dict[str, list[str]],
               sizes: dict[tuple[str, str], int]) -> int:
        """How many nodes there are, functions written out; sizes: of functions, by name.

        Collects the nodes whose operator neither the table nor a function has, in graphs within nodes too.
        """
        count = 0
        for proto in nodes:
            count += 1
            if not (isinstance(proto.op_type, str) and isinstance(proto.domain, str) and isinstance(proto.name, str)):
                raise ImportModelError(f"a node has a name that is no text: {proto.op_type!r}, {proto.name!r}")
            if len(proto.input) > MOST_ENDS or len(proto.output) > MOST_ENDS:
                raise ImportModelError(f"{proto.name or proto.op_type} has {len(proto.input)} inputs and "
                                       f"{len(proto.output)} results, at most {MOST_ENDS} are supported")
            domain = "" if proto.domain == "ai.onnx" else proto.domain
            key = (domain, proto.op_type)
            if key in self.functions:
                if key not in sizes:
                    sizes[key] = 0
                    body = self.functions[key]
                    with self.deeper():
                        sizes[key] = self.survey(body.node, versions_of(body.opset_import), missing, sizes)
                count += sizes[key]
                continue
            version = versions.get(domain, 0)
            if not any(find(table, *key, version) for table in (ROWS, EVALUATED)) and not has_function(*key, version):
                name = f"{domain or 'ai.onnx'}.{proto.op_type} of version {version}"
                missing.setdefault(name, []).append(proto.name or proto.op_type)
            for a in proto.attribute:
                for g in ([a.g] if a.type == 5 else a.graphs if a.type == 10 else ()):
                    with self.deeper():
                        count += self.survey(g.node, versions, missing, sizes)
        return count


class _Depth:
    """A level of graphs within graphs and functions within functions."""

    def __init__(self, importer: Importer) -> None:
        self.importer = importer

    def __enter__(self) -> None:
        self.importer.depth += 1
        if self.importer.depth > MOST_DEPTH:
            self.importer.depth -= 1
            raise ImportModelError(f"graphs and functions are nested more than {MOST_DEPTH} deep")

    def __exit__(self, *_: object) -> None:
        self.importer.depth -= 1


def versions_of(imports: Any) -> dict[str, int]:
    """The version of each domain's operators."""
    found = {"" if i.domain == "ai.onnx" else i.domain: int(i.version) for i in imports}
    for domain, version in found.items():
        if not 0 < version < 2**31:
            raise ImportModelError(f"the model says version {version} of the domain {domain or 'ai.onnx'!r}")
    return found


def _whole(made: Any, node: Node) -> tuple[Any, ...]:
    """The results of an operator that no schema describes; what its function leaves out is no optional value."""
    results = made if isinstance(made, tuple) else (made,)
    return (*(UNMADE if r is None else r for r in results), *[UNMADE] * (node.outputs() - len(results)))


def _entry(result: Any) -> Any:
    """What a function of the table gives, as an entry of a scope."""
    if isinstance(result, Value):
        return Held.of(result)
    if isinstance(result, np.ndarray):
        return Held.known(result)
    return result


def roots(held: Held) -> list[str]:
    """The parameters that a tensor is computed from."""
    found: dict[str, None] = {}
    seen: set[Value] = set()
    stack = [held.value] if held.value is not None else []
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        if v.call is not None:
            stack.extend(v.call.inputs)
        elif not v.is_constant:
            found[v.name] = None
    return list(found)
