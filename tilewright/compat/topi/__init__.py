"""TVM's names of operators, with TVM's signatures, as calls of `tilewright.topi`: no operator is written here."""
