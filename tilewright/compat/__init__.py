"""Other systems' names on top of Tilewright: `from tilewright.compat import tvm`."""
from tilewright.compat.namespace import tvm

__all__ = ["tvm"]
