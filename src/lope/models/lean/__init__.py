"""The lean decoder: one forward pass for the Llama family, packed over many sequences with trees."""
