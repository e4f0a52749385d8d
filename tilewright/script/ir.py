"""`from tilewright.script import ir as I`: modules."""
from tilewright.script.decorators import ir_module

__all__ = ["ir_module"]
