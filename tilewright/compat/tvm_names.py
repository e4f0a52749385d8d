"""The public names of TVM 0.6 to 0.19 that programs of tensor expressions and loops use, by where they stand.

Read from TVM's own listings of its Python packages; names of one back end or of the graph compilers are left out.
"""
from __future__ import annotations

MODULES: dict[str, str] = {
    "tvm": """
        IRModule TVMError Target all any arith atan build build_config call_extern call_intrin call_llvm_intrin
        call_packed call_pure_extern call_pure_intrin ceil clz codegen comm_reducer compile compute const convert cos
        cpu create_schedule cuda decl_buffer decl_tensor_intrin device div error exp expr extern floor floordiv
        floormod fmod get_global_func gpu if_then_else indexdiv indexmod intrin ir ir_pass isnan likely load_json log
        lower make max max_value min min_value module nd nearbyint placeholder popcount power reduce_axis
        register_func register_intrin_rule round rsqrt runtime save_json scan schedule script select sigmoid sin
        size_var sqrt stmt sum tag_scope tan tanh target te tensor testing thread_axis tir topi transform trunc
        truncdiv truncmod var""",
    "tvm.module": "Module enabled load system_lib",
    "tvm.schedule": "Buffer Schedule Stage create_schedule",
    "tvm.ir_pass": """
        CanonicalSimplify ConvertSSA CoProcSync Equal IRTransform InjectVirtualThread Inline LoopPartition MakeAPI
        PostOrderVisit RemoveNoOp Simplify StorageFlatten StorageRewrite Substitute UnrollLoop VectorizeLoop""",
    "tvm.expr": "Add Call Expr FloatImm IntImm Let Load Ramp Reduce Select StringImm UIntImm Var",
    "tvm.stmt": "Allocate AssertStmt AttrStmt Block Evaluate For IfThenElse LetStmt Provide Realize Stmt Store",
    "tvm.make": "Block Call Evaluate For node range_by_min_extent",
    "tvm.te": """
        Schedule Tensor TensorSlice abs all any atan ceil comm_reducer compute const cos create_prim_func
        create_schedule decl_tensor_intrin div erf exp extern extern_primfunc floor floordiv floormod fmod hybrid
        if_then_else indexdiv indexmod isnan log max max_value min min_value nearbyint placeholder popcount power
        reduce_axis round rsqrt scan sigmoid sin size_var sqrt sum tag_scope tanh thread_axis trunc truncdiv truncmod
        var""",
    "tvm.te.schedule": """
        AutoInlineBroadcast AutoInlineElemWise AutoInlineInjective CreateReadGraph InferBound PostDFSOrder Schedule
        ScheduleOps SchedulePostProcRewriteForTensorCore SchedulePostProcToPrimFunc SpecializedCondition Stage
        VerifyCompactBuffer create_schedule""",
    "tvm.driver": "build lower",
    "tvm.driver.build_module": "build lower schedule_to_module",
    "tvm.te.hybrid": "build decorate parse script",
    "tvm.tir": """
        Add Allocate AllocateConst And AssertStmt AttrStmt Block BlockRealize Broadcast Buffer BufferLoad BufferRegion
        BufferStore Call Cast CommReducer DeclBuffer Div EQ Evaluate FloatImm FloorDiv FloorMod For ForKind GE GT
        IfThenElse IndexMap IntImm IterVar LE LT Let LetStmt MatchBufferRegion Max Min Mod Mul NE Not Or PrimExpr
        PrimFunc ProducerLoad Ramp Reduce Schedule ScheduleError Select SeqStmt Shuffle SizeVar Stmt StringImm Sub
        TensorIntrin Var While abs acos acosh add address_of all analysis any asin asinh assume atan atan2 atanh
        bitwise_and bitwise_not bitwise_or bitwise_xor call_cpacked call_extern call_intrin call_llvm_intrin
        call_llvm_pure_intrin call_packed call_pure_extern ceil ceildiv clz comm_reducer const copysign cos cosh
        decl_buffer div erf exp exp10 exp2 floor floordiv floormod fmod hypot if_then_else indexdiv indexmod infinity
        ir_builder isfinite isinf isnan ldexp likely log log10 log1p log2 max max_value min min_value multiply
        nearbyint nextafter popcount pow power q_multiply_shift reinterpret ret round rsqrt schedule shift_left
        shift_right sigmoid sin sinh sqrt stmt_functor stmt_list stmt_seq subtract sum tan tanh transform trunc
        truncdiv truncmod undef vectorcombine vectorhigh vectorlow""",
    "tvm.tir.ir_builder": "BufferVar IRBuilder create",
    "tvm.tir.stmt_functor": "ir_transform post_order_visit pre_order_visit renew_defs substitute",
    "tvm.tir.transform": """
        AnnotateDeviceRegions AnnotateEntryFunc Apply BF16ComputeLegalize BF16StorageLegalize BindTarget
        CombineContextCall CommonSubexprElimTIR CompactBufferAllocation ConvertBlocksToOpaque ConvertForLoopsToSerial
        ConvertSSA DecorateDeviceScope ExtractPrimFuncConstants FP8ComputeLegalize Filter FlattenBuffer
        ForceNarrowIndexToInt32 HoistExpression HoistIfThenElse HoistedConditionals HoistedLetBindings InferFragment
        InjectCopyIntrin InjectDoubleBuffer InjectPTXAsyncCopy InjectPrefetch InjectRollingBuffer
        InjectSoftwarePipeline InjectVirtualThread InlinePrivateFunctions InstrumentBoundCheckers LoopPartition
        LowerAutoCopy LowerCrossThreadReduction LowerCustomDatatypes LowerDeviceKernelLaunch
        LowerDeviceStorageAccessInfo LowerInitBlock LowerIntrin LowerMatchBuffer LowerOpaqueBlock LowerTVMBuiltin
        LowerThreadAllreduce LowerWarpMemory MakePackedAPI MakeUnpackedAPI ManifestSharedMemoryLocalStage
        MergeSharedMemoryAllocations NarrowDataType PlanAndUpdateBufferAllocationLocation PointerValueTypeRewrite
        PrimFuncPass ReduceBranchingThroughOvercompute RemoveAssume RemoveNoOp RemoveStoreUndef
        RenormalizeSplitPattern RewriteUnsafeSelect Simplify SkipAssert SplitHostDevice StorageFlatten StorageRewrite
        ThreadSync UnifyThreadBinding UnrollLoop VectorizeLoop VerifyMemory prim_func_pass""",
    "tvm.ir.instrument": "PassInstrument PassTimingInstrument PrintAfterAll PrintBeforeAll pass_instrument",

    "tvm.tir.analysis": """
        calculate_workspace_bytes estimate_tir_flops expr_deep_equal verify_gpu_code verify_memory""",
    "tvm.arith": """
        Analyzer ConstIntBound ConstraintScope IntSet IntervalSet IterMapExpr IterMark IterSplitExpr IterSumExpr
        ModularSet ProofStrength deduce_bound detect_clip_bound detect_iter_map detect_linear_equation domain_touched
        estimate_region_lower_bound estimate_region_upper_bound inverse_affine_iter_map iter_map_simplify
        normalize_iter_map_to_expr normalize_to_iter_sum solve_linear_equations solve_linear_inequalities
        subspace_divide""",
    "tvm.ir": """
        Array GlobalVar IRModule IntImm Map Node Op PointerType PrimExpr PrimType Range Span assert_structural_equal
        load_json make_node register_intrin_lowering register_op_attr save_json structural_equal structural_hash
        transform""",
    "tvm.transform": "Pass PassContext PassInfo PrintIR Sequential module_pass",
    "tvm.target": "Target arm_cpu build_config create cuda current_target",
    "tvm.runtime": """
        DataType Device Module NDArray Object PackedFunc ShapeTuple String const convert cpu cuda device
        enabled load_module load_param_dict ndarray save_param_dict system_lib""",
    "tvm.nd": """
        NDArray array context cpu cuda device empty from_dlpack gpu metal numpyasarray opencl rocm vulkan""",
    "tvm.testing": """
        assert_allclose enabled_targets main parameter parametrize_targets requires_gpu requires_llvm""",
    "tvm.error": "InternalError OpError TVMError",
    "tvm.contrib.utils": "TempDirectory tempdir",
    "tvm.contrib.cc": "create_executable create_shared create_staticlib get_cc",
    "tvm.contrib.tar": "tar untar",
    "tvm.contrib.clang": "create_llvm find_clang",
    "tvm.contrib.cblas": "batch_matmul matmul",
    "tvm.script": "from_source ir ir_module parse_module tir",
    "tvm.script.tir": """
        Broadcast Buffer Cast Let Ramp Select Shuffle alloc_buffer allocate assume attr axis bfloat16 block block_attr
        bool buffer_store call_extern call_llvm_pure_intrin call_packed cast ceil ceildiv comm_reducer const cos
        decl_buffer env_thread erf evaluate exp float16 float32 float64 floor floordiv floormod func_attr func_name
        func_ret grid handle if_then_else index_map init int16 int32 int64 int8 isnan launch_thread let likely log macro
        match_buffer max max_value min min_value parallel popcount pow power preflattened_buffer prim_func ptr reads
        realize reinterpret round rsqrt serial sigmoid sin sqrt tanh target thread_binding trunc truncdiv truncmod
        tvm_access_ptr tvm_storage_sync tvm_thread_allreduce type_annotation uint16 uint32 uint64 uint8 undef unroll
        vectorized where writes""",
    "tvm.relax": """
        BindingBlock BlockBuilder Call Constant DataTypeImm DataflowBlock DataflowVar DynTensorType Expr
        ExternFunc FuncStructInfo Function GlobalVar If MatchCast ObjectStructInfo ObjectType PackedFuncType
        PrimStructInfo PrimValue PyExprMutator PyExprVisitor SeqExpr ShapeExpr ShapeStructInfo ShapeType
        StringImm StructInfo TensorStructInfo Tuple TupleGetItem TupleStructInfo Var VarBinding VirtualMachine
        build const extern get_pipeline get_shape_of register_pipeline te_tensor""",
    "tvm.relax.op": """
        abs acos acosh add arange argmax argmin argsort asin asinh assert_op astype atan atanh bitwise_and
        bitwise_not bitwise_or bitwise_xor broadcast_to bucketize call_dps_packed call_inplace_packed
        call_pure_packed call_tir call_tir_inplace call_tir_with_grad ceil clip collapse_sum_like
        collapse_sum_to concat cos cosh cumprod cumsum dequantize divide dynamic_strided_slice einsum equal erf
        ewise_fma exp expand_dims flatten flip floor floor_divide full full_like gather_elements gather_nd
        greater greater_equal hint_on_device image invoke_closure isfinite isinf isnan layout_transform less
        less_equal linear log logical_and logical_not logical_or logical_xor masked_fill matmul max maximum mean
        min minimum mod multinomial_from_uniform multiply negative nn nonzero not_equal null_value one_hot ones
        ones_like permute_dims power print prod quantize repeat reshape round rsqrt scatter_elements scatter_nd
        shape_of sigmoid sign sin sinh sort split sqrt square squeeze std stop_lift_params strided_slice
        subtract sum take tan tanh tensor_to_shape tile to_vdevice topk tril triu unique variance where
        wrap_param zeros zeros_like""",
    "tvm.relax.op.nn": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d attention attention_var_len avg_pool1d
        avg_pool2d avg_pool3d batch_norm conv1d conv1d_transpose conv2d conv2d_transpose conv3d
        cross_entropy_with_logits dense dropout flatten gelu gelu_tanh group_norm instance_norm layer_norm
        leakyrelu log_softmax max_pool1d max_pool2d max_pool3d nll_loss pad pixel_shuffle prelu relu rms_norm
        selu silu softmax softplus""",
    "tvm.relax.transform": """
        AllocateWorkspace AlterOpImpl AnnotateTIROpPattern AttachGlobalSymbol BindParams BindSymbolicVars
        BundleModelParams CallTIRRewrite CanonicalizeBindings CombineParallelMatmul ConvertLayout
        ConvertToDataflow DataflowUseInplaceCalls DeadCodeElimination DecomposeOpsForInference
        DecomposeOpsForTraining EliminateCommonSubexpr ExpandMatmulOfSum FewShotTuning FoldConstant FuseOps
        FuseOpsByPattern FuseTIR FusionPattern Gradient InlinePrivateFunctions KillAfterLastUse LambdaLift
        LazyGetInput LegalizeOps LiftTransformParams LowerAllocTensor MergeCompositeFunctions
        MetaScheduleApplyDatabase MetaScheduleTuneIRMod MetaScheduleTuneTIR Normalize NormalizeGlobalVar
        RealizeVDevice RemovePurityChecking RemoveUnusedOutputs RemoveUnusedParameters RewriteCUDAGraph
        RewriteDataflowReshape RunCodegen SplitCallTIRByPattern StaticPlanBlockMemory ToMixedPrecision
        ToNonDataflow TopologicalSort UpdateVDevice VMBuiltinLower VMShapeLower dataflowblock_pass function_pass""",
    "tvm.relax.analysis": """
        all_global_vars all_vars bound_vars computable_at_compile_time contains_impure_call
        defined_symbolic_vars detect_recursion erase_to_well_defined estimate_memory_usage free_symbolic_vars
        free_vars get_static_type get_var2val has_reshape_pattern name_to_binding post_order_visit
        remove_all_unused struct_info_base_check struct_info_lca suggest_layout_transforms
        tir_vars_in_struct_info udchain well_formed""",
    "tvm.relax.expr_functor": "ExprMutator ExprVisitor PyExprMutator PyExprVisitor mutator visitor",
    "tvm.relax.dpl": """
        DFPattern PatternContext is_call_dps_packed is_call_tir is_const is_dfv is_expr is_gv is_op is_shape
        is_tuple is_tuple_get_item is_var make_fused_bias_activation_pattern rewrite_bindings rewrite_call
        wildcard""",
    "tvm.script.relax": """
        Callable ExternFunc Object Prim Shape Tensor Tuple call_dps_packed call_packed call_pure_packed call_tir
        const dataflow dtype func_attr function image macro match_cast nn output prim_value shape str tuple""",
    "tvm.relax.frontend.onnx": "from_onnx",
    "tvm.relax.frontend.torch": "from_exported_program from_fx",
    "tvm.contrib.graph_executor": "GraphModule create get_device",
    "nnvm.compiler": "build build_config build_target load_param_dict optimize save_param_dict",
    "nnvm.frontend": "from_caffe2 from_coreml from_darknet from_keras from_mxnet from_onnx from_tensorflow",
}
CLASSES: dict[str, str] = {
    "te.Schedule": "cache_read cache_write create_group normalize outputs rfactor stages",
    "te.Stage": """
        bind compute_at compute_inline compute_root double_buffer env_threads fuse parallel pragma prefetch reorder
        rolling_buffer set_scope set_store_predicate split storage_align tensorize tile transform_layout unroll
        vectorize""",
    "te.Tensor": "axis dtype ndim op shape value_index",
    "tir.Buffer": """
        access_ptr data dtype elem_offset get_flattened_buffer offset_of scope shape strides vload vstore""",
    "tir.Schedule": """
        add_unit_loop annotate annotate_buffer_access bind blockize cache_index cache_inplace cache_read cache_write
        can_decompose_padding compute_at compute_inline copy decompose_padding decompose_reduction enter_postproc
        fork_seed func_working_on fuse get get_block get_child_blocks get_consumers get_loops get_output_blocks
        get_producers get_sref loop_partition merge mod pad_einsum parallel reindex reindex_cache_read
        reindex_cache_write remove_rv reorder reorder_block_iter_var reverse_compute_at reverse_compute_inline rfactor
        rolling_buffer sample_categorical sample_compute_location sample_partitioned_tile sample_perfect_tile seed
        set_axis_separator set_scope show split state storage_align tensorize trace transform_block_layout
        transform_layout unannotate unroll unsafe_hide_buffer_access unsafe_set_dtype vectorize work_on""",
    "tir.ir_builder.IRBuilder": """
        allocate buffer_ptr else_scope emit for_range get if_scope let likely new_scope pointer scope_attr
        while_loop""",
    "arith.Analyzer": """
        bind can_prove can_prove_equal canonical_simplify const_int_bound constraint_scope int_set modular_set
        rewrite_simplify simplify update""",
    "runtime.Module": """
        entry_name export_library get_function get_source import_module imported_modules save time_evaluator""",
    "nd.NDArray": "asnumpy copyfrom copyto device dtype numpy same_as shape to_dlpack",
    "IRModule": """
        attrs from_expr functions get_global_var get_global_vars script show update update_func with_attr""",
    "transform.PassContext": """
        config current disabled_pass instruments list_configs opt_level override_instruments""",
    "relax.BlockBuilder": """
        add_func call_te current_func dataflow emit emit_func_output emit_normalized emit_output emit_te finalize
        function get get_unique_name lookup_binding match_cast normalize update_func""",
    "relax.VirtualMachine": """
        get_outputs invoke_closure invoke_stateful profile save_function set_input time_evaluator""",
    "target.Target": """
        arch attrs canon_target canon_target_and_host current export features from_device host keys kind libs list_kinds
        max_num_threads mcpu model thread_warp_size with_host""",
}
