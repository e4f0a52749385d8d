"""torch.compile(model, backend="tilewright"): the graphs that PyTorch captures of a model, compiled.

PyTorch makes each graph functional and gives it here (AOTAutograd). Without gradients the weights are constants of the
compiled function; a weight that is changed or replaced is noticed at the next call by its version, and the graph is
compiled once more with its weights as inputs. Under gradients the forward and the backward graph are compiled, with
weights as inputs; the backward graph at its first call.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tilewright.driver import Target
from tilewright.frontend.torch.function import Imported, import_graph
from tilewright.frontend.torch.pytorch import pytorch
from tilewright.frontend.torch.whole import whole_recurrent_layers
from tilewright.graph.compile import build_function
from tilewright.graph.plan.executable import Executable
from tilewright.support.errors import ArgumentError, described, nearest
from tilewright.support.locks import ForkSafeLock

_OPTIONS = ("target",)
GREATEST_SIZE = 2 ** 31 - 2          # of a size variable, which is at least 1


def backend(module: Any, example_inputs: Sequence[Any], *, mode: str | None = None,
            options: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The backend of torch.compile. options: {"target": ...}, as for `tilewright.compile`.

    Raises ImportModelError at the first call of a graph with nodes that are not supported; it names them all.
    """
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func
    options = dict(options or {})
    for name in options:
        if name not in _OPTIONS:
            raise ArgumentError(f"torch.compile(backend='tilewright'): there is no option {described(name)}",
                                nearest(name, _OPTIONS) or f"the options are {', '.join(_OPTIONS)}")
    target = options.get("target")

    def training(graph: Any, inputs: Sequence[Any]) -> Any:
        return make_boxed_func(CompiledGraph(graph, (), target))

    def inference(graph: Any, inputs: Sequence[Any]) -> Any:
        return make_boxed_func(CompiledGraph(graph, _weights(), target))
    compiler = aot_autograd(fw_compiler=training, bw_compiler=training, inference_compiler=inference)
    with _recurrent_layers(example_inputs):
        return compiler(module, list(example_inputs))


def register() -> None:
    """Enter the backend "tilewright" where the package is imported without being installed."""
    pytorch()
    from torch._dynamo.backends.registry import list_backends, register_backend
    if "tilewright" not in list_backends(exclude_tags=()):
        register_backend(backend, name="tilewright")


def _recurrent_layers(inputs: Sequence[Any]) -> AbstractContextManager[Any]:
    """Recurrent layers stay whole without gradients; under them they become steps, which have some."""
    torch = pytorch()
    if torch.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in inputs):
        flags: AbstractContextManager[Any] = torch.backends.mkldnn.flags(enabled=False)   # its LSTM has no steps
        return flags
    return whole_recurrent_layers()


def _weights() -> tuple[int, ...]:
    """The inputs of the graph in hand that are parameters and buffers of modules, which the graph does not change."""
    from torch._guards import TracingContext
    context = TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    if metadata is None:
        return ()
    changed = {k for k, info in enumerate(metadata.input_info) if info.mutates_data}
    return tuple(k for k in metadata.static_input_indices if k not in changed)


class CompiledGraph:
    """A graph of ATen operators that is compiled at its first call: `compiled(*inputs)` gives a list of results.

    weights: the inputs that are constants while nobody changes them, but for those that do not count their changes. An
    instance for numbers that size variables do not have, such as 0, is compiled for these.
    """

    def __init__(self, graph: Any, weights: Sequence[int], target: str | Target | None) -> None:
        self.graph, self.weights, self.target = graph, tuple(weights), target
        self._lock = ForkSafeLock()
        self._held: tuple[Any, ...] | None = None
        self._versions: list[tuple[int, int]] = []
        self._instances: dict[tuple[tuple[str, int], ...], tuple[Imported, Executable]] = {}

    def __call__(self, *inputs: Any) -> list[Any]:
        imported, run = self._instance(inputs, ())
        sizes = imported.values(inputs)
        others = tuple((v.name, n) for v, n in sizes.items() if not 1 <= n <= GREATEST_SIZE)
        if others:
            imported, run = self._instance(inputs, others)
            sizes = imported.values(inputs)
        return imported.returned(run(*imported.arguments(inputs, sizes)), inputs, sizes)

    def _instance(self, inputs: Sequence[Any], known: tuple[tuple[str, int], ...]) -> tuple[Imported, Executable]:
        with self._lock:
            if self.weights and self._held is not None and not self._unchanged(inputs):
                self.weights, self._held = (), None
                self._instances.clear()
            if self._held is None:
                self.weights = tuple(k for k in self.weights if not inputs[k].is_inference())
                self._held = tuple(inputs[k] for k in self.weights)
                self._versions = _versions(self._held)
            found = self._instances.get(known)
            if found is None:
                imported = import_graph(self.graph, dict(zip(self.weights, self._held)), known=dict(known), share=True)
                found = self._instances[known] = (imported, build_function(imported.function, self.target))
            return found

    def _unchanged(self, inputs: Sequence[Any]) -> bool:
        assert self._held is not None
        given = [inputs[k] for k in self.weights]
        return all(map(operator.is_, given, self._held)) and _versions(self._held) == self._versions


def _versions(tensors: Sequence[Any]) -> list[tuple[int, int]]:
    """How often tensors were changed in place, and where they lie. Tensors of inference mode do not count changes."""
    return [(t._version, t.data_ptr()) for t in tensors]
