"""Schedules: list scheduling on machines, the priorities that drive it, bounds, CP-SAT and a picture."""
