"""Entries of a trace made by hand, in the form in which TVM names and orders what a primitive is given."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.schedule.handles import RV, plain
from tilewright.schedule.trace import KINDS, Entry
from tilewright.support.errors import ArgumentError, described

# TVM's instruction -> the primitive, the parameters among its inputs (the last with * takes the rest), its attributes
_FORMS: dict[str, tuple[str, str, str]] = {
    "GetBlock": ("get_block", "", "name func_name"), "GetLoops": ("get_loops", "block", ""),
    "GetChildBlocks": ("get_child_blocks", "block_or_loop", ""), "GetProducers": ("get_producers", "block", ""),
    "GetConsumers": ("get_consumers", "block", ""), "GetOutputBlocks": ("get_output_blocks", "scope_block", ""),
    "SampleCategorical": ("sample_categorical", "", "candidates probs"),
    "SamplePerfectTile": ("sample_perfect_tile", "loop", "n max_innermost_factor"),
    "SampleComputeLocation": ("sample_compute_location", "block", ""),
    "Fuse": ("fuse", "*loops", "preserve_unit_iters"),
    "Split": ("split", "loop *factors", "preserve_unit_iters disable_predication"),
    "LoopPartition": ("loop_partition", "loop *factors", "preserve_unit_iters"),
    "Merge": ("merge", "*loops", ""), "Reorder": ("reorder", "*ordered_loops", ""),
    "ReorderBlockIterVar": ("reorder_block_iter_var", "block new_order", ""),
    "AddUnitLoop": ("add_unit_loop", "block_or_loop", ""),
    "Parallel": ("parallel", "loop", ""), "Vectorize": ("vectorize", "loop", ""), "Unroll": ("unroll", "loop", ""),
    "Bind": ("bind", "loop", "thread_axis"),
    "CacheRead": ("cache_read", "block *consumer_blocks", "read_buffer_index storage_scope"),
    "CacheWrite": ("cache_write", "block", "write_buffer_index storage_scope"),
    "CacheInplace": ("cache_inplace", "block", "read_buffer_index storage_scope"),
    "CacheIndex": ("cache_index", "block", "storage_scope cse_thresh"),
    "ReadAt": ("read_at", "loop block", "read_buffer_index storage_scope"),
    "WriteAt": ("write_at", "loop block", "write_buffer_index storage_scope"),
    "ComputeAt": ("compute_at", "block loop", "preserve_unit_loops index"),
    "ReverseComputeAt": ("reverse_compute_at", "block loop", "preserve_unit_loops index"),
    "ComputeInline": ("compute_inline", "block", ""), "ReverseComputeInline": ("reverse_compute_inline", "block", ""),
    "DecomposeReduction": ("decompose_reduction", "block loop", ""), "RFactor": ("rfactor", "loop", "factor_axis"),
    "Blockize": ("blockize", "target", "preserve_unit_iters"),
    "Tensorize": ("tensorize", "block_or_loop", "tensor_intrin preserve_unit_iters"),
    "Annotate": ("annotate", "block_or_loop ann_val", "ann_key"),
    "Unannotate": ("unannotate", "block_or_loop", "ann_key"),
    "SetScope": ("set_scope", "block", "buffer_index storage_scope"),
    "UnsafeSetDType": ("unsafe_set_dtype", "block", "buffer_index dtype"),
    "StorageAlign": ("storage_align", "block", "buffer_index axis factor offset"),
    "PadEinsum": ("pad_einsum", "block", "padding"), "RollingBuffer": ("rolling_buffer", "block", "write_buffer_index"),
    "DecomposePadding": ("decompose_padding", "block loop", ""), "EnterPostproc": ("enter_postproc", "", ""),
}


@dataclass(frozen=True)
class InstructionKind:
    """A kind of instruction, by TVM's name for it."""
    name: str

    @staticmethod
    def get(name: str) -> InstructionKind:
        """The kind of that name. Raises ArgumentError where there is none."""
        if name not in _FORMS or _FORMS[name][0] not in KINDS:
            raise ArgumentError(f"{described(name)} is no kind of instruction", ", ".join(_FORMS))
        return InstructionKind(name)

    @property
    def is_pure(self) -> bool:
        """True where it changes nothing."""
        return KINDS[_FORMS[self.name][0]].is_pure


def Instruction(kind: InstructionKind, inputs: Sequence[Any], attrs: Sequence[Any], outputs: Sequence[RV]) -> Entry:
    """The entry of a trace that TVM's constructor of this name describes.

    Raises ArgumentError where there are more inputs or attributes than the instruction has.
    """
    primitive, takes, has = _FORMS[kind.name]
    arguments = {**_named(kind.name, takes.split(), inputs), **_named(kind.name, has.split(), attrs)}
    if kind.name == "CacheRead" and not arguments.get("consumer_blocks", True):
        del arguments["consumer_blocks"]
    if kind.name == "Split":
        arguments.pop("disable_predication", None)
    outputs = tuple(outputs)
    single = len(outputs) == 1 and not KINDS[primitive].gives_list
    return Entry(primitive, {k: plain(v) for k, v in arguments.items()}, outputs, single)


def _named(kind: str, names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """The values by the names of parameters."""
    if names and names[-1].startswith("*"):
        plain_names, rest = names[:-1], names[-1][1:]
        return {**dict(zip(plain_names, values, strict=False)), rest: list(values[len(plain_names):])}
    if len(values) > len(names):
        raise ArgumentError(f"{kind} takes {len(names)} ({', '.join(names) or 'none'}), {len(values)} given")
    return dict(zip(names, values, strict=False))
