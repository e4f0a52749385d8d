"""`tilewright tvm --check`: `names` finds the uses of what is not there, `calls` says which calls do not fit."""
