"""Built-in schedules, one file per kind of kernel, as functions over the public primitives."""
from tilewright.rules.apply import Decision, Rules, apply_rules

__all__ = ["Decision", "Rules", "apply_rules"]
