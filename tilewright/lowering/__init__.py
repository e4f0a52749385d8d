"""Scheduled functions of blocks -> flat functions, a file for each pass, and what passes share."""
from tilewright.lowering.pipeline import PASSES, SIMPLE_PASSES, Pass, lower

__all__ = ["PASSES", "SIMPLE_PASSES", "Pass", "lower"]
