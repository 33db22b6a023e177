"""The llama.cpp door: GGUF files."""
