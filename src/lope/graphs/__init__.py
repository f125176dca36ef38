"""Computation graphs: cost models, generators, importers, orders, schedulers, learned priorities."""
