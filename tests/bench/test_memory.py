"""Peak memory: what was held and let go is in it until it is reset."""

import mmap
import os
from pathlib import Path

import pytest

from lope.bench.memory import PeakMemory

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")


def test_the_peak_counts_what_was_let_go() -> None:
    memory = PeakMemory()
    memory.reset()
    before = memory.read()
    size = 64 << 20
    # pages of their own: an allocator would hand out some that it still holds
    with mmap.mmap(-1, size) as held:
        held.write(os.urandom(1 << 16) * (size >> 16))
    after = memory.read()
    assert before is not None
    assert after is not None
    assert after - before > 0.9 * size


def test_a_group_without_processes_has_none() -> None:
    assert PeakMemory(group=2**22 + 1).read() is None
    PeakMemory(group=2**22 + 1).reset()
