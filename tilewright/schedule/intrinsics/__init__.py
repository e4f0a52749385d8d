"""Tensor intrinsics that come with the package: dot products of x86-64 and Arm, interleaving of rows.

Importing it registers them; `DOTS` says which of them a target can run.
"""
from tilewright.schedule.intrinsics.dot import DOTS, DotIntrin, dot_intrinsics
from tilewright.schedule.intrinsics.interleave import STEPS, interleave_groups_name, interleave_name

__all__ = ["DOTS", "STEPS", "DotIntrin", "dot_intrinsics", "interleave_groups_name", "interleave_name"]
