"""What of TVM there is not: what to use instead, what stays out and why, and how much of old programs works.

docs/tvm.md shows all of it.
"""
from __future__ import annotations

from typing import NamedTuple

# full name without the leading "tvm." -> what to say about it
INSTEAD = {
    "relay": "Relay left TVM in 0.20; build the model with tilewright.graph",
    "relax.transform.DecomposeOpsForInference": "training=False of relax.op.nn.batch_norm",
    "relax.transform.DecomposeOpsForTraining": "training=True of relax.op.nn.batch_norm",
    "relax": "docs/tvm.md lists the names of relax that there are",
    "autotvm": "write the schedule with te.create_schedule or tilewright.Schedule",
    "auto_scheduler": "write the schedule with te.create_schedule or tilewright.Schedule",
    "meta_schedule": "write the schedule with te.create_schedule or tilewright.Schedule",
    "rpc": "run the module on this machine; remote devices are not supported",
    "contrib": "write the operator in te; Module.save and Module.export_library write files",
    "contrib.ndk": "Module.export_library(path, cc=...) takes a linker for another machine",
    "tir.transform": "docs/tvm.md lists the passes; tvm.lower runs all of them, TILEWRIGHT_DUMP shows each",
    "tir.schedule._type_checker": "it belongs to the inside of TVM",
    "transform": "tvm.lower runs every pass; look at them with TILEWRIGHT_DUMP",
    "ir.transform": "tvm.lower runs every pass; look at them with TILEWRIGHT_DUMP",
    "te.hybrid.parse": "call the function of te.hybrid.script with tensors",
    "tir.AttrStmt": "annotations of For and Block",
    "tir.analysis": "tilewright.tir.verify and str(func)",
    "tir.analysis.verify_memory": "tilewright.tir.verify",
    "micro": "save an object for the device with Module.save",
    "graph_executor": "tvm.contrib.graph_executor",
    "te.autodiff": "differentiate the model with tilewright.graph.gradients",
    "te.gradient": "differentiate the model with tilewright.graph.gradients",
    "hardware_intrin": "it is in no release of TVM",
    "topi": "docs/topi.md lists the operators of tilewright.topi; what is not there is written in te",
    "ir_pass": "print(tvm.lower(s, args, simple_mode=True)) shows the loops; passes of your own are "
               "tvm.tir.transform.prim_func_pass",
    "make": "the names of tvm.tir and the operators of te build nodes",
    "make.node": "tvm.ir.make_node",
    "stmt": "the statements in tvm.tir",
    "stmt.AttrStmt": "annotations of For and Block",
    "stmt.ProducerConsumer": "a Seq of both parts",
    "stmt.Provide": "tvm.tir.BufferStore",
    "stmt.Realize": "tvm.tir.Allocate",
    "expr": "the expressions in tvm.tir",
    "expr.UIntImm": "tvm.const(value, \"uint32\")",
    "expr.Any": "te.var() is an extent that is not known",
    "Expr": "tvm.tir.PrimExpr",
    "Stmt": "tvm.tir.Stmt",
    "generic": "te has the functions of expressions: te.exp(x), x.astype(dtype)",
    "container": "Python lists, tuples and dicts",
    "node": "tvm.tir.PrimExpr and tvm.tir.Stmt",
    "codegen": "tvm.build",
    "build_module": "tvm.build and tvm.lower",
    "contrib.mkl": "tvm.contrib.cblas calls the library that TILEWRIGHT_BLAS names",
    "contrib.random": "make random arrays with NumPy",
    "te.schedule.SpecializedCondition": "a schedule for each case; tvm.build of one after the other",
    "tir.Schedule.annotate_buffer_access": "regions are what a block touches; no other word is taken for it",
    "tir.Schedule.unsafe_hide_buffer_access": "regions are what a block touches: a primitive does not leave one out",
    "te.schedule.SchedulePostProcRewriteForTensorCore": "tensorize with an intrinsic of te.decl_tensor_intrin",
    "te.schedule.VerifyCompactBuffer": "tilewright.tir.verify",
    "driver": "tvm.build and tvm.lower",
}


class LeftOut(NamedTuple):
    """A row of the page. `messages` is found in the messages that programs stop at where it is missing."""
    what: str
    why: str
    messages: str = ""


LEFT_OUT: list[LeftOut] = [
    # names
    LeftOut("`tvm.relay`, `tvm.micro`, the symbols of NNVM, `tvm.relax.frontend.nn`, training and mixed precision in "
            "`tvm.relax.transform`",
            "models are built with `tvm.relax.BlockBuilder`, read by front ends, or trained with `tilewright.graph`",
            "graph_executor"),
    LeftOut("`tvm.meta_schedule`, `tvm.auto_scheduler`, `tvm.autotvm`",
            "schedules are written, or made by the rules of `tilewright.compile`; there is no search",
            "auto_scheduler|override_native_generic_func|tile_with_tensor_intrin|get_tensorize_loop_mapping"),
    LeftOut("`tvm.rpc`", "kernels run on the machine that built them, or are exported"),
    LeftOut("the schedules of `tvm.topi` for targets (`topi.x86`, `topi.cuda`, ...), its operators of layouts in "
            "blocks, of bits and for Winograd by hand, `tvm.contrib.sparse`",
            "operators have no schedule: `tilewright.compile` finds one, or it is written", "topi|contrib.sparse"),
    LeftOut("names that begin with an underscore, `_ffi_api` of every module, fields of nodes that only TVM's C++ "
            "reads (`tvm.ir.make_node` of `DictAttrs` and `Tensor`, `tvm.Function`)",
            "they belong to the inside of TVM, between its Python and its C++",
            r"_ffi_api|make_node\(|tvm\.Function|'tuple' object has no attribute 'op'|'dict' object has no attribute|"
            "'Tensor' object has no attribute 'handle'|'Var' object has no attribute 'data'|execption|cannot lower a "
            "Broken"),
    LeftOut("`tvm.script.parser.core`, `tvm.script.ir_builder`, `tvm.ir.diagnostics` beyond `override_renderer`",
            "inside of the parser of scripts: `tvm.script.from_source` and the decorators are the way in",
            r"script\.parser\.core"),
    LeftOut("`tvm.tir.ProducerLoad`, `ProducerStore`, `ProducerRealize`, `Provide`, `Realize`, `Prefetch`, "
            "`Allocate`, `AllocateConst`, `AttrStmt`, and the attributes of TVM's passes in scripts "
            "(`double_buffer_scope`, `reduce_scope`, `async_scope`, `device_id`, `T.iter_var`)",
            "statements between te and loops that there are not here: te becomes blocks, attributes are annotations",
            r"tvm\.tir\.(Producer|Prefetch|Allocate)|the attribute '|iter_var"),
    LeftOut("`tvm.arith.solve_linear_inequalities`, `PresburgerSet`, `Extension`, `estimate_region_lower_bound`",
            "solvers that no pass of ours needs; `deduce_bound` solves one inequality", "solve_linear_inequalities"),
    LeftOut("passes for tensor cores, textures, VTCM and asynchronous copies (`LowerAutoCopy`, "
            "`InjectPermutedLayout`, `InjectPTXLDG32`, `TransformMmaBufferLayout`, `UnifiedStaticMemoryPlanner`, "
            "`ManifestSharedMemoryLocalStage`), the thread axis `cop`",
            "there is no back end for a GPU or a DSP; the instructions of GPUs in scripts parse, print and are "
            "scheduled", "LowerAutoCopy|ManifestShared|'cop'|bound to blockIdx.x, but the tar"),
    LeftOut("`InjectRollingBuffer`, `ExtractPrimFuncConstants`",
            "`rolling_buffer` rewrites at once; constants stay in their functions", "InjectRolling|ExtractPrim"),
    LeftOut("code for kinds of targets other than `llvm`",
            "strings of the other kinds are read and described, not compiled", "no code generation for"),
    LeftOut("flags of targets that change nothing here (`-cl-opt`, `-mfloat-abi`)",
            "a flag that is taken has an effect", "is not a flag"),
    # scripts and te
    LeftOut("`T.vscale`, `T.get_active_lane_mask`, slices of symbolic length",
            "vectors have a constant number of lanes",
            "vscale|get_active_lane_mask|sve_target|a vector has a constant number"),
    LeftOut("`T.undef`, `T.q_multiply_shift`, `T.tvm_struct_get`",
            "memory starts unwritten; the others are steps of TVM's own lowering",
            "T.undef|'undef'|q_multiply_shift|tvm_struct_get"),
    LeftOut("buffers with `buffer_type=\"auto_broadcast\"`", "write strides=[...], with 0 where the extent may be 1",
            "buffer_type"),
    LeftOut("blocks whose regions leave out what they touch, axes and indices beyond their domain, conditions that "
            "are no bool, stores of another dtype or number of lanes, symbols in scripts that nothing defines",
            "scripts are verified: what TVM finds while it lowers, or never, is an error where it is written",
            "regions leave out|outside its domain|the condition is int|is stored to B|lanes are stored to|not inside "
            "of the memory|in strides is not an integer|outside of the shape|outside of th|is no LLVM intrinsic|is a "
            "statement of its own|storage_scope'"),
    LeftOut("a function of `te.compute` with fewer parameters than dimensions, results that are vectors, "
            "`create_schedule([])`, tags inside of tags, assertions and lengths inside of hybrid functions",
            "it is an error in te: say what is computed",
            "the function takes N argument|the function take|not a scalar|no operation was given|tags are not nested|"
            "^TensorExpressionError: hybrid"),
    LeftOut("factors of splits that are no constants; `set_scope`, `compute_at` and `set_store_predicate` of outputs; "
            "fusing loops that are not neighbours; vectorizing a reduction",
            "schedules are checked: what cannot be right for every size is refused",
            r"not a constant integer|set_scope\('shared'\)|set_store_predicate|are not next to each other|cannot "
            r"vectorize the reduction|is computed at j|compute_at\(s\[C\], iN\)|\.tensorize\(i, tensor_intrin\)|"
            "threadIdx.x is already bound"),
    # block schedules
    LeftOut("loops of one thread axis with different extents in one kernel, a loop that is made another kind of loop "
            "twice, a reduction moved below the threads that share it",
            "threads of a block run together: each loop of their axis has one extent, and says once how it runs",
            "bound to threadI|thread_binding loop axN_N"),
    LeftOut("`cache_read` of what is not complete before its first consumer; `rolling_buffer` of a block that reads "
            "what it writes, or of parts that do not follow each other", "the copy would hold other values",
            r"is not complete b|rolling_buffer\("),
]

#: (programs, how much of what they asked for works, how much they asked for), counted by `tests.compat.names_share`
SHARES: list[tuple[str, int, int]] = [
    ("te, TVM 0.18", 159, 166), ("tir-schedule, TVM 0.18", 179, 221), ("tir-transform, TVM 0.18", 387, 469),
    ("arith, TVM 0.18", 108, 115), ("TVM 0.11", 488, 560), ("TVM 0.5", 37, 61),
]

#: what TVM refuses, and is right here
WIDER: list[str] = [
    "`parallel` of a loop beside a reduction over elements that no affine map chooses",
    "`reorder` below a predicate, of axes with steps, of a scan whose steps do not meet, of axes of which one is not "
    "affine",
    "`split` and `fuse` of loops that do not start at 0",
    "`rfactor` of a reduction that starts at another value than the identity, from a variable, below a predicate, of "
    "two results in buffers of different shapes, or with one of them in no variable",
    "`compute_at` of a producer at the first of its consumers, and of one whose buffer is written again later",
    "`cache_read` of a buffer that several blocks write",
    "`pad_einsum` of a block that is no sum of products",
]
