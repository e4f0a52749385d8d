"""Elementary functions as formulas: steps of IR that every back end writes down and the interpreter can run.

builder.py is what they are written with, library.py the list of them and of their errors.
"""
from tilewright.formulas.builder import Assign, Cpu, Formula, Rare
from tilewright.formulas.library import FUNCTIONS, formula, formula_of

__all__ = ["FUNCTIONS", "Assign", "Cpu", "Formula", "Rare", "formula", "formula_of"]
