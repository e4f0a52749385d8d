"""`tvm.contrib`: `toolchain` has utils, cc, tar and clang; `cblas` calls what the user has installed."""
