"""Lessons: the course's questions, each answered by small models that are trained on the spot and measured.

Ablation: the same small model with its positions, its causal mask or its residuals and without, with more heads or
fewer; an LSTM and a CNN beside it. A lesson is a ``LessonPlan``, of which ``MeasuredLesson`` makes a ``LessonResult``:
conditions, their figures, and a reading in two languages. ``lessons.json`` has its columns and the sizes that it asks
for unless somebody asks for others, ``words/`` what it says. The odd models that a lesson compares are built from the
family's own parts, here and nowhere else: ``kotha.model`` knows nothing of them.
"""
