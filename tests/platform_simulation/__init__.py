"""Other systems, put on as a disguise."""
