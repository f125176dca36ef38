"""Token sequences that have come before, by digests that are the same in every process."""

import hashlib
from array import array
from collections.abc import Iterable


class Seen:
    """A set of token sequences, 16 bytes each (BLAKE2b: no two will meet by chance)."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def add(self, tokens: Iterable[int]) -> bool:
        """Whether it is new; from now on it is not."""
        digest = hashlib.blake2b(array("q", tokens).tobytes(), digest_size=16).digest()
        if digest in self._digests:
            return False
        self._digests.add(digest)
        return True
