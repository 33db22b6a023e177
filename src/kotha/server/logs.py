"""The log on stderr: a line for each request, and whatever else is logged beside it in the same form."""

import json
import logging

from kotha.server.settings import LogKind

FIELDS = "fields"  # of a record that has more to tell than a sentence


def log_requests(log_as: LogKind) -> None:
    """Let a line for each request go to stderr."""
    if log_as == "none":
        return
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if log_as == "json" else logging.Formatter("%(asctime)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class JsonLines(logging.Formatter):
    """A JSON object a line, whoever writes: a request's fields, or level, logger and message; errors with all of it."""

    def format(self, record: logging.LogRecord) -> str:
        """One record."""
        plain = {"level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        line = {"time": round(record.created, 3), **getattr(record, FIELDS, plain)}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)
