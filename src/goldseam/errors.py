"""Everything Goldseam raises or warns, in one tree.

::

    GoldseamError
    ├── InputError (ValueError)              a table, array or value that cannot be used
    │   └── SchemaError                      an incoming table contradicts what the model learnt
    │       └── MissingColumnError (KeyError)    a column the model needs is not there
    ├── ParameterError (ValueError)          a setting outside its limits
    ├── ModelFileError (ValueError)          a model file that is damaged, foreign or too new
    │   ├── ModelFileNotFoundError (FileNotFoundError)  a model file, or the folder it is to go to, that is not there
    │   └── ModelFileIsFolderError (IsADirectoryError)  a folder where a model file is needed
    ├── DatasetNotFoundError (FileNotFoundError)  a data set that is not on this machine
    └── MissingDependencyError (ImportError) an optional library that is not installed

    GoldseamWarning (UserWarning)
    ├── CalibrationWarning                   a promised rate that the reference is too small to keep
    ├── ConvergenceWarning                   an iteration that ended before it settled
    └── DataWarning                          data that are usable, but not as the user may think

Every message says what is wrong, the limit, the value got, and a hint. Each error is a builtin as well, so that
callers need not know this module.
"""

from __future__ import annotations

import sys
import warnings

__all__ = [
    "CalibrationWarning",
    "ConvergenceWarning",
    "DataWarning",
    "DatasetNotFoundError",
    "GoldseamError",
    "GoldseamWarning",
    "InputError",
    "MissingColumnError",
    "MissingDependencyError",
    "ModelFileError",
    "ModelFileIsFolderError",
    "ModelFileNotFoundError",
    "ParameterError",
    "SchemaError",
    "warn",
]


class GoldseamError(Exception):
    """Any error that Goldseam raises on purpose."""


class InputError(GoldseamError, ValueError):
    """A table, array or value that cannot be used."""


class SchemaError(InputError):
    """An incoming table contradicts what the model learnt of the reference."""


class MissingColumnError(SchemaError, KeyError):
    """A column the model needs is not in the incoming table."""

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return str(self.args[0])


class ParameterError(GoldseamError, ValueError):
    """A setting outside its limits."""


class ModelFileError(GoldseamError, ValueError):
    """A model file that is damaged, foreign or too new."""


class ModelFileNotFoundError(ModelFileError, FileNotFoundError):
    """A model file, or the folder it is to be written to, that is not there."""


class ModelFileIsFolderError(ModelFileError, IsADirectoryError):
    """A folder where a model file is needed."""


class DatasetNotFoundError(GoldseamError, FileNotFoundError):
    """A data set that is not on this machine."""


class MissingDependencyError(GoldseamError, ImportError):
    """An optional library that is not installed."""


class GoldseamWarning(UserWarning):
    """Any warning that Goldseam gives on purpose."""


class CalibrationWarning(GoldseamWarning):
    """A promised rate that the reference is too small to keep."""


class ConvergenceWarning(GoldseamWarning):
    """An iteration that ended before it settled."""


class DataWarning(GoldseamWarning):
    """Data that are usable, but not as the user may think."""


def warn(message: str, category: type[GoldseamWarning]) -> None:
    """Warn at the line that called Goldseam, however deep inside it the reason was found."""
    frame, level = sys._getframe().f_back, 2
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "goldseam":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
