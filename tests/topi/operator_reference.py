"""The list of topi's operators. `python -m tests.topi.operator_reference` writes docs/topi.md."""
from __future__ import annotations

import inspect
from pathlib import Path

from tests.schedule.reference import first_sentence
from tilewright import topi

PAGE = Path(__file__).parents[2] / "docs" / "topi.md"

INTRODUCTION = """# The operators of topi

Written by `python -m tests.topi.operator_reference` from the docstrings. `topi.NAME` of tensors gives tensors of
[te](te.md): what each element is, without a schedule. Tensors come first, attributes are keywords with plain values;
names and defaults are those of NumPy and `torch.nn.functional` where they have the operator. TVM's names and
signatures are in `tilewright.compat`.

Shapes broadcast as in NumPy; a symbolic extent fits itself and the constant 1. An integer beside a float takes the
float's type, functions of floats take integers as float32. Floats of 16 bits are added up in float32 and rounded once.
Arguments that do not fit raise TensorExpressionError.
"""


def call(name: str) -> str:
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(getattr(topi, name)).parameters.values()]
    return f"{name}{inspect.Signature(parameters)}".replace("'", '"').replace("|", "&#124;")


def page() -> str:
    parts = [INTRODUCTION]
    for family, module in topi.FAMILIES.items():
        rows = [f"## {family}", "", (inspect.getdoc(module) or "").splitlines()[0], "", "| call | gives |",
                "| --- | --- |"]
        for name in module.__all__:
            text = first_sentence(inspect.getdoc(getattr(topi, name)) or "").rstrip(".").replace("|", "&#124;")
            rows.append(f"| `{call(name)}` | {text} |")
        parts.append("\n".join(rows))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE}: {len(topi.__all__)} operators")
