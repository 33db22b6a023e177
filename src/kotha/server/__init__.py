"""The server, `kotha serve`: one address for programs and people."""
