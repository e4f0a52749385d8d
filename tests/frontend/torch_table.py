"""The operators of PyTorch that have a row: `python -m tests.frontend.torch_table` writes docs/torch.md."""
from __future__ import annotations

import inspect
from pathlib import Path

from tilewright.frontend.torch.operators import FAMILIES
from tilewright.frontend.torch.table import OPERATORS

PAGE = Path(__file__).parents[2] / "docs" / "torch.md"

INTRODUCTION = """# Models of PyTorch

Written by `python -m tests.frontend.torch_table` from the tables of operators in
`tilewright/frontend/torch/operators/`. It takes `pip install 'tilewright[torch]'`.

```
import torch
from tilewright.frontend.torch import compile_exported_program, from_exported_program

program = torch.export.export(model.eval(), (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
run = compile_exported_program(program)      # run(x): tensors of PyTorch in, tensors of PyTorch out
function = from_exported_program(program)    # a function of the graph, its weights as constants

fast = torch.compile(model, backend="tilewright")
```

- `torch.compile` finds the backend by its name where Tilewright is installed; in a checkout call
  `tilewright.frontend.torch.register()` first, or pass `backend=tilewright.frontend.torch.backend`. Graph breaks,
  `dynamic=True` and `mark_dynamic` work as with other backends. `options={"target": ...}` is the target of
  `tilewright.compile`.
- Symbolic sizes of PyTorch are size variables, and expressions of them: one build serves every size of at least 1.
  Sizes of 0, and numbers below 1 that are inputs, are compiled as constants by `torch.compile` and refused else.
- Weights of an exported program are constants, in the memory of the model where they are compact. Compilation computes
  with them, so changes of the model that follow are not seen: export it again. Buffers that the program itself changes
  are no constants, and are changed in place.
- `torch.compile` takes weights as constants where no gradient is wanted (`torch.no_grad()`,
  `torch.inference_mode()`), and compares their versions at each call: once one is changed in place or replaced, the
  graph is compiled anew with weights as inputs, and every later change is seen without compiling. `weight.data = other`
  is seen too; what is written into the memory of `.data` has no version: call `torch.compiler.reset()` after it.
  Weights made in inference mode have none either, and are inputs. Under gradients weights are inputs from the start;
  the backward graph is compiled when it first runs.
- `as_strided` reads the memory around an argument too, where a place in it is named.
- Of what `torch.compile` gives back, views of arguments and of other results are views, and results have the strides
  that PyTorch gives them. Batch norm in training changes its moments; dropout in training is refused.
- An exported program refuses other numbers, flags and sizes than it was exported for (`ArgumentError`, `GraphError`).
- An index out of range is a `CallError`, which names the index and the extent; one below 0 counts from the end where it
  does in PyTorch, and is out of range elsewhere (`gather`, `scatter`, `embedding`, `index_select`, `index_add`).
- Operators that models contain as one (`linear`, `scaled_dot_product_attention`, `layer_norm`, convolutions, pools)
  stay one operator of `topi`. An operator without a row is decomposed by PyTorch's own tables; what these lack is
  named, all nodes at once with their lines in the model's source: `ImportModelError`.
- A result whose size follows from elements, such as that of `nonzero` or `x[x > 0]`, can be a result of the graph and
  nothing else; `torch.compile` breaks the graph there by itself. Where only the begin of a slice is an element, as in
  `x.narrow(0, at.item(), 2)` and `x[at.item()]`, the result is a tensor like any other.
- dtypes are promoted as in PyTorch. Complex and quantized tensors are not supported, nor are tensors of other devices.
  Random numbers are refused: call `model.eval()`. Integers that are divided by 0 give 0, where PyTorch raises.
- `torch.cond` and `while_loop` over tensors are choices and loops of the graph.
- Recurrent layers (`nn.LSTM`, `nn.GRU`, `nn.RNN`) stay one operator without gradients; under them they are written out
  step by step. PyTorch refuses to export them for a length of the sequences that is a size, unless it is done in
  `with tilewright.frontend.torch.whole_recurrent_layers():`. In models that `torch.compile` gets PyTorch runs these
  modules itself, unless `torch._dynamo.config.allow_rnn` is set. Packed sequences are refused.
- Results are tensors that share the memory of Tilewright's by DLPack.

| command | what it shows |
| --- | --- |
| `python -m tests.frontend.torch_opinfo` | PyTorch's samples of its core operators, failures by cause |
| `python -m tests.frontend.torch_models` | models with random weights by both ways, beside PyTorch |
| `python -m tests.frontend.torch_sentences` | embeddings of a trained model beside ONNX Runtime |
| `python -m tests.frontend.without_compiler` | what works where no compiler is found |
"""


def rows(module) -> list[str]:
    """The lines of a family: one for each row, with the operators that it is for."""
    found: dict[int, list] = {}
    for entry in OPERATORS.values():
        if entry.family == module.__name__.rsplit(".", 1)[-1]:
            found.setdefault(id(entry.row), []).append(entry)
    lines = []
    for entries in found.values():
        names = ", ".join(f"`{e.name.removeprefix('aten.').removesuffix('.default')}`" for e in entries)
        lines.append(f"| {names} | {entries[0].text.rstrip('.').replace('|', '&#124;')} |")
    return sorted(lines, key=str.lower)


def page() -> str:
    parts = [INTRODUCTION]
    for title, module in FAMILIES.items():
        summary = (inspect.getdoc(module) or "").splitlines()[0]
        parts.append("\n".join([f"## {title}", "", summary, "", "| operators of ATen | made of |", "| --- | --- |",
                                *rows(module)]))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE}: {len(OPERATORS)} operators")
