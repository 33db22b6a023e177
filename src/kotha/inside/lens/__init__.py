"""What each layer would say next (logit lens)."""
