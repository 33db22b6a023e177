"""One page that writes: the model, its tokenizer and the program that runs them, in one file for any browser."""
