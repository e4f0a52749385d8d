"""Other systems' names on top of Tilewright: `from tilewright.compat import tvm`, `import tilewright.compat.tvm`."""
import sys

from tilewright.compat.namespace import MODULES, tvm

sys.modules.update({f"{__name__}.{name}": module for name, module in MODULES.items()})

__all__ = ["tvm"]
