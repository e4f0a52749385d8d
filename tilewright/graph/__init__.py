"""Models: graphs of operators, their gradients, and the executor that runs and trains them."""
from tilewright.graph.executor import Executor
from tilewright.graph.functions import (
    add,
    broadcast_like,
    broadcast_to,
    cast,
    conv2d,
    dense,
    divide,
    exp,
    log,
    log_softmax,
    matmul,
    multiply,
    negative,
    power,
    reduce_sum,
    relu,
    sigmoid,
    softmax,
    softmax_cross_entropy,
    sqrt,
    subtract,
    tanh,
)
from tilewright.graph.gradients import gradients
from tilewright.graph.memory import MemoryPlan
from tilewright.graph.operator import Operator
from tilewright.graph.optimizers import SGD, Adam, Momentum, Update
from tilewright.graph.value import TensorType, Value, parameter, placeholder

__all__ = [
    "SGD", "Adam", "Executor", "MemoryPlan", "Momentum", "Operator", "TensorType", "Update", "Value", "add",
    "broadcast_like", "broadcast_to", "cast", "conv2d", "dense", "divide", "exp", "gradients", "log", "log_softmax",
    "matmul", "multiply", "negative", "parameter", "placeholder", "power", "reduce_sum", "relu", "sigmoid", "softmax",
    "softmax_cross_entropy", "sqrt", "subtract", "tanh",
]
