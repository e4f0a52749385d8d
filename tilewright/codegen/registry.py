"""The back ends by the kinds of targets that they make code for: the folders of `codegen`, and those of programs."""
from __future__ import annotations

from pathlib import Path

from tilewright.codegen.back_end import BackEnd
from tilewright.lowering.passes import use_list
from tilewright.support.errors import TargetError, with_hint
from tilewright.support.registry import load, register_hook
from tilewright.support.target import Target
from tilewright.support.target.kinds import add_kind

BACK_ENDS: dict[str, BackEnd] = {}                    # those that are loaded


def register(end: BackEnd) -> None:
    """Make code for targets of its kind with a back end."""
    add_kind(end.kind, end.target)
    use_list(end.kind, end.passes)
    BACK_ENDS[end.kind] = end


@register_hook("codegen.kinds")
def kinds_with_code() -> list[str]:
    """The kinds of targets that have a back end, loaded or not."""
    return sorted({*BACK_ENDS, *(p.parent.name for p in Path(__file__).parent.glob("*/__init__.py"))})


@register_hook("codegen.load")
def load_back_end(kind: str) -> BackEnd | None:
    """The back end for a kind of targets, loaded with its first use; None where there is none."""
    if kind not in BACK_ENDS and kind in kinds_with_code():
        load(f"{__package__}.{kind}")
    return BACK_ENDS.get(kind)


def back_end(target: Target) -> BackEnd:
    """The back end for a target. Raises TargetError where there is none."""
    found = load_back_end(target.kind)
    if found is None:
        raise TargetError(with_hint(
            f"there is no code generation for {target.kind!r} yet",
            "build for " + " or ".join(f'"{kind}"' for kind in kinds_with_code()) +
            ", or look at the loops with lower(..., simple_mode=True)"))
    return found
