"""How weights move: optimizers, the learning rate over time, averages."""
