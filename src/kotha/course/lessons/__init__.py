"""Lessons: questions from the course, answered by training and measuring small models on the user's machine.

Most lessons are ablations: they compare the same small model with and without positions, a causal mask or residual
connections, or with more and fewer heads. Other lessons compare a transformer with an LSTM or a CNN. A lesson is a
``LessonPlan``; ``MeasuredLesson`` runs it and returns a ``LessonResult`` with conditions, their figures, and
conclusions in two languages. ``lessons.json`` defines the columns and default sizes, and ``words/`` holds the texts.
The unusual models that lessons compare are not part of ``kotha.model``; they are built here from its parts.
"""
