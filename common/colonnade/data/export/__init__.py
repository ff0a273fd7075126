"""Models for other programs: SQL expressions and ONNX graphs."""
