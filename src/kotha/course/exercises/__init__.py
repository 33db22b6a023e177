"""The workshop's twelve questions as a bilingual quiz with automatic grading."""
