"""Export to and import from Hugging Face folders."""
