"""Measuring: suites of prompts, systems side by side in one interleaved run, results, reports."""
