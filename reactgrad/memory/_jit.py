"""The register machine of a graph, switched on and off."""

from __future__ import annotations

import warnings
from typing import Any

from reactgrad._errors import MissingExtraWarning, ParameterError
from reactgrad.backend.machine import _activation_loops as _activation_loops  # registers binders
from reactgrad.backend.machine import _compiled as _compiled  # the same
from reactgrad.backend.machine import _picking as _picking  # the same
from reactgrad.backend.machine import _row_loops as _row_loops
from reactgrad.backend.machine import _running as _running
from reactgrad.backend.machine._find import find_driver, find_machine
from reactgrad.backend.machine._registers import Registers
from reactgrad.core._core import Core
from reactgrad.nodes._site import user_level
from reactgrad.scheduler import safe_repr


def set_jit(graph: Core, jit: Any) -> None:
    """Compute small kernels in a row by one compiled call from now on, or not; see ``Graph.jit``."""
    patient = jit is None
    if jit is None:
        jit = find_driver() is not None
    if not isinstance(jit, int) or jit < 0:
        raise ParameterError(
            f"jit={safe_repr(jit):.60}: True, False, None for the default, or how many threads may share the elements."
        )
    machine = find_machine() if jit else None
    with graph._lock:
        graph._scheduler.check_idle()
        graph._scheduler.plans.unbind()
        graph._host.unbind()
        graph._host.registers = None if machine is None else Registers(machine, int(jit), patient)
    if jit and machine is None:
        warnings.warn(
            f"Graph(jit={jit}) needs the compiled driver, for which there was no compiler when reactgrad was "
            "installed, or the package numba, which is not installed. Everything works without, at the "
            'speed of single NumPy calls; pip install "reactgrad[jit]".',
            MissingExtraWarning,
            stacklevel=user_level(),
        )
