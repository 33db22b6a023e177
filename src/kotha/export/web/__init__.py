"""Export to one HTML file with the model, its tokenizer and the program that runs them in a browser."""
