"""The one check command, for developers and CI alike: ``python -m tests [arguments for pytest]``.

Every tool runs as a module of the interpreter that runs this file, so a virtual environment needs no
activation and PATH plays no part. All steps run even after a failure. pytest comes last: its closing
line stands right above the verdict.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# import-linter has no `__main__`, hence the program; the path is for a checkout that is not installed.
LINT_IMPORTS = (
    "import sys; sys.path.insert(0, 'scheduler'); "
    "from importlinter.cli import lint_imports_command as lint; lint()"
)

# Whoever finishes early takes over tests from others: a few of them are long.
PYTEST = ["-m", "pytest", "--numprocesses=auto", "--dist=worksteal"]

# Nothing may change in these; they run what depends on it most, with few of Hypothesis' examples. Without
# `--hypothesis-profile=few` and these folders: all tests, as before a release.
FEW = ["--hypothesis-profile=few", "--deselect=tests/scheduler/test_deep.py"]
CONFIGURATIONS: dict[str, list[str]] = {
    "all arrays by blocks": ["--strips=always", "tests/backend", "tests/ops"],
    "no blocks, no fusion, no plans": [
        "--strips=never",
        "--no-plans",
        "--no-fusion",
        "tests/laws",
        "tests/ops",
    ],
    "marks erased before each read": ["--distrust", "tests/reactive"],
}

STEPS: dict[str, list[str]] = {
    "ruff format": ["-m", "ruff", "format", "--check", "."],
    "ruff check": ["-m", "ruff", "check", "."],
    "basedpyright": ["-m", "basedpyright", "--pythonpath", sys.executable],
    "lint-imports": ["-c", LINT_IMPORTS, "--no-logo", "--no-cache"],
    # A part that was asked for is all that is wanted.
    **{
        f"pytest, {name}": [*PYTEST, *FEW, *options]
        for name, options in CONFIGURATIONS.items()
        if not sys.argv[1:]
    },
    "pytest": [*PYTEST, *sys.argv[1:]],
}


def main() -> int:
    failed: list[str] = []
    for name, command in STEPS.items():
        print(f"\n--- {name}", flush=True)
        if subprocess.run([sys.executable, *command], cwd=ROOT, check=False).returncode:
            failed.append(name)
    print(f"\nFAILED: {', '.join(failed)}" if failed else f"\nOK: all {len(STEPS)} checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
