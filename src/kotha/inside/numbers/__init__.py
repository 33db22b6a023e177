"""Every number of one forward pass, from the embedding to the answer, and how it was computed."""
