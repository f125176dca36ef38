"""Orders that run a graph in little memory; the table is in lope.graphs."""
