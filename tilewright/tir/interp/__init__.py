"""The interpreter: what a function of the loop IR means.

`execute` binds arrays and runs; a function is compiled to one Python function first: statements by `compile`, memory
and its checks by `memory` (planned by `plan`, held to the regions of blocks by `regions`), expressions by
`expressions` on lanes of `scalars`, calls that act by `effects`, threads that meet at barriers by `threads`. `support`
is what the compiled function calls, `failures` what it says when something is wrong.
"""
from tilewright.tir.interp.execute import evaluate, run, source

__all__ = ["evaluate", "run", "source"]
