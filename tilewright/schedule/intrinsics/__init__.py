"""Tensor intrinsics that come with the package: dot products of x86-64 and Arm, interleaving of rows.

Every module of this folder is imported, by which its intrinsics are registered. `DOTS` says which dot products a target
can run.
"""
from tilewright.schedule.intrinsics.dot import DOTS, DotIntrin, dot_intrinsics
from tilewright.schedule.intrinsics.interleave import STEPS, interleave_groups_name, interleave_name
from tilewright.support.registry import load_folder

__all__ = ["DOTS", "STEPS", "DotIntrin", "dot_intrinsics", "interleave_groups_name", "interleave_name"]

load_folder(__name__)
