"""Export to GGUF files for llama.cpp."""
