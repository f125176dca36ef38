"""Finds the drafter folder that a setting names, or the one that is shipped, and checks that it fits the target."""

from typing import TYPE_CHECKING

from lope.core import commas
from lope.core.errors import UsageError
from lope.drafters.shipped_drafters import differences, shipped
from lope.models.drafter_folder import DrafterFolder

if TYPE_CHECKING:
    from lope.models.loaded import LoadedModel


def trained_drafter(kind: str, path: str, target: "LoadedModel") -> DrafterFolder:
    """The drafter of this kind in `path`, or where that is empty the shipped one.

    Raises UsageError where none is shipped and where it is of another kind or made for another target, ModelError for
    a folder that cannot be read.
    """
    place = path or shipped(kind, target)
    if place is None:
        raise UsageError(
            f"no drafter is shipped for {target.name}: name the folder of one ({kind}:path=DIR; lope drafter train "
            "makes them)"
        )
    folder = DrafterFolder.read(place)
    about = folder.about
    if about.kind != kind:
        written = commas.within(str(place))
        raise UsageError(f"{place}: holds a drafter of kind {about.kind}: write {about.kind}:path={written}")
    for difference in differences(about.target, target):
        raise UsageError(f"{place}: the drafter was made for {difference}")
    return folder
