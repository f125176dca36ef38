"""Cache folders for tests: each its own, but for the kernels, which are built once for all."""

from pathlib import Path

from lope.models.cache_folder import CacheFolder

_KERNELS = CacheFolder.default().root / "kernels"


def fresh_home(path: Path) -> str:
    """A new cache folder there; what LOPE_HOME must say."""
    _KERNELS.mkdir(parents=True, exist_ok=True)
    path.mkdir(parents=True, exist_ok=True)
    (path / "kernels").symlink_to(_KERNELS, target_is_directory=True)
    return str(path)
