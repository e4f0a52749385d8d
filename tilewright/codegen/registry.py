"""The back ends by the kinds of targets that they make code for."""
from __future__ import annotations

from tilewright.codegen import llvm
from tilewright.codegen.back_end import BackEnd
from tilewright.support.errors import TargetError, with_hint
from tilewright.support.target import Target

BACK_ENDS: dict[str, BackEnd] = {"llvm": llvm.BACK_END}


def back_end(target: Target) -> BackEnd:
    """The back end for a target. Raises TargetError where there is none."""
    found = BACK_ENDS.get(target.kind)
    if found is None:
        raise TargetError(with_hint(
            f"there is no code generation for {target.kind!r} yet",
            "build for " + " or ".join(f'"{kind}"' for kind in BACK_ENDS) +
            ", or look at the loops with lower(..., simple_mode=True)"))
    return found
