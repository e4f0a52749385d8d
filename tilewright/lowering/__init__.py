"""Scheduled functions of blocks -> flat functions.

`passes.py` has the list of passes, each in a file of its own, and `options.py` what decides which of them run;
`pipeline.py` runs them, seen by `instruments.py`. The other files are what passes share.
"""
from tilewright.lowering.instruments import PassRecord
from tilewright.lowering.options import Instrument, Pass, PassOptions
from tilewright.lowering.passes import PASSES, SIMPLE_PASSES, list_of, own_pass, pass_options, register_pass
from tilewright.lowering.pipeline import lower, split

__all__ = ["PASSES", "SIMPLE_PASSES", "Instrument", "Pass", "PassOptions", "PassRecord", "list_of", "lower", "own_pass",
           "pass_options", "register_pass", "split"]
