"""The OpenAI-compatible API: request and answer schemas, and routes."""
