"""The HTTP server behind `kotha serve`: an OpenAI-compatible API, Kotha's own API, and the studio."""
