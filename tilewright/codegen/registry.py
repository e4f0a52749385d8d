"""The back ends by the kinds of targets that they make code for."""
from __future__ import annotations

from tilewright.codegen.back_end import BackEnd
from tilewright.support.errors import TargetError, with_hint
from tilewright.support.registry import load
from tilewright.support.target import Target

# kind of target -> the folder whose BACK_END makes code for it, imported with the first such code
BACK_ENDS = {"llvm": "tilewright.codegen.llvm", "c": "tilewright.codegen.c"}


def back_end(target: Target) -> BackEnd:
    """The back end for a target. Raises TargetError where there is none."""
    if target.kind not in BACK_ENDS:
        raise TargetError(with_hint(
            f"there is no code generation for {target.kind!r} yet",
            "build for " + " or ".join(f'"{kind}"' for kind in BACK_ENDS) +
            ", or look at the loops with lower(..., simple_mode=True)"))
    found: BackEnd = load(BACK_ENDS[target.kind]).BACK_END
    return found
