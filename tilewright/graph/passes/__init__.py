"""Passes over functions of the graph, a file each, and the order in which a model goes through them."""
