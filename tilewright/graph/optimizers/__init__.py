"""Optimizers, a family a file: rules that turn gradients into updates of parameters and of their own state, in place.

Every module of this folder is imported, so that an optimizer is there when its file is here.
"""
from tilewright.graph.optimizers.optimizer import Optimizer, Update
from tilewright.support.registry import load_folder

__all__ = ["Optimizer", "Update"]

load_folder(__name__)
