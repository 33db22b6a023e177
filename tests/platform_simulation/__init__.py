"""Windows and macOS simulated on Linux."""
