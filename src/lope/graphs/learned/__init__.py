"""Learned priorities: Topoformer, one-shot sampling and masked sequential decoding, REINFORCE, shipped weights."""
