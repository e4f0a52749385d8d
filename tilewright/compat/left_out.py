"""What of TVM is left out on purpose, and why: for docs/tvm.md."""
from __future__ import annotations

LEFT_OUT: list[tuple[str, str]] = [
    ("`tvm.relay`, `tvm.relax`, `tvm.nnvm`, `tvm.graph_executor`, `tvm.micro`",
     "models are built with `tilewright.graph`"),
    ("`tvm.meta_schedule`, `tvm.auto_scheduler`, `tvm.autotvm`",
     "schedules are written, or made by the rules of `tilewright.compile`; there is no search"),
    ("`tvm.rpc`", "kernels run on the machine that built them, or are exported"),
    ("`tvm.topi`", "operators are written in te; of topi there are only its helpers for shapes"),
    ("names that begin with an underscore, `_ffi_api` of every module, `tvm.tir.schedule._type_checker`",
     "they belong to the inside of TVM, between its Python and its C++"),
    ("`tvm.script.parser.core`, `tvm.script.ir_builder`, `tvm.ir.diagnostics` beyond `override_renderer`",
     "inside of the parser of scripts: `tvm.script.from_source` and the decorators are the way in"),
    ("`tvm.tir.ProducerLoad`, `ProducerStore`, `ProducerRealize`, `Provide`, `Realize`, `AttrStmt`",
     "statements between te and loops that there are not here: te becomes blocks, attributes are annotations"),
    ("`tvm.arith.solve_linear_inequalities`, `PresburgerSet`, `Extension`, `estimate_region_lower_bound`",
     "solvers that no pass of ours needs; `deduce_bound` solves one inequality"),
    ("passes for tensor cores, textures, VTCM and asynchronous copies (`LowerAutoCopy`, `InjectPermutedLayout`, "
     "`InjectPTXLDG32`, `TransformMmaBufferLayout`, `UnifiedStaticMemoryPlanner`)",
     "there is no back end for a GPU or a DSP"),
    ("code for kinds of targets other than `llvm`", "strings of the other kinds are read and described, not compiled"),
]
