"""What is read from a disk and written to it: looks, tables, places, and files that are whole or not at all.

It imports nothing itself: ``locks.py``, on which the last of these stands, asks the first.
"""
