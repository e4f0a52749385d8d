"""The operators of ONNX that are supported. `python -m tests.frontend.onnx_table` writes docs/onnx.md."""
from __future__ import annotations

from pathlib import Path

from tilewright.frontend.onnx import operators  # noqa: F401
from tilewright.frontend.onnx.registry import EVALUATED, NEWEST, ROWS

PAGE = Path(__file__).parents[2] / "docs" / "onnx.md"

INTRODUCTION = """# Models in the ONNX format

Written by `python -m tests.frontend.onnx_table` from the table of operators in `tilewright/frontend/onnx/operators/`.

`tilewright.frontend.onnx.from_onnx(model, shapes=..., values=...)` makes a function of the graph of a file, its bytes
or a `ModelProto`; `tilewright.graph.compile.build_function(function)` compiles it. It takes
`pip install 'tilewright[onnx]'`.

- An extent with a name in the file is the size variable of that name, an unknown one a variable of its own: one build
  serves every size. `shapes={"x": ("batch", 3, 224, 224)}` says otherwise. Sizes of different names that operators
  need to be equal are one size, and one that has to be a number is that number: other calls are refused.
- Small tensors of integers are followed element by element, as numbers or expressions of sizes: what computes shapes is
  computed while the model is imported. Where an input decides a shape, a branch or a number of turns, its elements are
  given: `values={"shape": array}`. The error names such inputs, in the text and as `needs`.
- Functions of the file are written out, and operators without a row that the standard defines by others. The branch of
  an `If` whose condition is known is taken, the turns of a `Loop` or `Scan` whose number is known are written out,
  sequences are lists of the importer.
- Integers of 4 and 2 bits lie in integers of 8.
- Operators that are not supported are named all at once, with their nodes: `ImportModelError`.
- A file is not trusted: what tensors claim is compared with the bytes that are there, other files are read in the
  model's folder alone (where the model's path is a link, in the folder of what it leads to as well), and nodes, nesting
  and turns are bounded (`tilewright/frontend/onnx/limits.py`).
- Large tensors stay in their files until a pass reads them: a model that is compiled from a path takes memory for what
  its kernels read, once. The files may be deleted or replaced by then; one that was written over is an error.
- `tilewright.frontend.onnx.backend.backend()` is a class for `onnx.backend`; `python -m tests.frontend.onnx_backend`
  runs the cases of the onnx package with it.
"""

def versions(row) -> str:
    if row.until == NEWEST:
        return f"{row.since} on" if row.since > 1 else "all"
    return f"{row.since} to {row.until}"


def page() -> str:
    parts = [INTRODUCTION]
    domains = sorted({domain for domain, _ in ROWS})
    for domain in domains:
        lines = [f"## {domain or 'ai.onnx'}", "", "| operator | versions | made of |", "| --- | --- | --- |"]
        for (own, name), rows in sorted(ROWS.items()):
            if own == domain:
                lines += [f"| {name} | {versions(r)} | {r.text.rstrip('.').replace('|', '&#124;')} |"
                          for r in sorted(rows, key=lambda r: r.since)]
        parts.append("\n".join(lines))
    names = sorted({name for _, name in EVALUATED})
    parts.append("## While the model is imported\n\nOf tensors whose elements are known: " + ", ".join(names) + ".")
    return "\n\n".join(p.strip("\n") for p in parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE}: {len(ROWS)} operators")
