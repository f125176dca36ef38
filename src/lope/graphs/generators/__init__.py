"""Families of synthetic and recorded graphs; the table is in lope.graphs."""
