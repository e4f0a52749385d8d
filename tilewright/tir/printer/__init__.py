"""The printer: IR as TVMScript. `text` prints functions and modules, from `statements` and `expressions`; `views` are
what objects show of themselves: lines without some parts, colours, HTML.
"""
from tilewright.tir.printer.text import show

__all__ = ["show"]
