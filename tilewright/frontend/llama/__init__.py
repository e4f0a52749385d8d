"""Language models of Llama's shape: from files of weights to a decoder that keeps keys and values in place.

config.py says what a model is and reads that, layers.py makes its function of the graph, tensors.py finds its weights
in a file, decoder.py compiles and runs it.
"""
from tilewright.frontend.llama.config import Config
from tilewright.frontend.llama.decoder import Decoder, load_llama

__all__ = ["Config", "Decoder", "load_llama"]
