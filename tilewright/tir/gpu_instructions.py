"""Instructions of GPUs that programs name: they parse, print and are scheduled; there is no code for them on a CPU."""
from __future__ import annotations

# called as T.name(...)
_PLAIN = (
    "tvm_load_matrix_sync", "tvm_store_matrix_sync", "tvm_fill_fragment", "tvm_mma_sync", "tvm_bmma_sync",
    "ptx_commit_group", "ptx_wait_group", "ptx_cp_async_barrier", "ptx_init_barrier_thread_count",
    "ptx_arrive_barrier", "ptx_arrive_barrier_expect_tx", "ptx_wait_barrier", "create_barriers",
    "simdgroup_load", "simdgroup_store", "simdgroup_multiply_accumulate", "make_filled_simdgroup_matrix",
)
# called as T.name(dtype, ...)
GPU_DTYPE_FIRST = (
    "ptx_mma", "ptx_mma_sp", "ptx_ldmatrix", "ptx_cp_async", "ptx_cp_async_bulk", "mma_store", "mma_fill")
GPU_INSTRUCTIONS = (*_PLAIN, *GPU_DTYPE_FIRST)
