"""Jobs: long-running work such as training. Each job has its own process, which continues when the server stops."""
