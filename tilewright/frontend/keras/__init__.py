"""Models of Keras as functions of the graph."""
from tilewright.frontend.keras.model import from_keras

__all__ = ["from_keras"]
