"""The book: chapters in plain Markdown that are run and checked, and built into a site and notebooks.

``python -m scripts.book check`` runs all chapters and checks the printed numbers and the numbers in the prose;
``update`` inserts the current output of the blocks and redraws the pictures; ``notebooks`` writes the notebooks;
``build`` builds the site in both languages, in strict mode and without a network.
"""
