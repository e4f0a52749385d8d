"""What the tests know of the primitives, a file for one or for a small family: an example and what it prints, what is
refused, and how random schedules use it. Every module of this folder is imported."""
import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
