"""Scheduled functions of blocks -> flat functions.

`passes.py` has the list of passes, each in a file of its own, and `options.py` what decides which of them run;
`pipeline.py` runs them, seen by `instruments.py`. The other files are what passes share.
"""
from tilewright.lowering.instruments import PassRecord
from tilewright.lowering.options import Instrument, Pass, PassOptions
from tilewright.lowering.passes import (
    PASSES,
    SIMPLE_PASSES,
    after,
    before,
    list_of,
    pass_options,
    register_pass,
    remove_pass,
)
from tilewright.lowering.pipeline import lower

__all__ = ["PASSES", "SIMPLE_PASSES", "Instrument", "Pass", "PassOptions", "PassRecord", "after", "before", "list_of",
           "lower", "pass_options", "register_pass", "remove_pass"]
