"""Models: weights, forward pass and cache, loading, tokenizer and chat template. Knows nothing of guessing."""
