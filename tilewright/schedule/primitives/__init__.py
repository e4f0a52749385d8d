"""The primitives, a family or a large one a file. Every module of this folder is imported, in the order of their names,
so that a primitive is a method of Schedule when its file is here."""
import importlib
import pkgutil

for _module in sorted(pkgutil.iter_modules(__path__, f"{__name__}."), key=lambda module: module.name):
    importlib.import_module(_module.name)
