"""From what the user wrote to what runs: `lower`, `build`, `compile`. Tools that look on have files of their own."""
from tilewright.driver.build import build, compile, compile_kernel, compile_text
from tilewright.driver.lower import lower
from tilewright.support.target import Target, target

__all__ = ["Target", "build", "compile", "compile_kernel", "compile_text", "lower", "target"]
