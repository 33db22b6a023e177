"""Jobs: long work such as training, each in its own process, which continues when the server stops."""
