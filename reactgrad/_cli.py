"""The command line: ``reactgrad demo``, ``reactgrad explore`` and ``reactgrad doctor``.

Exit codes: 0 success; 1 a check of the demo failed, or the output could not be written; 2 bad input
or usage; 130 interrupted; 141 the reader of stdout closed it.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import platform
import sys
import textwrap
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Any

from . import __version__

FINE, FAILED, USAGE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141

# Optional packages by the name of their import: the extra that brings each, and what it is for.
_OPTIONAL = {
    "anywidget": ("jupyter", "the explorer in notebooks"),
    "cupy": ("cuda13", "arrays on GPUs"),
    "distributed": ("farm", "scenarios on a cluster"),
    "matplotlib": ("plot", "rg.plot"),
    "mpi4py": ("distributed", "ranks of MPI"),
    "neat": ("neat", "networks that evolve"),
    "numba": ("jit", "compiled loops"),
    "onnx": ("onnx", "models of ONNX"),
    "openpyxl": ("excel", "workbooks of Excel"),
    "pandas": ("tables", "DataFrames"),
    "pygraphviz": ("viz", "pictures of graphs"),
    "safetensors": ("io", "files of graphs"),
    "tensorboard": ("tensorboard", "logs for TensorBoard"),
    "threadpoolctl": ("threads", "rg.set_num_threads also for BLAS"),
    "uvicorn": ("serve", "reactgrad explore"),
}
_WITHOUT_AN_EXTRA = ("scipy", "ipywidgets")
_THREAD_VARIABLES = (
    "REACTGRAD_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
)
_GIB = 2**30
# Stories of training by name: what their length is counted in, and a line of help.
_TRAINING = {
    "learn": ("epochs", "classify digits; what do one label, weight, layer, rate change?"),
    "multitask": ("epochs", "two tasks share a trunk; a third goes on with it, frozen, from ONNX"),
    "gan": ("epochs", "generate digits: a generator and a critic, an optimiser each"),
    "ppo": ("rounds", "balance a pole by proximal policy optimisation: actor and critic"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit code.
    """
    try:
        try:
            code = _run(argv)
        except SystemExit as leave:  # how argparse ends after --help and after bad usage
            code = leave.code if isinstance(leave.code, int) else FINE
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("reactgrad: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return PIPE_CLOSED
    except OSError as error:
        _discard_stdout()
        print(f"reactgrad: error: {error}", file=sys.stderr)
        return FAILED


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return USAGE
    return arguments.run(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="reactgrad",
        allow_abbrev=False,
        description="Change one number; recompute only what it touches: values and gradients.",
    )
    parser.add_argument("--version", action="version", version=f"reactgrad {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")

    demo = commands.add_parser(
        "demo",
        allow_abbrev=False,
        help="reprice a real book of 10,000 options by changing one number",
        description="Price a book of European options on real stocks, change one number at a time, "
        "and show what ran, how long it took, and that the result is exact.",
    )
    demo.add_argument(
        "--data",
        metavar="FILE",
        help="your own prices: a CSV file with the columns symbol,date,price "
        "(default: five US stocks, monthly, 2000 to 2010)",
    )
    demo.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="seeds the quantities held (default: 0)"
    )
    demo.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    demo.add_argument(
        "--html",
        metavar="FILE",
        help="write the runs as a page to click through instead, one file that opens from disk "
        "(needs the extra viz)",
    )
    demo.set_defaults(run=_demo)
    stories = demo.add_subparsers(dest="story", metavar="story")
    evolution = stories.add_parser(
        "neat",
        allow_abbrev=False,
        help="evolve XOR with neat-python, computing each neuron once (needs the extra neat)",
        description="Evolve networks that compute XOR, with neat-python and the settings of its example, "
        "and show evaluations and hidden neurons beside Stanley and Miikkulainen (2002), and how many "
        "neurons were computed.",
    )
    evolution.add_argument(
        "--seeds",
        type=_count,
        default=30,
        metavar="N",
        help="how many populations, of the seeds 0, 1, ... (default: 30)",
    )
    evolution.add_argument(
        "--picture",
        metavar="FILE",
        default="reactgrad-neat.svg",
        help="where the picture goes, which ends in .svg (default: reactgrad-neat.svg)",
    )
    evolution.set_defaults(run=_evolution)
    learning = stories.add_parser(
        "neat-data",
        allow_abbrev=False,
        help="learn real data by evolution, by gradient, and by both (needs the extras neat, data)",
        description="Classify a data set of scikit-learn with networks of neat-python: by evolution alone, "
        "by gradient alone, and by evolution whose best genomes learn by gradient.",
    )
    learning.add_argument(
        "--data", choices=("breast-cancer", "wine"), default="wine", help="the data (default: wine)"
    )
    learning.add_argument(
        "--seeds",
        type=_count,
        default=3,
        metavar="N",
        help="how many populations, of the seeds 0, 1, ... (default: 3)",
    )
    learning.set_defaults(run=_learning)
    training = [_training_parser(stories, name) for name in _TRAINING]
    # SUPPRESS: without a `--json` of its own a story keeps the one of `demo --json neat`.
    for story in (evolution, learning, *training):
        story.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="print JSON"
        )

    explore = commands.add_parser(
        "explore",
        allow_abbrev=False,
        help="show the graph of a Python file in a browser, and again whenever the file is saved",
        description="Run a Python file, and serve the explorer of its graph to browsers of this machine, at an "
        "address with a secret token. The file is run again when it is saved; values that were set stay. "
        "Needs the extra serve.",
    )
    explore.add_argument(
        "model",
        metavar="FILE[:NAME]",
        help="the file, and the name of a Graph, a Var, or a function that returns one "
        "(default: the file's one graph)",
    )
    explore.add_argument(
        "--port", type=_port, default=0, metavar="N", help="the port (default: one that is free)"
    )
    explore.add_argument("--open", action="store_true", help="open the page in your browser")
    explore.set_defaults(run=_explore)

    doctor = commands.add_parser(
        "doctor",
        allow_abbrev=False,
        help="show versions, backend, GPU and threads, and which extra brings what is absent",
        description="Show what this installation consists of: paste it into a bug report.",
    )
    doctor.set_defaults(run=_doctor)
    return parser


def _training_parser(stories: Any, name: str) -> argparse.ArgumentParser:
    """Add a story of training, and return its parser."""
    unit, line = _TRAINING[name]
    line = f"{line} (needs the extra demo)"
    story = stories.add_parser(name, allow_abbrev=False, help=line, description=line.capitalize())
    story.add_argument(
        f"--{unit}",
        type=_count,
        dest="length",
        metavar="N",
        help=f"how many {unit} (default: as many as it takes)",
    )
    # SUPPRESS: see `--json`.
    story.add_argument(
        "--seed",
        type=_seed,
        default=argparse.SUPPRESS,
        metavar="N",
        help="seeds all that is random (default: 0)",
    )
    story.add_argument(
        "--picture",
        metavar="FILE",
        help=f"where the picture goes: .png, .svg or .pdf (default: reactgrad-{name}.png)",
    )
    story.set_defaults(run=_training)
    return story


def _demo(arguments: argparse.Namespace) -> int:
    from . import MissingExtraError, demo

    try:
        if arguments.data is None:
            stocks, source = demo.embedded_stocks(), demo.EMBEDDED
        else:
            stocks, source = demo.stocks_from_file(arguments.data), arguments.data
    except demo.PriceFileError as error:
        print(f"reactgrad demo: error: {error}", file=sys.stderr)
        return USAGE
    if arguments.html is not None:
        try:
            demo.write_page(stocks, arguments.seed, arguments.html)
        except (MissingExtraError, OSError) as error:
            print(f"reactgrad demo: error: {error}", file=sys.stderr)
            return USAGE if isinstance(error, MissingExtraError) else FAILED
        _print(f"wrote {arguments.html}: open it in a browser")
        return FINE
    with demo.Progress(demo.STEPS) as progress:
        story = demo.tell(stocks, source, arguments.seed, progress.step)
    _print(demo.as_json(story) if arguments.json else demo.as_text(story))
    if not story.holds:
        print("reactgrad demo: error: a check failed; please report it", file=sys.stderr)
        return FAILED
    return FINE


def _evolution(arguments: argparse.Namespace) -> int:
    from . import MissingExtraError, demo

    picture = arguments.picture
    if not picture.endswith(".svg"):
        print(f"reactgrad demo neat: error: {picture}: a picture ends in .svg", file=sys.stderr)
        return USAGE
    try:
        with demo.Progress(arguments.seeds) as progress:
            found = demo.evolve(arguments.seeds, progress.step, progress.tell)
    except MissingExtraError as error:
        print(f"reactgrad demo neat: error: {error}", file=sys.stderr)
        return USAGE
    _print(demo.evolution_as_json(found) if arguments.json else demo.evolution_as_text(found))
    title = f"XOR, evolved: seed {found.history.seed}, {len(found.history.best)} generations"
    try:
        with open(picture, "w", encoding="utf-8") as file:
            file.write(demo.history_as_svg(found.history, title))
    except OSError as error:
        print(f"reactgrad demo neat: error: {error}", file=sys.stderr)
        return FAILED
    # The document on stdout stays one document.
    print(f"picture: {picture}", file=sys.stderr if arguments.json else sys.stdout)
    if not found.holds:
        print("reactgrad demo neat: error: a check failed; please report it", file=sys.stderr)
        return FAILED
    return FINE


def _learning(arguments: argparse.Namespace) -> int:
    from . import MissingExtraError, demo

    try:
        with demo.Progress(len(demo.WAYS) * arguments.seeds) as progress:
            found = demo.learn(arguments.data, arguments.seeds, progress.step)
    except MissingExtraError as error:
        print(f"reactgrad demo neat-data: error: {error}", file=sys.stderr)
        return USAGE
    _print(demo.learning_as_json(found) if arguments.json else demo.learning_as_text(found))
    return FINE


def _training(arguments: argparse.Namespace) -> int:
    from . import MissingExtraError, demo

    name = arguments.story
    picture = arguments.picture or f"reactgrad-{name}.png"
    try:
        demo.check_picture(picture)
        story = demo.TRAINING[name]
        length = arguments.length or story.length
        with demo.Progress(length + story.more) as progress:
            told = story.tell(length, arguments.seed, progress.step)
    except MissingExtraError as error:
        print(f"reactgrad demo {name}: error: {error}", file=sys.stderr)
        return USAGE
    _print(told.as_json() if arguments.json else told.as_text())
    told.draw(picture)
    # The document on stdout stays one document.
    print(f"picture: {picture}", file=sys.stderr if arguments.json else sys.stdout)
    if not told.holds:
        print(f"reactgrad demo {name}: error: a check failed; please report it", file=sys.stderr)
        return FAILED
    return FINE


def _explore(arguments: argparse.Namespace) -> int:
    from . import MissingExtraError
    from .serving._model_file import split, trouble
    from .serving._server import Server

    path, name = split(arguments.model)
    try:
        if not path.is_file():
            raise FileNotFoundError(f"{path} is no file")
        server = Server(path, name, arguments.port)
    except MissingExtraError as error:
        print(f"reactgrad explore: error: {error}", file=sys.stderr)
        return USAGE
    except (KeyboardInterrupt, OSError):
        raise
    except BaseException as error:  # the file may raise anything, SystemExit too
        print(f"reactgrad explore: error: {trouble(path, error)}", file=sys.stderr)
        return USAGE

    def ready() -> None:
        print(
            f"{path.name} is shown at\n\n    {server.address}\n\n"
            "and again whenever it is saved. Ctrl-C ends this.",
            flush=True,
        )
        if arguments.open:
            import webbrowser

            webbrowser.open(server.address)

    try:
        server.run(ready)
    except KeyboardInterrupt:  # the way to end it
        pass
    return FINE


def _port(text: str) -> int:
    """Return the number given as ``--port``."""
    if not (text.isascii() and text.isdigit() and 0 < int(text[:7]) < 2**16):
        raise argparse.ArgumentTypeError(f"expected a port from 1 to 65535, found {text[:40]!r}")
    return int(text)


def _doctor(arguments: argparse.Namespace) -> int:
    names = (*_OPTIONAL, *_WITHOUT_AN_EXTRA)
    present = {name: version for name in names if (version := _version(name))}
    kind = f"{platform.python_implementation()}, {platform.system()} {platform.machine()}"
    absent = [
        f"{name}, for {use}: pip install 'reactgrad[{extra}]'"
        for name, (extra, use) in _OPTIONAL.items()
        if name not in present
    ]
    rows = (
        ("reactgrad", f"{__version__} in {os.path.dirname(os.path.abspath(__file__))}"),
        ("python", f"{platform.python_version()} ({kind})"),
        ("numpy", _version("numpy") or "missing"),
        ("networkx", _version("networkx") or "missing; install it with: pip install networkx"),
        ("optional", _wrapped(f"{name} {version}" for name, version in present.items())),
        ("absent", f"\n{'':<11}".join(absent) or "none"),
        ("backend", "numpy" + (", cupy" if "cupy" in present else "")),
        ("gpu", _gpu()),
        ("driver", _driver()),
        ("networks", _flat_programs()),
        ("threads", _threads()),
        ("blas", _blas()),
    )
    _print("\n".join(f"{name:<10} {value}" for name, value in rows))
    return FINE


def _wrapped(parts: Iterable[str]) -> str:
    """Return words with commas between them, on lines of 100 letters below each other."""
    text = ", ".join(part.replace(" ", "\0") for part in parts) or "none"
    lines = textwrap.wrap(text, 100 - 11, break_on_hyphens=False)
    return f"\n{'':<11}".join(lines).replace("\0", " ")


def _seed(text: str) -> int:
    """Return the number given as ``--seed``."""
    if not (text.isascii() and text.isdigit() and len(text) <= 100):
        raise argparse.ArgumentTypeError(
            f"expected a whole number of 0 or more, found {text[:40]!r}"
        )
    return int(text)


def _count(text: str) -> int:
    """Return the number given as ``--seeds``, ``--epochs`` and the like."""
    if not (text.isascii() and text.isdigit() and 0 < int(text[:7]) <= 10_000):
        raise argparse.ArgumentTypeError(
            f"expected a whole number from 1 to 10000, found {text[:40]!r}"
        )
    return int(text)


def _version(name: str) -> str | None:
    """Return the version of an importable package without importing it, or None."""
    try:
        if importlib.util.find_spec(name) is None:
            return None
        # Some packages have another name on PyPI: cupy is cupy-cuda12x, for one.
        distributions = metadata.packages_distributions().get(name, [name])
        return metadata.version(distributions[0])
    except (ImportError, ValueError):
        return None


def _gpu() -> str:
    """Return the names of the GPUs that CuPy can use, or the reason why there are none."""
    if importlib.util.find_spec("cupy") is None:
        return "none (cupy is not installed)"
    try:
        runtime: Any = importlib.import_module("cupy").cuda.runtime  # Any: cupy is optional
        gpus = [runtime.getDeviceProperties(i) for i in range(runtime.getDeviceCount())]
        cuda = runtime.runtimeGetVersion()
    except Exception as error:  # a broken CUDA installation raises errors of any type
        reason = (str(error).splitlines() or ["no reason given"])[0]
        return f"none ({type(error).__name__}: {reason})"
    if not gpus:
        return "none (cupy sees no device)"
    names = [f"{gpu['name'].decode()}, {gpu['totalGlobalMem'] / _GIB:.0f} GiB" for gpu in gpus]
    return f"{'; '.join(names)}; CUDA {cuda // 1000}.{cuda % 1000 // 10}"


def _driver() -> str:
    """Say whether small kernels run by the compiled driver."""
    from .backend.machine._find import find_driver

    driver = find_driver()
    if driver is None:
        return "none (no C compiler when reactgrad was installed); single NumPy calls, or numba under jit"
    return f"compiled: {os.path.basename(driver.__file__)}"


def _flat_programs() -> str:
    """Say whether networks of ``reactgrad.neat`` answer one sample by compiled code."""
    found = importlib.util.find_spec("reactgrad.neat._flat")
    if found is None or found.origin is None:
        return "none (no C compiler when reactgrad was installed); networks answer one sample in Python"
    return f"compiled: {os.path.basename(found.origin)}"


def _threads() -> str:
    """Return the number of usable cores and the limits on BLAS threads, as text."""
    cores = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    limits = [f"{name}={os.environ[name]}" for name in _THREAD_VARIABLES if name in os.environ]
    limited = ", ".join(limits) or "no thread limits in the environment"
    from . import get_num_threads

    return f"{usable} of {cores} cores usable; {limited}; large arrays: {get_num_threads()}"


def _blas() -> str:
    """Return the name of NumPy's BLAS, and its number of threads if threadpoolctl is installed."""
    import numpy as np

    from .backend.blocks._library_threads import blas_pools

    pools = blas_pools()
    loaded = [
        f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads"
        for pool in pools or ()
    ]
    if loaded:
        return f"{'; '.join(loaded)}; rg.set_num_threads sets them"
    built: Any = np.show_config(mode="dicts")
    blas = built.get("Build Dependencies", {}).get("blas", {})
    name = f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
    if pools is None:
        return f"{name}; rg.set_num_threads does not set its threads without threadpoolctl"
    return f"{name}; threadpoolctl finds none, so rg.set_num_threads does not set its threads"


def _print(text: str) -> None:
    """Print to stdout; characters that its encoding lacks are escaped."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))


def _discard_stdout() -> None:
    """Send stdout to nowhere, or else the flush at exit would fail again and print a traceback."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        pass
