"""Code of the user that is linked into a kernel: the annotation `pragma_import_llvm` of a loop."""
from __future__ import annotations

from tilewright.support.errors import CodegenError, described
from tilewright.tir.node import walk
from tilewright.tir.stmt import For, PrimFunc

ANNOTATION = "pragma_import_llvm"
ATTRIBUTE = "tilewright.import_llvm"


def keep_imports(func: PrimFunc) -> PrimFunc:
    """What loops import is an attribute of the function, since loops need not survive."""
    texts = [n.annotations[ANNOTATION] for n in walk(func.body) if isinstance(n, For) and ANNOTATION in n.annotations]
    wrong = next((text for text in texts if not isinstance(text, str)), None)
    if wrong is not None:
        raise CodegenError(f"{func.name}: {ANNOTATION} is {described(wrong)}, expected LLVM IR as text")
    return func.with_attr(ATTRIBUTE, list(dict.fromkeys([*func.attrs.get(ATTRIBUTE, ()), *texts]))) if texts else func
