"""Export to ONNX graphs for onnxruntime."""
