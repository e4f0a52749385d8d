"""Models of benchmarks: networks with random weights, written as ONNX files, and the engines that run them."""
