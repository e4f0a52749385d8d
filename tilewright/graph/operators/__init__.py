"""Operators, a family a file: classes, and the functions by which models use them.

Every module of this folder is imported, so that an operator is there when its file is here.
"""
from tilewright.support.registry import load_folder

load_folder(__name__)
