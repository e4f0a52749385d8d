"""Built-in schedules, one file per kind of kernel, as functions over the public primitives."""
from tilewright.rules.apply import apply_rules

__all__ = ["apply_rules"]
