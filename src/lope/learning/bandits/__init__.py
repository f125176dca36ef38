"""Bandits: pick one of K arms again and again, learn from rewards in [0, 1]."""
