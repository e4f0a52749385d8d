"""Operators of networks as tensor expressions: what each element is. None of them has a schedule."""
from tilewright.topi import (
    activations,
    attention,
    convolution,
    creation,
    cumulative,
    decoding,
    distances,
    elementwise,
    indexing,
    integers,
    likelihoods,
    losses,
    matrices,
    normalization,
    patches,
    pooling,
    products,
    quantization,
    random,
    recurrent,
    reductions,
    regions,
    resizing,
    selections,
    shaping,
    signals,
    slicing,
    sorting,
    sparse,
    special,
    statistics,
)
from tilewright.topi.activations import *  # noqa: F403
from tilewright.topi.attention import *  # noqa: F403
from tilewright.topi.attributes import checked
from tilewright.topi.convolution import *  # noqa: F403
from tilewright.topi.creation import *  # noqa: F403
from tilewright.topi.cumulative import *  # noqa: F403
from tilewright.topi.decoding import *  # noqa: F403
from tilewright.topi.distances import *  # noqa: F403
from tilewright.topi.elementwise import *  # noqa: F403
from tilewright.topi.indexing import *  # noqa: F403
from tilewright.topi.integers import *  # noqa: F403
from tilewright.topi.likelihoods import *  # noqa: F403
from tilewright.topi.losses import *  # noqa: F403
from tilewright.topi.matrices import *  # noqa: F403
from tilewright.topi.normalization import *  # noqa: F403
from tilewright.topi.patches import *  # noqa: F403
from tilewright.topi.pooling import *  # noqa: F403
from tilewright.topi.products import *  # noqa: F403
from tilewright.topi.quantization import *  # noqa: F403
from tilewright.topi.random import *  # noqa: F403
from tilewright.topi.recurrent import *  # noqa: F403
from tilewright.topi.reductions import *  # noqa: F403
from tilewright.topi.regions import *  # noqa: F403
from tilewright.topi.resizing import *  # noqa: F403
from tilewright.topi.selections import *  # noqa: F403
from tilewright.topi.shaping import *  # noqa: F403
from tilewright.topi.signals import *  # noqa: F403
from tilewright.topi.slicing import *  # noqa: F403
from tilewright.topi.sorting import *  # noqa: F403
from tilewright.topi.sparse import *  # noqa: F403
from tilewright.topi.special import *  # noqa: F403
from tilewright.topi.statistics import *  # noqa: F403

FAMILIES = {
    "Elements": elementwise, "Special functions": special, "Activations": activations, "Products": products,
    "Sparse matrices": sparse, "Matrices": matrices, "Convolutions": convolution, "Pooling": pooling,
    "Patches": patches, "Softmax and norms": normalization, "Reductions": reductions, "Distances": distances,
    "Shapes": shaping, "Slices": slicing, "Creation": creation, "Places": indexing, "Selections": selections,
    "Running sums": cumulative, "Orders": sorting, "Statistics": statistics, "Losses": losses,
    "Likelihoods and margins": likelihoods, "Images": resizing, "Signals": signals, "Regions": regions,
    "Quantization": quantization, "Integer products": integers, "Random numbers": random, "Attention": attention,
    "Decoding": decoding, "Recurrent layers": recurrent,
}
__all__ = [name for module in FAMILIES.values() for name in module.__all__]
globals().update({name: checked(globals()[name]) for name in __all__})
