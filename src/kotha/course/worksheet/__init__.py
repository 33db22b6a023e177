"""Worksheets: one attention head as arithmetic, in text, JSON, a page and a spreadsheet with live formulas."""
