"""One exception tree: everything a user can do wrong, or a file can be wrong with, is a LopeError.

LopeError(ValueError)
 ├─ UsageError                 what was asked cannot be done; the message says what can
 │   ├─ UnknownPartError       no part of that name in the room
 │   └─ SettingError           a setting that is unknown, of the wrong type or out of range
 │       └─ NoTokenLeftError   masks and penalties that forbid every token
 ├─ ModelError                 a model, tokenizer or template that cannot be used
 └─ RunError                   a run that began and could not go on
     ├─ UsedUpError            no prompt is left to answer; what was answered is kept
     └─ DraftError             a drafter that raised; the target is unharmed
"""


class LopeError(ValueError):
    """Base of every error that lope raises for its users; `exit_code` is what the command line returns."""

    exit_code = 2


class UsageError(LopeError):
    """What was asked cannot be done; the message says what can."""


class UnknownPartError(UsageError):
    """No part of that name in the room."""


class SettingError(UsageError):
    """A setting that is unknown, of the wrong type or out of range."""


class NoTokenLeftError(SettingError):
    """Masks and penalties that forbid every token there is to choose from."""


class ModelError(LopeError):
    """A model file, tokenizer or template that cannot be used."""


class RunError(LopeError):
    """A run that began and could not go on."""

    exit_code = 1


class UsedUpError(RunError):
    """No prompt is left to answer; what was answered is kept."""


class DraftError(RunError):
    """A drafter that raised; the target's session is unharmed."""
