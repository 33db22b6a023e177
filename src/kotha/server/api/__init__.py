"""What OpenAI's clients do not ask: letters and tokens, what could come next, how the server fares."""
