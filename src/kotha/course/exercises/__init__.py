"""The workshop's twelve questions as a quiz: asked in two languages, answered by code, graded with sense."""
