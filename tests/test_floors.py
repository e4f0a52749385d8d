"""The floors of the package: a folder imports only from earlier rows, at the top of the file."""
import ast
from pathlib import Path

import tilewright

ROOT = Path(tilewright.__file__).parent
FLOORS = [
    "support", "runtime", "tir", "formulas", "arith", "script", "te", "schedule", "lowering topi", "codegen", "rules",
    "records", "driver", "graph", "rpc", "tune frontend", "compat", "cli viz",
]
FLOOR = {name: row for row, names in enumerate(FLOORS) for name in names.split()}


def package_imports(path):
    """(imported package, line, at top level) of every import of tilewright in a file."""
    tree = ast.parse(path.read_text())
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{a.name}" if node.module == "tilewright" else node.module
                     for a in node.names]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        else:
            continue
        for name in names:
            if name and name.startswith("tilewright.") and name != "tilewright.__version__":
                yield name.split(".")[1], node.lineno, id(node) in top


def sources():
    return [p for p in ROOT.rglob("*.py") if p.parent != ROOT]


def test_every_folder_has_a_floor():
    assert {p.relative_to(ROOT).parts[0] for p in sources()} <= set(FLOOR)


def test_imports_go_down():
    wrong = []
    for path in sources():
        here = path.relative_to(ROOT).parts[0]
        for there, line, _ in package_imports(path):
            if there != here and FLOOR[there] >= FLOOR[here]:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {here} imports {there}")
    assert not wrong, "\n".join(wrong)


def test_imports_stand_at_the_top():
    wrong = [f"{path.relative_to(ROOT)}:{line}" for path in sources()
             for _, line, top in package_imports(path) if not top]
    assert not wrong, "\n".join(wrong)


def test_ffi_stays_behind_one_module():
    users = [p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*.py")
             if any(isinstance(n, (ast.Import, ast.ImportFrom)) and "tvm_ffi" in ast.unparse(n)
                    for n in ast.walk(ast.parse(p.read_text())))]
    assert users == ["runtime/ffi.py"]


def imported(path):
    """The dotted names that a file imports: of a module, and of each name that is taken from one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{a.name}" for a in node.names)


def users(*modules):
    """The files that import one of some modules, or what is in it."""
    found = [p for p in ROOT.rglob("*.py") if any(f"{name}.".startswith(tuple(f"{m}." for m in modules))
                                                  for name in imported(p))]
    return sorted(p.relative_to(ROOT).as_posix() for p in found)


def test_llvm_stays_in_its_back_end_and_behind_one_module():
    assert [p for p in users("llvmlite") if not p.startswith("codegen/llvm/")] == ["runtime/llvm.py"]


def test_back_ends_are_imported_by_the_registry_alone():
    """It names them as texts, so that a program loads those that it uses."""
    for folder in ROOT.joinpath("codegen").iterdir():
        if folder.joinpath("__init__.py").is_file():
            here = f"codegen/{folder.name}/"
            assert all(p.startswith(here) for p in users(f"tilewright.codegen.{folder.name}"))
