"""From what the user wrote to what runs: `lower`, `build`, `compile`; `explain` says what `compile` does."""
from tilewright.driver.build import build, compile, compile_kernel, compile_text
from tilewright.driver.explanation import Explanation, explain
from tilewright.driver.lower import lower
from tilewright.support.target import Target, target

__all__ = ["Explanation", "Target", "build", "compile", "compile_kernel", "compile_text", "explain", "lower", "target"]
