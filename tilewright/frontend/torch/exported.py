"""Programs of torch.export as functions of the graph."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.driver import Target
from tilewright.frontend.torch.dtypes import dtype_name
from tilewright.frontend.torch.function import Imported, import_graph
from tilewright.frontend.torch.pytorch import pytorch
from tilewright.frontend.torch.whole import whole_recurrent_layers
from tilewright.graph.compile import build_function
from tilewright.graph.ir.values import Function
from tilewright.support.errors import ArgumentError, GraphError, described
from tilewright.tir import Var


def from_exported_program(program: Any, name: str = "main") -> Function:
    """The function of a torch.export.ExportedProgram, its parameters, buffers and lifted tensors as constants.

    The parameters of the function are the buffers that the program changes, then the tensors among its inputs, in order
    and without their structure, then one of the shape (n, 0) for each size n that no tensor has as an extent.
    The results are the new values of these buffers, then the tensors among the outputs of the program.
    Constants share the memory of the model's tensors where these are compact. They count as fixed: compilation may
    compute with them, so a later change of the model is not promised to be seen.
    Raises ImportModelError that names every node that is not supported, with its place in the model's source.
    """
    return import_program(decomposed_program(program), name).function


def decomposed_program(program: Any) -> Any:
    """A program without calls that change tensors. Raises ArgumentError for what is no exported program."""
    torch = pytorch()
    if not isinstance(program, torch.export.ExportedProgram):
        raise ArgumentError(f"from_exported_program: {described(program)} is no exported program",
                            "make one: torch.export.export(model, example_inputs)")
    with whole_recurrent_layers():
        return program.run_decompositions({})


def import_program(program: Any, name: str = "main") -> Imported:
    """The function of a decomposed program, with the way from arguments of PyTorch to those of the function."""
    signature = program.graph_signature
    changed = {*signature.buffers_to_mutate.values(), *getattr(signature, "parameters_to_mutate", {}).values()}
    weights = {}
    for k, spec in enumerate(signature.input_specs):
        if spec.kind.name in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR") and spec.target not in changed:
            weights[k] = _tensor(program, spec)
        elif spec.kind.name in ("CUSTOM_OBJ", "TOKEN"):
            raise ArgumentError(f"from_exported_program: the input {spec.arg.name} is no tensor: {spec.kind.name}")
    return import_graph(program.graph_module, weights, name)


def _tensor(program: Any, spec: Any) -> Any:
    if spec.target in program.state_dict:
        return program.state_dict[spec.target]
    return program.constants[spec.target]


def compile_exported_program(program: Any, target: str | Target | None = None) -> CompiledProgram:
    """An exported program compiled: called as the model is, with tensors of PyTorch, it gives what the model gives."""
    return CompiledProgram(program, target)


class CompiledProgram:
    """compiled(*args, **kwargs) of tensors of PyTorch, as the model itself; results share memory by DLPack.

    Buffers that the model changes are changed in place. Raises ArgumentError where the structure of the arguments, or
    what is in it, is not that of the example inputs, GraphError where their shapes do not fit.
    """

    def __init__(self, program: Any, target: str | Target | None = None) -> None:
        program = decomposed_program(program)
        self.imported = import_program(program)
        self.executable = build_function(self.imported.function, target)
        self.spec, self.out_spec = program.call_spec.in_spec, program.call_spec.out_spec
        signature = program.graph_signature
        self.buffers = {k: _tensor(program, s) for k, s in enumerate(signature.input_specs)
                        if s.kind.name != "USER_INPUT" and k in self.imported.shapes}
        self.user = [k for k, s in enumerate(signature.input_specs) if s.kind.name == "USER_INPUT"]
        self.arguments = [s.arg for s in signature.input_specs]
        self.limits = _limits(program)
        self.outputs = list(signature.output_specs)
        self.places = {s.arg.name: k for k, s in enumerate(signature.input_specs)}
        self.targets = {s.target: k for k, s in enumerate(signature.input_specs) if s.target}

    def _check(self, leaves: Sequence[Any]) -> None:
        """Raise ArgumentError for an argument of another kind than the example, or another number than a fixed one."""
        torch = pytorch()
        for k, x in zip(self.user, leaves):
            spec = self.arguments[k]
            kind = type(spec).__name__
            if kind == "TensorArgument":
                if not isinstance(x, torch.Tensor):
                    raise ArgumentError(f"the argument {spec.name} is {described(x)}, no tensor of PyTorch",
                                        "torch.from_numpy makes one of an array")
                dtype_name(x.dtype)
            elif kind == "ConstantArgument" and (type(x) is not type(spec.value) or x != spec.value):
                raise ArgumentError(f"the argument {spec.name} is {described(x)}, and the program was exported for "
                                    f"{described(spec.value)}", "export it again, or with dynamic_shapes for this one")
            elif kind == "SymIntArgument" and type(x) is not int:
                raise ArgumentError(f"the argument {spec.name} is {described(x)}, not an integer")

    def _check_sizes(self, sizes: Mapping[Var, int]) -> None:
        for v, n in sizes.items():
            low, high = self.limits.get(v.name, (n, n))
            if not low <= n <= high:
                raise GraphError(f"the size {v.name} is {n}, and the program was exported for {low} to {high}",
                                 "export it with another torch.export.Dim(min=..., max=...)")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from torch.utils import _pytree as pytree
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self.spec:
            raise ArgumentError(f"the arguments have the structure {spec}, and {self.spec} is needed",
                                "call it as the model was called for torch.export")
        self._check(leaves)
        given: dict[int, Any] = {**dict(zip(self.user, leaves)), **self.buffers}
        arguments = _Given(given)
        sizes = self.imported.values(arguments)
        self._check_sizes(sizes)
        made = self.imported.returned(self.executable(*self.imported.arguments(arguments, sizes)), arguments, sizes)
        results = []
        for spec_, value in zip(self.outputs, made):
            kind = spec_.kind.name
            if kind in ("BUFFER_MUTATION", "PARAMETER_MUTATION"):
                self.buffers[self.targets[spec_.target]].detach().copy_(value)    # counts as a change of the buffer
            elif kind == "USER_INPUT_MUTATION":
                given[self.places[spec_.target]].detach().copy_(value)
            else:
                results.append(value)
        return pytree.tree_unflatten(results, self.out_spec)


def _limits(program: Any) -> dict[str, tuple[int, int]]:
    """The least and the greatest number that each size of a program stands for; 0 and 1 are always allowed."""
    found = {}
    for symbol, range_ in getattr(program, "range_constraints", {}).items():
        low, high = (int(x) if x.is_Integer else None for x in (range_.lower, range_.upper))
        found[str(symbol)] = (low if low is not None and low > 2 else 0, high if high is not None else 2 ** 63)
    return found


class _Given(Sequence[Any]):
    """Arguments by number, of which those that are constants are missing."""

    def __init__(self, given: dict[int, Any]) -> None:
        self.given = given

    def __getitem__(self, k: Any) -> Any:
        return self.given[k]

    def __len__(self) -> int:
        return len(self.given)

