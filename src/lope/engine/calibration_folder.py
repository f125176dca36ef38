"""Where calibrations are kept: `$LOPE_HOME/calibrations/<fingerprint>.json`, each whole or absent."""

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

from lope.core import json_reader
from lope.core.errors import RunError, UsageError
from lope.engine.calibration_place import CalibrationPlace
from lope.engine.calibration_record import CalibrationRecord
from lope.models.cache_folder import CacheFolder


@dataclass(frozen=True)
class CalibrationFolder:
    """Reads and writes calibrations by their place."""

    root: Path

    @classmethod
    def default(cls) -> "CalibrationFolder":
        """In the cache folder."""
        return cls(CacheFolder.default().root / "calibrations")

    def path(self, place: CalibrationPlace) -> Path:
        """The file for a place."""
        return self.root / f"{place.fingerprint}.json"

    def read(self, place: CalibrationPlace) -> CalibrationRecord:
        """The calibration for this place. Raises UsageError: one line that says why there is none to use."""
        path = self.path(place)
        if not path.exists():
            raise UsageError(self._absent(place))
        record = _read(path)
        differences = place.differences(record.place)
        if differences:
            raise UsageError(f"{path}: the calibration is not used: it is of {', '.join(differences)}")
        return record

    def write(self, record: CalibrationRecord) -> Path:
        """Save, keeping the drafters that were measured in this place before. Raises RunError where it cannot."""
        path = self.path(record.place)
        try:
            before = self.read(record.place).drafters
        except UsageError:
            before = {}
        record = dataclasses.replace(record, drafters={**before, **record.drafters})
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            partial.write_text(json.dumps(record.document(), indent=1) + "\n", encoding="utf-8")
            partial.replace(path)
        except OSError as error:
            raise RunError(f"{path}: the calibration cannot be written: {error.strerror or error}") from None
        finally:
            if self.root.is_dir():
                partial.unlink(missing_ok=True)
        return path

    def _absent(self, place: CalibrationPlace) -> str:
        """Name the nearest calibration of this model, so that a changed machine or setting is no mystery."""
        others = []
        for path in sorted(self.root.glob("*.json")) if self.root.is_dir() else []:
            try:
                record = _read(path)
            except UsageError:
                continue
            if record.place.model == place.model:
                others.append((len(place.differences(record.place)), path, record.place))
        if not others:
            return "there is no calibration of this model on this machine"
        _, path, other = min(others, key=lambda each: each[0])
        return f"{path}: the calibration is not used: it is of {', '.join(place.differences(other))}"


def _read(path: Path) -> CalibrationRecord:
    try:
        document = json_reader.parsed(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: the calibration cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(f"{path}: the calibration is not used: it is damaged (no JSON)") from None
    try:
        return CalibrationRecord.from_document(document)
    except UsageError as error:
        raise UsageError(f"{path}: the calibration is not used: {error}") from None
