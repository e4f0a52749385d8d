"""Random use of primitives, one module per family; `load` registers all of them."""
import importlib
import pkgutil


def load() -> None:
    """Import every module of this package; each registers its primitives with `schedules.move`."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
