"""Text processing, from raw bytes to token shards. Nothing here imports torch."""
