"""`python -m lope.bench.peers.environment [NAME...]`: the virtual environments of the peers, built or found ready."""

import os
import shutil
import subprocess
import sys
import time
import venv

from lope.bench.peers import PEERS
from lope.bench.peers.kind import PeerKind
from lope.core.errors import LopeError, RunError, UnknownPartError


class Environment:
    """The environment of one peer: whole, with a file `ready` in it, or as good as absent."""

    def __init__(self, kind: PeerKind) -> None:
        self.kind = kind

    def build(self) -> str:
        """Make it where it is not ready; returns one line of what was done. Raises RunError with pip's last words."""
        home = self.kind.home
        if (home / "ready").exists():
            return f"{self.kind.name}: ready in {home}"
        if self.kind.python is not None:
            return f"{self.kind.name}: installed beside lope already"
        began = time.perf_counter()
        if not (home / "bin" / "python").exists():
            shutil.rmtree(home, ignore_errors=True)
            venv.create(home, with_pip=True)
        self._pip("install", *self.kind.requirements)
        if self.kind.unwanted:
            self._pip("uninstall", "--yes", *self.kind.unwanted)
        self._run("-c", f"import {self.kind.module}")
        (home / "ready").write_text("", encoding="utf-8")
        return f"{self.kind.name}: built in {home} in {time.perf_counter() - began:.0f} s"

    def _pip(self, *words: str) -> None:
        self._run("-m", "pip", words[0], "--quiet", "--disable-pip-version-check", *words[1:])

    def _run(self, *words: str) -> None:
        settings = {**self.kind.build, **os.environ}
        python = self.kind.home / "bin" / "python"
        done = subprocess.run([python, *words], env=settings, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
            raise RunError(f"{self.kind.name}: {' '.join(words[:3])} failed: {said[-1]}")


def main(names: list[str]) -> int:
    """Build the named environments, or all; one that fails does not keep the others from it. Returns the exit code."""
    failed = 0
    for name in names or list(PEERS):
        try:
            if name not in PEERS:
                raise UnknownPartError(f"no peer {name!r} (there are: {', '.join(PEERS)})")
            words = Environment(PEERS[name]).build()
        except LopeError as error:
            failed, words = 1, f"lope: {error}"
        sys.stdout.write(words + "\n")
        sys.stdout.flush()
    return failed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
