r"""Lists written with commas, `a=1,b=2`, whose values may hold commas too: those are written `\,`."""

import re


def divided(text: str) -> list[str]:
    r"""What stands between the commas of a list, as it is written there."""
    return re.split(r"(?<!\\),", text)


def within(value: str) -> str:
    r"""A value as it is written in a list."""
    return value.replace(",", r"\,")


def read(written: str) -> str:
    r"""The value that is written so in a list."""
    return written.replace(r"\,", ",")
