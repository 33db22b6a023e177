"""The twelve questions of the workshop as a bilingual quiz with automatic grading."""
