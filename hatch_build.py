"""Compile the driver of the register machine and the flat programs of networks when the package is built, if that is
possible.

Without a compiler the package is pure Python, and does the same at the speed of single NumPy calls.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = ("reactgrad/backend/machine/_driver.c", "reactgrad/neat/_flat.c")
# The stable interface of CPython 3.11, the first version that the package runs on.
PYTHON, MACRO = "cp311", ("Py_LIMITED_API", "0x030B0000")


class DriverHook(BuildHookInterface[Any]):
    """Adds what was compiled to a wheel, and puts it beside its source in an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._folder = tempfile.mkdtemp(prefix="reactgrad-driver-")
        try:
            built = [compiled(Path(self.root), one, self._folder) for one in SOURCES]
        except Exception as error:  # whatever a compiler may do: the package works without
            self.app.display_warning(f"loops were not compiled, nothing depends on them: {error}")
            return
        names = [
            str(Path(source).with_name(one.name))
            for source, one in zip(SOURCES, built, strict=True)
        ]
        if version == "editable":
            for one, name in zip(built, names, strict=True):
                shutil.copyfile(one, Path(self.root, name))
            return
        build_data["force_include"].update(
            {str(one): name for one, name in zip(built, names, strict=True)}
        )
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"{PYTHON}-abi3-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def compiled(root: Path, source: str, folder: str) -> Path:
    """Return the path of the module compiled from a source, which lies in `folder`."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise NotImplementedError("it needs the stable interface of CPython")
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    flags = (
        []
        if sys.platform == "win32"
        else ["-O3", "-g0", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno"]
    )
    extension = Extension(
        Path(source).stem,
        [str(root / source)],
        define_macros=[MACRO],
        extra_compile_args=flags,
        py_limited_api=True,
    )
    command = build_ext(Distribution({"ext_modules": [extension]}))
    command.build_lib = command.build_temp = folder
    command.ensure_finalized()
    command.run()
    (built,) = map(Path, command.get_outputs())
    return built
