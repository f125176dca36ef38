"""Where and with what a run was made: the facts that every results file carries."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from lope.version import __version__


def machine() -> dict[str, Any]:
    """Processor, cores, memory, system: what must be the same for rows to stand in one file."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """Of lope, Python and the packages that decide about speed."""
    found = {"lope": __version__, "python": platform.python_version(), "torch": torch.__version__}
    for package in ("numpy", "tokenizers", "transformers"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def session() -> dict[str, Any]:
    """The start of one process's work on a run: time, commit, how busy the machine was."""
    load = os.getloadavg() if hasattr(os, "getloadavg") else (0.0, 0.0, 0.0)
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "load_average": [round(value, 2) for value in load],
        "versions": versions(),
        "notes": [],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def _commit() -> str | None:
    """The commit of the checkout that lope runs from, `+` behind it where files differ from it; None outside of one."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(here.parent))
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None
