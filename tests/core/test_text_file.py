"""Lines of files as they are; what cannot be read is one line."""

import gzip
from pathlib import Path

import pytest

from lope.core.errors import UsageError
from lope.core.text_file import text_lines


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_lines_come_as_they_are(tmp_path: Path, name: str) -> None:
    content = "one\r\ntwo\n\nlast \u00e9"
    packed = gzip.compress(content.encode()) if name.endswith(".gz") else content.encode()
    (tmp_path / name).write_bytes(packed)
    assert list(text_lines(tmp_path / name)) == ["one\r\n", "two\n", "\n", "last \u00e9"]


def _damaged(tmp_path: Path) -> Path:
    path = tmp_path / "damaged.gz"
    content = bytearray(gzip.compress(bytes(range(1, 128)) * 50))
    for place in range(20, len(content) - 8):
        content[place] ^= 0x55
    path.write_bytes(content)
    return path


def _cut(tmp_path: Path) -> Path:
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(b"a line" * 100)[:-9])
    return path


def _binary(tmp_path: Path) -> Path:
    path = tmp_path / "binary.txt"
    path.write_bytes(b"\xff\xfe\x00")
    return path


def _absent(tmp_path: Path) -> Path:
    return tmp_path / "absent.txt"


@pytest.mark.parametrize("made", [_damaged, _cut, _binary, _absent], ids=lambda made: made.__name__)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, made: object) -> None:
    assert callable(made)
    path = made(tmp_path)
    with pytest.raises(UsageError) as caught:
        list(text_lines(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
