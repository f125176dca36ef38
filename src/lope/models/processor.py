"""The name of the processor, for everything that is measured or built on it."""

import os
import platform
from pathlib import Path

import torch

_CPUINFO = Path("/proc/cpuinfo")


def processor() -> str:
    """The processor's model name and the widest instructions that torch uses on it."""
    name = _line("model name") or platform.processor() or platform.machine()
    return f"{name} {torch.backends.cpu.get_cpu_capability()} x{os.cpu_count()}"


def _line(key: str) -> str | None:
    lines = _CPUINFO.read_text().splitlines() if _CPUINFO.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), None)
