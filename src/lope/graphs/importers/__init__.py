"""Readers of model files: views merged with their storage, weights apart; the table is in lope.graphs."""
