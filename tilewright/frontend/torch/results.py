"""Results of a compiled graph as the tensors that PyTorch would give: their memory, its order, what shares it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.frontend.torch.arrays import tensor_of
from tilewright.frontend.torch.fx import output_nodes
from tilewright.frontend.torch.layouts import layout, numbers
from tilewright.frontend.torch.sizes import Number, number
from tilewright.tir import Expr, Var
from tilewright.tir.interp.execute import evaluate

Sizes = Mapping[Var, int]


@dataclass(frozen=True)
class Result:
    """Result `index` of the function: as many rows as result `rows` says, or its element as a number.

    order: the axes of PyTorch's tensor as they lie in memory, which is how the function gives them; () is in order.
    """
    index: int
    rows: int | None = None
    number: bool = False
    order: tuple[int, ...] = ()

    def of(self, results: Sequence[Any]) -> Any:
        """The result of PyTorch among those of the function."""
        tensor = tensor_of(results[self.index])
        if self.rows is not None:
            tensor = tensor[:tensor_of(results[self.rows]).item()].contiguous()
        if self.order:
            tensor = tensor.permute([self.order.index(k) for k in range(len(self.order))])
        return tensor.item() if self.number else tensor


@dataclass(frozen=True)
class View:
    """A result that shares the memory of an argument, or of another result; `offset` counts from its first element.

    shape is None where the result is the whole of it.
    """
    of: int
    argument: bool
    shape: tuple[Number, ...] | None = None
    strides: tuple[Number, ...] = ()
    offset: Number = 0

    def made(self, base: Any, sizes: Sizes) -> Any:
        """The view of a tensor."""
        if self.shape is None:
            return base
        offset, = _evaluated([self.offset], sizes)
        return base.as_strided(_evaluated(self.shape, sizes), _evaluated(self.strides, sizes),
                               base.storage_offset() + offset)


def _evaluated(of: Sequence[Number], sizes: Sizes) -> list[Any]:
    return [evaluate(n, sizes) if isinstance(n, Expr) else n for n in of]


def returned(results: Sequence[Any], given: Sequence[Any], made: Sequence[Any], sizes: Sizes) -> list[Any]:
    """What PyTorch gets for the results of a GraphModule. given: its arguments; made: what the function has given."""
    found = [r.of(made) if isinstance(r, Result) else evaluate(r, sizes) if isinstance(r, Expr) else r
             for r in results]
    return [r.made((given if r.argument else found)[r.of], sizes) if isinstance(r, View) else r for r in found]


def views(module: Any, known: Mapping[str, int]) -> dict[int, View]:
    """The results of a GraphModule, by number, that share memory with an argument or with another result.

    PyTorch's fake tensors share memory as its tensors would. What a model returns PyTorch makes itself, of the
    arguments and of the results that own memory; of results that share it, it reads shape, strides and offset.
    """
    graph, nodes = module.graph, output_nodes(module)
    owners: dict[int, Any] = {}
    inputs = {n: k for k, n in enumerate(n for n in graph.nodes if n.op == "placeholder")}
    for node in graph.nodes:
        if (memory := _memory(node)) is not None:
            owners.setdefault(memory, node)
    first = {n: k for k, n in reversed(list(enumerate(nodes)))}
    found = {}
    for k, node in enumerate(nodes):
        owner = owners.get(_memory(node) or 0)
        if owner is None:
            continue
        if owner in inputs:
            view = _view(node, owner, inputs[owner], True, known)
        elif first.get(owner, k) != k and layout(owner.meta["val"], known) is not None:
            view = _view(node, owner, first[owner], False, known)
        else:
            continue
        if view is not None:
            found[k] = view
    return found


def _view(node: Any, owner: Any, of: int, argument: bool, known: Mapping[str, int]) -> View | None:
    if node is owner:
        return View(of, argument)
    fake, base = node.meta["val"], owner.meta["val"]
    if fake.dtype != base.dtype:
        return None
    return View(of, argument, numbers(fake.shape, known), numbers(fake.stride(), known),
                number(fake.storage_offset() - base.storage_offset(), known))


def _memory(node: Any) -> int | None:
    """Which memory the fake tensor of a node has; None for what is no tensor of numbers side by side."""
    fake = node.meta.get("val") if hasattr(node, "meta") else None
    if fake is None or str(getattr(fake, "layout", "")) != "torch.strided":
        return None
    return int(fake.untyped_storage()._cdata)
