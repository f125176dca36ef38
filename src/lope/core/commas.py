r"""Lists written with commas, `a=1,b=2`, whose values may hold commas too: those are written `\,`, and `\` as `\\`.

A backslash before anything else is itself.
"""

import re


def divided(text: str) -> list[str]:
    r"""What stands between the commas of a list, as it is written there."""
    pieces = [""]
    for mark in re.findall(r"\\.|.", text, re.DOTALL):
        if mark == ",":
            pieces.append("")
        else:
            pieces[-1] += mark
    return pieces


def within(value: str) -> str:
    r"""A value as it is written in a list."""
    return re.sub(r"[\\,]", r"\\\g<0>", value)


def read(written: str) -> str:
    r"""The value that is written so in a list."""
    return re.sub(r"\\([\\,])", r"\1", written)
