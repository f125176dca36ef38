"""Computation graphs: cost models, generators, importers, orders, schedulers, learned priorities."""

from lope.core.registry import Room

orders = Room("order", {})
generators = Room("generator", {})
importers = Room("importer", {})
