"""The text room: from raw bytes to token shards. No torch anywhere in here."""
