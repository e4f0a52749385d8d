"""Wrong graphs, feeds and optimizers: every module of this folder adds rows to SECTION."""
from __future__ import annotations

from tilewright import graph
from tilewright.graph import Executor
from tilewright.support.registry import load_folder

from ..programs import zeros
from ..wrong_use import Section

SECTION = Section("Graphs, executor, optimizers")
wrong = SECTION.wrong


def run(build, *feeds):
    """Run the graph that build(x, y, ...) makes of as many placeholders as there are feeds."""
    leaves = [graph.placeholder(name) for name in "xyz"[:len(feeds)]]
    Executor([build(*leaves)]).run(dict(zip(leaves, feeds)))


def layer():
    """x, w and loss of a small layer"""
    x, w = graph.placeholder("x"), graph.parameter("w", zeros(4, 3))
    return x, w, graph.reduce_sum(graph.relu(x @ w))


load_folder(__name__)
