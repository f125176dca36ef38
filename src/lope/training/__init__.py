"""Drafters are taught here: what a target says is written down, a drafter learns it, and is packed to be shipped."""
