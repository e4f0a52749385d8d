"""Scheduled functions of blocks -> flat functions, one pass per file."""
from tilewright.lowering.pipeline import PASSES, SIMPLE_PASSES, Pass, lower

__all__ = ["PASSES", "SIMPLE_PASSES", "Pass", "lower"]
