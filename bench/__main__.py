"""``python -m bench [B4 B7 ...] [--quick] [--permuted] [--cpu] [--seconds S] [--json FILE] [--list]
[--spread FILE ...]``."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from bench._machine import describe, fix_threads


def main(arguments: list[str] | None = None) -> int:
    """Print the table.

    Return 1 if outputs differ or a workload fails, whatever the figures; 2 where it cannot begin.
    """
    parser = argparse.ArgumentParser("python -m bench", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="B4", help="which ones; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that all runs")
    parser.add_argument(
        "--permuted", action="store_true", help="each workload's permuted variant, too"
    )
    parser.add_argument("--cpu", action="store_true", help="CPU seconds, for busy machines")
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="how long a contest takes (least rounds anyway)"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all figures there")
    parser.add_argument(
        "--spread",
        nargs="+",
        metavar="FILE",
        type=Path,
        help="run nothing: several runs' JSON files as one table in Markdown",
    )
    parser.add_argument("--list", action="store_true", help="name the workloads and their cases")
    options = parser.parse_args(arguments)
    fix_threads()
    warnings.filterwarnings("ignore", module=r"(torch|jax|loman|pandas)\b")
    from bench._peers import installed

    if not installed("pytest_benchmark"):  # the modules below import it
        print('python -m bench needs the bench extra: pip install -e ".[bench]"', file=sys.stderr)
        return 2
    from bench._case import Setting
    from bench._measure import FULL, QUICK
    from bench._run import lines
    from bench._spread import spread
    from bench._summary import summary
    from bench._table import Line, beside, header, printed, wrapped
    from bench._workloads import LATER, modules, numbers, workload_of
    from reactgrad.tracking._bar import Bar

    chosen = [number.upper() for number in options.workloads] or numbers()
    unknown = set(chosen) - set(numbers())
    if unknown:
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(numbers())}")
    setting = Setting(small=options.quick)

    if options.spread:
        try:
            print(spread(options.spread))
        except (OSError, ValueError) as error:
            parser.error(str(error))
        return 0
    if options.list:
        for module in modules():
            workload = workload_of(module)
            if workload.number in chosen:
                for case in workload.cases(setting):
                    print(f"{workload.number:4} {workload.title}: {case.name}")
        for number in chosen:
            if number in LATER:
                print(f"{number:4} later: {LATER[number]}")
        return 0

    machine = describe()
    began = perf_counter()
    print("\n".join(wrapped(", ".join(f"{name} {value}" for name, value in machine.items()))))
    if options.quick:
        print("small sizes, few rounds: this shows that all runs and agrees; no figure counts")
    print(header(), flush=True)
    found: list[Line] = []
    variants: list[Line] = []
    former: Line | None = None
    wanted = [module for module in modules() if workload_of(module).number in chosen]
    bar = Bar(len(wanted), "bench", disable=None, leave=False)

    def say(text: str) -> None:
        bar.hide()
        print(text, flush=True)
        bar.draw()

    for module in wanted:
        bar.desc = workload_of(module).number
        bar.draw()
        pace = replace(QUICK if options.quick else FULL, cpu=options.cpu)
        if options.seconds is not None:
            pace = replace(pace, budget=options.seconds)
        figures: list[Line] = []
        for line in lines(module, setting, pace):
            say(printed(line, former))
            former = line
            figures.append(line)
        found += figures
        if options.permuted:
            permuted = Setting(small=options.quick, permuted=True)
            for line, figure in zip(lines(module, permuted, pace), figures, strict=True):
                line = beside(line, figure)
                say(printed(line, former))
                former = line
                variants.append(line)
        bar.update()
    bar.close()
    for number in chosen:
        if number in LATER:
            print(f"{number:4} later: {LATER[number]}")
    told = summary(found, variants, quick=options.quick, seconds=perf_counter() - began)
    print("\n".join(told))
    if options.json is not None:
        content: dict[str, Any] = {"machine": machine, "lines": [line.as_dict() for line in found]}
        if options.permuted:
            content["permuted"] = [line.as_dict() for line in variants]
        options.json.write_text(json.dumps(content, indent=1, ensure_ascii=False))
    failed = [line for line in (*found, *variants) if line.failed]
    for line in failed:  # again, for readers of the end only
        print(f"{line.number} {line.case}: {line.note}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
