"""The ONNX door: graphs for onnxruntime."""
