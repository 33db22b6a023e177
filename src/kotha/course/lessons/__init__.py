"""Lessons: questions of the course, answered by training and measuring small models on the spot.

Most lessons are ablations: the same small model with and without positions, causal mask or residual connections, with
more or fewer heads, or compared with an LSTM or a CNN. A lesson is a ``LessonPlan``; ``MeasuredLesson`` runs it and
returns a ``LessonResult``: conditions, their figures, and conclusions in two languages. ``lessons.json`` defines the
columns and default sizes, ``words/`` the texts. The unusual models that lessons compare are built here from the parts
of ``kotha.model``, which does not contain them.
"""
