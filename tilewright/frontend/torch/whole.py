"""Recurrent layers as one operator while PyTorch traces a model, whatever the length of their sequences."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.frontend.torch.pytorch import pytorch

LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")


@contextmanager
def whole_recurrent_layers() -> Iterator[None]:
    """In it, recurrent layers without gradients stay one operator in torch.export and torch.compile.

    PyTorch writes them out step by step, and takes the length of the example for it: it refuses to export a model whose
    length is a size. Here it is told their shapes. The tables of PyTorch that say so are the process's; they are as
    before behind the context.
    """
    torch = pytorch()
    from torch._export.utils import _special_op_to_preserve_cia
    from torch._subclasses.fake_impls import get_fast_op_impls
    from torch.export.exported_program import _override_composite_implicit_decomp
    operators = [getattr(torch.ops.aten, name).input for name in LAYERS]
    shapes = get_fast_op_impls()                     # of calls with sizes
    before = {op: shapes[op] for op in operators if op in shapes}
    shapes.update(dict.fromkeys(operators, _results))
    try:
        with _override_composite_implicit_decomp(dict.fromkeys(operators, _special_op_to_preserve_cia)):
            yield
    finally:
        for op in operators:
            shapes.pop(op, None)
        shapes.update(before)


def _results(mode: Any, x: Any, states: Any, params: Sequence[Any], has_biases: bool, num_layers: int, dropout: float,
             train: bool, bidirectional: bool, batch_first: bool) -> tuple[Any, ...]:
    """PyTorch's fake results of a layer: the outputs and the last states."""
    states = states if isinstance(states, (list, tuple)) else [states]
    with mode:
        steps, batch = (x.shape[1], x.shape[0]) if batch_first else x.shape[:2]
        y = x.new_empty((steps, batch, states[0].shape[2] * (2 if bidirectional else 1)))
        return (y.transpose(0, 1) if batch_first else y, *(s.new_empty(s.shape) for s in states))
