"""The worksheet: one attention head as arithmetic on paper, in text, JSON, a page and a live spreadsheet."""
