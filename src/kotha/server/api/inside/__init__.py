"""``/api/inside/…``: what ``kotha inside`` shows, as JSON; a file for each question."""
