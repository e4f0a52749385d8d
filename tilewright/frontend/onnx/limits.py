"""What a file may ask for at most, so that a hostile one ends in an error and not in a machine without memory."""
from __future__ import annotations

MOST_FILE_BYTES = 2**31                # protobuf reads no message beyond this
MOST_READ = 4                          # times the bytes of a file beside the model that tensors share
MOST_NODES = 200_000                   # of a model, with functions inlined and loops unrolled
MOST_FIELDS = 2**19                    # of the messages of a file whose tensors stay in it until they are used
MOST_OPEN = 64                         # files beside a model that stay open until their tensors are used
MOST_ENDS = 4096                       # inputs and results of a model, of a graph within it, of a node
MOST_DEPTH = 64                        # graphs within nodes of graphs, functions that call functions
FEW_TURNS = 16                         # turns of a loop that are written out rather than run one by one
MOST_TURNS = 4096                      # turns of a loop that are written out at all
MOST_KNOWN = 4096                      # elements of a tensor that the importer computes with
MOST_TERMS = 512                       # variables, numbers and operations of an expression of sizes
MOST_FOLDED = 2**20                    # elements of a constant whose result has a size that its elements decide
MOST_RANK = 64                         # dimensions of a tensor
MOST_BYTES = 2**40                     # of a tensor of constant extents
MOST_ZEROS = 2**30                     # bytes of the tensors that a model has in a sparse form, zeros included
MOST_REPORTED = 50                     # problems that an error lists
