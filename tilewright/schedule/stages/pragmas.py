"""Pragmas of a stage that bring code of the user."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from tilewright.schedule.stages.records import Call
from tilewright.support.errors import described


def llvm_text(call: Call, given: Any) -> str:
    """LLVM IR as text, or as the path of a .ll file, which is read now."""
    if isinstance(given, Path) or isinstance(given, str) and given.endswith((".ll", ".bc")):
        path = Path(given)
        if path.suffix != ".ll":
            call.refuse(f"{path} is no text of LLVM IR", "clang -S -emit-llvm writes a .ll file, llvm-dis makes it of "
                        "a .bc file")
        try:
            return path.read_text()
        except (OSError, ValueError) as error:
            why = str(error)
        call.refuse(f"{path} cannot be read: {why}")
    if not isinstance(given, str) or "define" not in given:
        call.refuse(f"{described(given)} is no LLVM IR that defines a function",
                    "the text that clang -S -emit-llvm writes, or the path of a .ll file")
    return given
