"""`tvm.relax`: trees of expressions with bindings, as TVM has them, made into functions of the graph by `build`."""
