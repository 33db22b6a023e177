"""The OpenAI-compatible API: request and response schemas, and routes."""
