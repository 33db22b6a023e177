"""People judge what models write: blind pairs, who wins by how much, and whether judges agree."""
