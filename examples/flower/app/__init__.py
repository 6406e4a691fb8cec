"""MNIST on clients whose uploads fail."""
