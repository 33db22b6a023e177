"""The book: chapters that are plain Markdown, run as they stand, and become a site and notebooks.

``python -m scripts.book check``: run every chapter, hold every printed number and every number of the prose;
``update``: insert the current output of the blocks and redraw the pictures; ``notebooks``: write the notebooks;
``build``: the site in both languages, strictly, without a network.
"""
