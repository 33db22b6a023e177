"""Text generation: decoding, beam search, classification and conversations."""
