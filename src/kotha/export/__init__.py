"""Export to and import from other formats; each conversion is verified."""
