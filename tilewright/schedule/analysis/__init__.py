"""What primitives know of a program: accesses, dataflow, regions, order, and when a rewrite is legal."""
