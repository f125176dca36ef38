"""Does a configuration answer as well as the reference? Perplexity, retrieval from long prompts, tasks with answers."""
