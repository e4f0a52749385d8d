"""Files of weights, read in place: safetensors and GGUF."""
from tilewright.frontend.weights.blocks import Blocks, quantized
from tilewright.frontend.weights.gguf import read_gguf
from tilewright.frontend.weights.safetensors import read_safetensors

__all__ = ["Blocks", "quantized", "read_gguf", "read_safetensors"]
