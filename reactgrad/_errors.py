"""Errors and warnings of the array and gradient layers.

Each derives from ``ReactgradError`` and from the builtin that a user would catch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.scheduler import BlockError as BlockError
from reactgrad.scheduler import BusyError as BusyError
from reactgrad.scheduler import Cancelled as Cancelled
from reactgrad.scheduler import CycleError as CycleError
from reactgrad.scheduler import ExecutorError as ExecutorError
from reactgrad.scheduler import ReactgradError as ReactgradError


class ShapeError(ReactgradError, ValueError):
    """Shapes that do not fit an op or a declared leaf."""


class LinAlgError(ReactgradError, np.linalg.LinAlgError):
    """A matrix that has no such decomposition, inverse or solution."""


class MatrixShapeError(LinAlgError, ShapeError):
    """An operand that is no matrix, or not a square one, where linear algebra needs one."""


class DTypeError(ReactgradError, TypeError):
    """A dtype or kind of value that an op or leaf cannot take."""


class ParameterError(DTypeError, ValueError):
    """A value that an argument cannot have: an unknown word, a number out of range, or two that exclude each other."""


class ImplicitValueError(DTypeError):
    """A live node was used where Python, NumPy or another library takes a plain number or array."""


class IndexingError(ReactgradError, IndexError):
    """An index that a value does not have."""


class DeviceError(ReactgradError, ValueError):
    """Operands on different devices, or no kernel for one."""


class GraphError(ReactgradError, ValueError):
    """A Var of another graph, or a name that does not fit."""


class UnsetError(ReactgradError, ValueError):
    """An input was read before it got a value."""


class SetError(ReactgradError, TypeError):
    """A value was given to a node whose value cannot be set."""


class EditError(ReactgradError, ValueError):
    """An edit would leave the graph without a meaning."""


class GradientError(ReactgradError, RuntimeError):
    """A gradient was requested that does not exist."""


class SeedError(ShapeError):
    """An output would get a shape that does not fit the gradient passed back from it.

    Attributes
    ----------
    output : Var
    """

    __module__, __qualname__ = "reactgrad", "ShapeError"  # the class that users know it as

    def __init__(self, message: str, output: Any) -> None:
        super().__init__(message)
        self.output = output

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled without its output, which is a node of this process.
        return ShapeError, self.args, {k: v for k, v in vars(self).items() if k != "output"}


class OutdatedRuleError(GradientError):
    """A gradient was built for something that no longer holds, such as a value left on ``ctx``."""


class AnomalyError(ReactgradError, FloatingPointError):
    """A node computed a NaN or an infinity inside of ``rg.detect_anomaly()``."""


class MutationError(ReactgradError, RuntimeError):
    """A value changed without a new version; found inside of ``rg.detect_anomaly()``."""


class SaveError(ReactgradError, ValueError):
    """A graph holds something that cannot be loaded from any file."""


class LoadError(ReactgradError, ValueError):
    """A file is damaged, contradicts itself, or needs something that it may not use."""


class VizError(ReactgradError, ValueError):
    """A picture cannot be drawn, or would be too large to read."""


class MissingExtraError(ReactgradError, ImportError):
    """An optional package is not installed."""


class ReactgradWarning(UserWarning):
    """Base of every warning of reactgrad."""


class BudgetWarning(ReactgradWarning):
    """A memory budget is smaller than the values that have to be in memory at once."""


class WrapWarning(ReactgradWarning, RuntimeWarning):
    """The whole number of a node has left its dtype, such as int64, and has wrapped around."""


class ImplicitValueWarning(ReactgradWarning):
    """A value left the graph by an implicit conversion, where ``implicit_values("warn")`` holds."""


class MissingExtraWarning(ReactgradWarning):
    """An optional package is missing, and its work is done without it, more slowly."""


class GradModeWarning(ReactgradWarning):
    """Gradients were requested where they are switched off."""
