"""Programs of PyTorch as functions of the graph: torch.export, and torch.compile(model, backend="tilewright").

PyTorch is loaded by the first call, not by the import.
"""
from tilewright.frontend.torch.dynamo import backend, register
from tilewright.frontend.torch.exported import CompiledProgram, compile_exported_program, from_exported_program
from tilewright.frontend.torch.whole import whole_recurrent_layers

__all__ = ["CompiledProgram", "backend", "compile_exported_program", "from_exported_program", "register",
           "whole_recurrent_layers"]
