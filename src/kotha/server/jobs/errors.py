"""Why something is not done with jobs and files; the server's errors say which status each is."""

from kotha.errors import KothaError


class NoSuchJobError(KothaError):
    """An id that no job, and no file, has."""


class JobConflictError(KothaError):
    """What is asked for does not go with how jobs stand."""


class DamagedJobError(JobConflictError):
    """A job's folder that does not hold what was written there."""


class FilesFullError(KothaError):
    """More than all files together may take."""
