"""`tvm.contrib`: `toolchain` has utils, cc and tar; `clang` and `cblas` call what the user has installed."""
