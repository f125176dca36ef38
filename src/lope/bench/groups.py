"""The groups that figures are given for: the six of Spec-Bench (Xia 2024, arXiv:2401.07851), then any others."""

from collections.abc import Iterable

SPEC_BENCH = ("mt_bench", "translation", "summarization", "qa", "math_reasoning", "rag")
MT_BENCH = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")


def group_of(category: str) -> str:
    """The group of a category: MT-bench's eight are one; any other category is a group of its own."""
    return "mt_bench" if category in MT_BENCH else category


def in_order(groups: Iterable[str]) -> list[str]:
    """Each group once: Spec-Bench's in its order, then the others as they come."""
    found = list(dict.fromkeys(groups))
    return [group for group in SPEC_BENCH if group in found] + [group for group in found if group not in SPEC_BENCH]
