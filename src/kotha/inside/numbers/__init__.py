"""Every number of one pass and how it was computed: from the embedding to the answer, cell by cell."""
