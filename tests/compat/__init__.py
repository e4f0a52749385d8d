"""Programs that were written for TVM, and TVM's names."""
