"""What of TVM is left out on purpose, and why; how much of what old programs asked for works: for docs/tvm.md."""
from __future__ import annotations

from typing import NamedTuple


class LeftOut(NamedTuple):
    """A row of the page. `messages` is found in the messages that programs stop at where it is missing."""
    what: str
    why: str
    messages: str = ""


LEFT_OUT: list[LeftOut] = [
    # names
    LeftOut("`tvm.relay`, `tvm.relax`, `tvm.nnvm`, `tvm.graph_executor`, `tvm.micro`",
            "models are built with `tilewright.graph`", "graph_executor"),
    LeftOut("`tvm.meta_schedule`, `tvm.auto_scheduler`, `tvm.autotvm`",
            "schedules are written, or made by the rules of `tilewright.compile`; there is no search",
            "auto_scheduler|override_native_generic_func|tile_with_tensor_intrin|get_tensorize_loop_mapping"),
    LeftOut("`tvm.rpc`", "kernels run on the machine that built them, or are exported"),
    LeftOut("`tvm.topi`, `tvm.contrib.sparse`", "operators are written in te; of topi there are only its helpers "
            "for shapes",
            "topi|contrib.sparse"),
    LeftOut("names that begin with an underscore, `_ffi_api` of every module, fields of nodes that only TVM's C++ "
            "reads "
            "(`tvm.ir.make_node` of `DictAttrs` and `Tensor`, `tvm.Function`)",
            "they belong to the inside of TVM, between its Python and its C++",
            r"_ffi_api|make_node\(|tvm\.Function|'tuple' object has no attribute 'op'|'dict' object has no attribute|"
            r"'Tensor' object has no attribute 'handle'|'Var' object has no attribute 'data'|execption|cannot lower "
            r"a Broken"),
    LeftOut("`tvm.script.parser.core`, `tvm.script.ir_builder`, `tvm.ir.diagnostics` beyond `override_renderer`",
            "inside of the parser of scripts: `tvm.script.from_source` and the decorators are the way in",
            r"script\.parser\.core"),
    LeftOut("`tvm.tir.ProducerLoad`, `ProducerStore`, `ProducerRealize`, `Provide`, `Realize`, `Prefetch`, `Allocate`, "
            "`AllocateConst`, `AttrStmt`, and the attributes of TVM's passes in scripts (`double_buffer_scope`, "
            "`reduce_scope`, `async_scope`, `device_id`, `T.iter_var`)",
            "statements between te and loops that there are not here: te becomes blocks, attributes are annotations",
            r"tvm\.tir\.(Producer|Prefetch|Allocate)|the attribute '|iter_var"),
    LeftOut("`tvm.arith.solve_linear_inequalities`, `PresburgerSet`, `Extension`, `estimate_region_lower_bound`",
            "solvers that no pass of ours needs; `deduce_bound` solves one inequality", "solve_linear_inequalities"),
    LeftOut("passes for tensor cores, textures, VTCM and asynchronous copies (`LowerAutoCopy`, `InjectPermutedLayout`, "
            "`InjectPTXLDG32`, `TransformMmaBufferLayout`, `UnifiedStaticMemoryPlanner`, "
            "`ManifestSharedMemoryLocalStage`), the thread axis `cop`",
            "there is no back end for a GPU or a DSP; the instructions of GPUs in scripts parse, print and are "
            "scheduled",
            "LowerAutoCopy|ManifestShared|'cop'|bound to blockIdx.x, but the tar"),
    LeftOut("`InjectRollingBuffer`, `ExtractPrimFuncConstants`",
            "`rolling_buffer` rewrites at once; constants stay in their functions", "InjectRolling|ExtractPrim"),
    LeftOut("code for kinds of targets other than `llvm`",
            "strings of the other kinds are read and described, not compiled", "no code generation for"),
    LeftOut("flags of targets that change nothing here (`-cl-opt`, `-mfloat-abi`)", "a flag that is taken has an "
            "effect",
            "is not a flag"),
    # scripts and te
    LeftOut("`T.vscale`, `T.get_active_lane_mask`, slices of symbolic length", "vectors have a constant number of "
            "lanes",
            "vscale|get_active_lane_mask|sve_target|a vector has a constant number"),
    LeftOut("`T.undef`, `T.q_multiply_shift`, `T.tvm_struct_get`, `tvm.tir.Shuffle`",
            "memory starts unwritten; the others are steps of TVM's own lowering",
            "T.undef|'undef'|q_multiply_shift|tvm_struct_get|Shuffle"),
    LeftOut("buffers with `buffer_type=\"auto_broadcast\"`", "write strides=[...], with 0 where the extent may be 1",
            "buffer_type"),
    LeftOut("blocks whose regions leave out what they touch, axes and indices beyond their domain, conditions that are "
            "no bool, stores of another dtype or number of lanes, symbols in scripts that nothing defines",
            "scripts are verified: what TVM finds while it lowers, or never, is an error where it is written",
            "regions leave out|outside its domain|the condition is int|is stored to B|lanes are stored to|"
            "not inside of the memory|in strides is not an integer|outside of the shape|outside of th|is no LLVM "
            "intrinsic|is a statement of its own|storage_scope'"),
    LeftOut("a function of `te.compute` with fewer parameters than dimensions, results that are vectors, "
            "`create_schedule([])`, tags inside of tags, assertions and lengths inside of hybrid functions",
            "it is an error in te: say what is computed",
            "the function takes N argument|the function take|not a scalar|no operation was given|tags are not nested|^"
            "TensorExpressionError: hybrid"),
    LeftOut("factors of splits that are no constants; `set_scope`, `compute_at` and `set_store_predicate` of outputs; "
            "fusing loops that are not neighbours; vectorizing a reduction",
            "schedules are checked: what cannot be right for every size is refused",
            r"not a constant integer|set_scope\('shared'\)|set_store_predicate|are not next to each other|"
            r"cannot vectorize the reduction|is computed at j|compute_at\(s\[C\], iN\)|\.tensorize\(i, tensor_intrin\)|"
            r"threadIdx.x is already bound"),
    # block schedules
    LeftOut("loops of one thread axis with different extents in one kernel, a loop that is made another kind of loop "
            "twice, a reduction moved below the threads that share it",
            "threads of a block run together: each loop of their axis has one extent, and says once how it runs",
            "bound to threadI|thread_binding loop axN_N"),
    LeftOut("`cache_read` of what is not complete before its first consumer; `rolling_buffer` of a block that reads "
            "what it writes, or of parts that do not follow each other",
            "the copy would hold other values", r"is not complete b|rolling_buffer\("),
]

#: (programs, how much of what they asked for works, how much they asked for), counted by `tests.compat.names_share`
SHARES: list[tuple[str, int, int]] = [
    ("te, TVM 0.18", 159, 166), ("tir-schedule, TVM 0.18", 179, 221), ("tir-transform, TVM 0.18", 387, 469),
    ("arith, TVM 0.18", 108, 115), ("TVM 0.11", 488, 560), ("TVM 0.5", 37, 61),
]

#: what TVM refuses, and is right here
WIDER: list[str] = [
    "`parallel` of a loop beside a reduction over elements that no affine map chooses",
    "`reorder` below a predicate, of axes with steps, of a scan whose steps do not meet, of axes of which one is "
    "not affine",
    "`split` and `fuse` of loops that do not start at 0",
    "`rfactor` of a reduction that starts at another value than the identity, from a variable, below a predicate, "
    "of two "
    "results in buffers of different shapes, or with one of them in no variable",
    "`compute_at` of a producer at the first of its consumers, and of one whose buffer is written again later",
    "`cache_read` of a buffer that several blocks write", "`pad_einsum` of a block that is no sum of products",
]
