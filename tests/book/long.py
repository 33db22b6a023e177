"""Chapters that train for more than a few seconds: see test_languages_agree.py."""

LONG = ("06-gpt", "07-training", "09-family", "10-using", "11-limits")
