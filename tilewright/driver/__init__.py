"""From what the user wrote to what runs: `lower`, `build`, `compile`. Tools that look on have files of their own."""
from tilewright.driver.build import build, compile, compile_flat, compile_kernel
from tilewright.driver.lower import lower
from tilewright.support.target import Target, target

__all__ = ["Target", "build", "compile", "compile_flat", "compile_kernel", "lower", "target"]
