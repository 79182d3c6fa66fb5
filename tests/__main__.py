"""The one check command, for developers and CI alike.

``python -m tests`` is quick, and says at its end what it left out. ``python -m tests --rest`` runs
that: what takes long, and a part of the tests in each configuration but the default one.
``python -m tests --full`` runs both. Other arguments go to pytest, and choose the tests themselves.

Every tool runs as a module of the interpreter that runs this file, so a virtual environment needs no
activation and PATH plays no part. All steps run even after a failure. Types are checked while the tests
run, since that takes a minute; what was found is shown below them, right above the verdict.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile

ROOT = Path(__file__).resolve().parents[1]
FULL, REST = "--full", "--rest"

# import-linter has no `__main__`, hence the program; the path is for a checkout that is not installed.
LINT_IMPORTS = (
    "import sys; sys.path.insert(0, 'scheduler'); "
    "from importlinter.cli import lint_imports_command as lint; lint()"
)

# Whoever finishes early takes over tests from others: a few of them are long.
PYTEST = ["-m", "pytest", "--numprocesses=auto", "--dist=worksteal"]

# What was measured to take long is marked `slow`; of long tables the quick run takes a part, the other cases are
# marked `more`; properties get fewer examples. No folder is left out.
FEW = "--hypothesis-profile=few"
QUICK = [FEW, "-m", "not slow and not more"]
LONG = ["-m", "slow or more or hypothesis"]  # Hypothesis marks properties itself
LEFT_OUT = f"""
Left out: the tests marked slow, five of six cases of each long table of tests, and examples of each
property, the configurations of tests/README.md but the default one. This runs them:
python -m tests {REST}"""

# Nothing may change in these; they run what depends on it most: all properties with few examples, and else what the
# quick run takes. Without these options and folders: all tests, as before a release.
PROPERTIES_TOO = [FEW, "-m", "(not slow and not more) or hypothesis"]
CONFIGURATIONS: dict[str, list[str]] = {
    "all arrays by blocks": ["--strips=always", "tests/backend", "tests/ops"],
    "no blocks, no fusion, no plans": [
        "--strips=never",
        "--no-plans",
        "--no-fusion",
        "tests/laws",
        "tests/ops",
    ],
    "no compiled driver": ["--no-driver", "tests/reactive", "tests/backend", "tests/autodiff"],
    "marks erased before each read": [
        "--distrust",
        *("tests/reactive", "tests/change", "tests/reading", "tests/observing", "tests/memory"),
        *("tests/graph", "tests/building"),
    ],
}

TYPES = "basedpyright"
STATIC: dict[str, list[str]] = {
    "ruff format": ["-m", "ruff", "format", "--check", "."],
    "ruff check": ["-m", "ruff", "check", "."],
    TYPES: ["-m", "basedpyright", "--pythonpath", sys.executable],
    "lint-imports": ["-c", LINT_IMPORTS, "--no-logo", "--no-cache"],
}


def steps(asked: str | None, chosen: list[str]) -> dict[str, list[str]]:
    """Return the command of each step, in order; `chosen` are arguments for pytest."""
    if chosen:  # a part that was asked for is all that is wanted
        return {**STATIC, "pytest": [*PYTEST, *chosen]}
    quick = {**STATIC, "pytest, quick": [*PYTEST, *QUICK]}
    if asked is None:
        return quick
    rest = {
        f"pytest, {name}": [*PYTEST, *PROPERTIES_TOO, *options]
        for name, options in CONFIGURATIONS.items()
    }
    rest["pytest, what takes long"] = [*PYTEST, *LONG]
    return rest if asked == REST else {**quick, **rest}


def main() -> int:
    asked = next((one for one in (FULL, REST) if one in sys.argv[1:]), None)
    chosen = [one for one in sys.argv[1:] if one not in (FULL, REST)]
    failed: list[str] = []
    commands = steps(asked, chosen)
    count = len(commands)
    # Hundreds of processes import the same modules: compiled once, they start in a third of the time.
    env = {name: one for name, one in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    types = commands.pop(TYPES, None)
    with TemporaryFile("w+", encoding="utf-8") as found:
        beside = None
        if types is not None:
            beside = subprocess.Popen(
                [sys.executable, *types], cwd=ROOT, env=env, stdout=found, stderr=found
            )
        for name, command in commands.items():
            print(f"\n--- {name}", flush=True)
            if subprocess.run(
                [sys.executable, *command], cwd=ROOT, env=env, check=False
            ).returncode:
                failed.append(name)
        if beside is not None:
            if beside.wait():
                failed.append(TYPES)
            found.seek(0)
            print(f"\n--- {TYPES}\n{found.read().rstrip()}", flush=True)
    if asked is None and not chosen:
        print(LEFT_OUT)
    print(f"\nFAILED: {', '.join(failed)}" if failed else f"\nOK: all {count} checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
