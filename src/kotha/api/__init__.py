"""What stands behind ``import kotha``: from text to data, from data to a run, and a model to work with."""
