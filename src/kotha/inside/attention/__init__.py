"""Who looks at whom: every head of every layer."""
