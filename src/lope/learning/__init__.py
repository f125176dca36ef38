"""Learners that know no language: bandits, TSDE, PSRL-LQ, and the environments they are measured on."""
