"""From what the user wrote to what runs: `lower`, `build`, `compile`. Tools that look on have files of their own."""
from tilewright.driver.build import build, compile, compile_flat
from tilewright.driver.kernels import KernelCode, files_of_graph
from tilewright.driver.lower import lower
from tilewright.driver.progress import progress_bar
from tilewright.driver.workers import compile_graph_kernels
from tilewright.support.target import Target, target

__all__ = ["KernelCode", "Target", "build", "compile", "compile_flat", "compile_graph_kernels",
           "files_of_graph", "lower", "progress_bar", "target"]
