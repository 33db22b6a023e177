"""Every number in one forward pass, from the embedding to the prediction, and how it was computed."""
