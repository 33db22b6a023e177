"""Every number of one pass, and what made it: from the embedding to the answer, cell by cell."""
