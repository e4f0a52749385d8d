"""The floors of the package: a folder imports only from earlier rows, at the top of the file."""
import ast
import functools
from pathlib import Path

import tilewright

ROOT = Path(tilewright.__file__).parent
FLOORS = [
    "support", "runtime", "tir", "formulas", "arith", "script", "te", "schedule", "lowering topi", "codegen", "rules",
    "records", "driver", "graph", "rpc", "tune frontend", "compat", "cli viz",
]
FLOOR = {name: row for row, names in enumerate(FLOORS) for name in names.split()}


@functools.cache
def imports():
    """(file, dotted name, line, at top level) of everything that a file imports: a module, or a name out of one."""
    found = []
    for path in ROOT.rglob("*.py"):
        tree = ast.parse(path.read_text())
        top = {id(node) for node in tree.body}
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                home = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                found += [(path.relative_to(ROOT).as_posix(), home + a.name, node.lineno, id(node) in top)
                          for a in node.names]
    return found


def package_imports():
    """(file in a folder of the package, imported folder, line, at top level)"""
    return [(file, name.split(".")[1], line, top) for file, name, line, top in imports()
            if "/" in file and name.startswith("tilewright.") and name != "tilewright.__version__"]


def users(*modules):
    """The files that import one of some modules, or what is in it."""
    return sorted({file for file, name, _, _ in imports() if f"{name}.".startswith(tuple(f"{m}." for m in modules))})


def test_every_folder_has_a_floor():
    assert {p.parent.relative_to(ROOT).parts[0] for p in ROOT.rglob("*/*.py")} <= set(FLOOR)


def test_imports_go_down():
    assert not [f"{file}:{line} imports {there}" for file, there, line, _ in package_imports()
                if there != file.split("/")[0] and FLOOR[there] >= FLOOR[file.split("/")[0]]]


def test_imports_stand_at_the_top():
    assert not [f"{file}:{line}" for file, _, line, top in package_imports() if not top]


def test_ffi_stays_behind_one_module():
    assert users("tvm_ffi") == ["runtime/ffi.py"]


def test_llvm_stays_in_its_back_end_and_behind_one_module():
    """That one has it imported with its first use."""
    assert not [p for p in users("llvmlite") if not p.startswith("codegen/llvm/")]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in ROOT.rglob("*.py")}
    assert [p for p, text in texts.items() if 'load("llvmlite' in text] == ["runtime/llvm.py"]


def test_back_ends_are_imported_by_the_registry_alone():
    """It names them as texts, so that a program loads those that it uses."""
    for folder in ROOT.joinpath("codegen").iterdir():
        if folder.joinpath("__init__.py").is_file():
            here = f"codegen/{folder.name}/"
            assert all(p.startswith(here) for p in users(f"tilewright.codegen.{folder.name}"))
