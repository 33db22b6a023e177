"""Why something is not done with jobs and files; the server's errors say which status each is."""

from kotha.errors import KothaError


class NoSuchJobError(KothaError):
    """An id that no job, and no file, has."""


class JobConflictError(KothaError):
    """What is asked for does not go with how jobs stand."""


class FilesFullError(KothaError):
    """More than all files together may take."""
