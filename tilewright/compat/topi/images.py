"""`tvm.topi.image`, `vision`, `sparse`, `generic`, `tag`: what else of topi there is, under TVM's names."""
from __future__ import annotations

from typing import Any

from tilewright import te, topi
from tilewright.compat.topi.arguments import along, channels_last, converted, items, taking_numbers
from tilewright.support.errors import ArgumentError, described
from tilewright.te.tensor import Tensor
from tilewright.tir import dtype as dt
from tilewright.topi.shapes import check_extent, check_rank

_ROUNDINGS = {"round": "round_prefer_ceil", "floor": "floor", "ceil": "ceil",
              "round_prefer_floor": "round_prefer_floor", "round_prefer_ceil": "round_prefer_ceil"}
_MODES = {"nearest_neighbor": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic", "bicubic": "cubic"}


def resize2d(data: Tensor, roi: Any, size: Any, layout: str = "NCHW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", bicubic_alpha: float = -0.5,
             bicubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: Any = None,
             output_shape: Any = None) -> Tensor:
    """Images of another size; roi is not taken. Between integers numbers are float32, the result is cut toward 0."""
    if not isinstance(method, str) or method.lower() not in _MODES:
        raise ArgumentError(f"resize2d: the method is {described(method)}", ", ".join(_MODES))
    if coordinate_transformation_mode == "tf_crop_and_resize":
        raise ArgumentError("resize2d: regions", "tilewright.topi.resize has regions")
    first = 1 if channels_last("resize2d", data, layout) else 2
    size = items("resize2d", "size", size)
    whole = None if output_shape is None else items("resize2d", "output_shape", output_shape)
    if whole is not None and [str(n) for n in whole[first:first + 2]] != [str(n) for n in size]:
        raise ArgumentError(f"resize2d: output_shape is {described(output_shape)}, size {described(size)}")
    attrs: dict[str, Any] = {"coordinates": coordinate_transformation_mode, "cubic_a": bicubic_alpha,
                             "exclude_outside": bool(bicubic_exclude)}
    mode, x = _MODES[method.lower()], data
    if mode == "nearest":
        default = "floor" if coordinate_transformation_mode != "align_corners" else "round"
        if (rounding_method or default) not in _ROUNDINGS:
            raise ArgumentError(f"resize2d: rounding_method is {rounding_method!r}", ", ".join(_ROUNDINGS))
        attrs["rounding"] = _ROUNDINGS[rounding_method or default]
    else:
        x = converted(data, next((d for d in (out_dtype, data.dtype) if d and dt.is_float(d)), "float32"))
    y = topi.resize(x, size, axes=(first, first + 1), mode=mode, **attrs)
    return converted(y, out_dtype or data.dtype)


def grid_sample(data: Tensor, grid: Tensor, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros",
                align_corners: bool = True) -> Tensor:
    """Values at the places of a grid [b, 2, h, w]."""
    if channels_last("grid_sample", data, layout):
        raise ArgumentError(f"grid_sample: the layout {layout!r}", "the channels are the second axis")
    rank = len(grid.shape)
    return topi.grid_sample(data, topi.transpose(grid, (0, *range(2, rank), 1)), mode=method, padding_mode=padding_mode,
                            align_corners=align_corners)


def affine_grid(data: Tensor, target_shape: Any) -> Tensor:
    """The grid [b, 2, h, w] of affine maps [b, 2, 3], with corners aligned."""
    y = topi.affine_grid(data, items("affine_grid", "target_shape", target_shape), align_corners=True)
    return topi.transpose(y, (0, 3, 1, 2))


def _regions(rois: Tensor) -> tuple[Tensor, Tensor]:
    """(boxes, the image of each) of rows (image, x1, y1, x2, y2)."""
    check_rank("roi", "rois", rois, 2)
    check_extent("roi", "extent 1 of rois", rois.shape[1], 5)
    boxes = te.compute((rois.shape[0], 4), lambda r, k: rois(r, k + 1), name="boxes")
    return boxes, te.compute((rois.shape[0],), lambda r: rois(r, 0).astype("int32"), name="images")


def roi_align_nchw(data: Tensor, rois: Tensor, pooled_size: Any, spatial_scale: float, mode: Any = "avg",
                   sample_ratio: int = -1, aligned: bool = False) -> Tensor:
    """The mean, or the largest, of values in the bins of regions."""
    kind = "avg" if mode in ("avg", b"avg", 0) else "max"
    if kind == "max" and mode not in ("max", b"max", 1):
        raise ArgumentError(f"roi_align_nchw: mode is {described(mode)}", '"avg" or "max"')
    boxes, which = _regions(rois)
    return topi.roi_align(data, boxes, which, pooled_size, spatial_scale=float(spatial_scale),
                          sampling_ratio=max(sample_ratio, 0), aligned=aligned, mode=kind)


def roi_pool_nchw(data: Tensor, rois: Tensor, pooled_size: Any, spatial_scale: float) -> Tensor:
    """The largest pixels in the bins of regions."""
    boxes, which = _regions(rois)
    return topi.roi_pool(data, boxes, which, pooled_size, spatial_scale=float(spatial_scale))


def csrmm(a: Any, b: Tensor, c: Tensor | None = None) -> Tensor:
    """The product of a sparse matrix (with data, indices and indptr) and a dense one, + c[r]."""
    if not all(hasattr(a, part) for part in ("data", "indices", "indptr")):
        raise ArgumentError(f"csrmm: a is {described(a)}", "it has data, indices and indptr")
    y = topi.csr_matmul(a.data, a.indices, a.indptr, b)
    if c is not None:
        along("csrmm", "c", c, y, 0)
    return y if c is None else te.compute(y.shape, lambda r, j: y(r, j) + c(r), name="csrmm")


def csrmv(a: Any, x: Tensor, y: Tensor | None = None) -> Tensor:
    """The product of a sparse matrix and a vector [n, 1], + y[r]."""
    return csrmm(a, x, y)


def default_schedule(outs: Any, *ignored: Any, **attrs: Any) -> Any:
    """The schedule of te without a step: topi's schedules for targets are not here."""
    given = outs if isinstance(outs, (list, tuple)) else [outs]
    return te.create_schedule([x.op for x in given])


IMAGE: dict[str, Any] = {f.__name__: taking_numbers(f) for f in (resize2d, grid_sample, affine_grid)}
VISION: dict[str, Any] = {f.__name__: taking_numbers(f) for f in (roi_align_nchw, roi_pool_nchw)}
SPARSE: dict[str, Any] = {"csrmm": csrmm, "csrmv": csrmv}
GENERIC: dict[str, Any] = {"default_schedule": default_schedule} | {f"schedule_{name}": default_schedule for name in (
    "injective", "reduce", "softmax", "dense", "pool", "adaptive_pool", "conv2d_nchw", "conv2d_nhwc",
    "depthwise_conv2d_nchw", "batch_matmul", "extern", "lrn")}
TAG: dict[str, Any] = {"ELEMWISE": "elemwise", "BROADCAST": "broadcast", "INJECTIVE": "injective",
                       "COMM_REDUCE": "comm_reduce", "COMM_REDUCE_IDX": "comm_reduce_idx"}
