"""From a function of kernels to a plan, which is data, and to what runs it."""
