"""The seven pieces of a GPT that a learner writes, and the check that compares each with ours.

``references.py`` has our pieces, as short as a learner's. ``mistakes.json`` has one table per piece: a mistake is an
edit of the source of our piece, so that the wrong variant can be built and compared with what the learner wrote.
"""
