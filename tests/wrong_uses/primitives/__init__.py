"""Wrong uses of schedule primitives, one module per family, each with a SECTION."""
import importlib
import pkgutil

SECTIONS = tuple(importlib.import_module(f"{__name__}.{module.name}").SECTION
                 for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name))
