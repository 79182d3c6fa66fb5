"""A side in a process of its own, where other sides would compete for threads or disturb it.

The processes work in turns, never at the same time: one waits for its next order while another one
is being timed.
"""

from __future__ import annotations

from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from bench._case import Contest, Setting


class Apart:
    """A side of a contest in another process, which finds it by module and position.

    Parameters
    ----------
    module
        The module of the workload.
    case, side
        The positions of the case and of its side.
    """

    def __init__(
        self, module: str, setting: Setting, case: int, side: int, *, cpu: bool = False
    ) -> None:
        context = get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(other, module, setting, case, side, cpu), daemon=True
        )
        self._process.start()
        other.close()
        self._answer()

    def outputs(self, seed: int) -> list[Any]:
        return self._ask("outputs", seed)

    def seconds(self, seed: int, count: int) -> float:
        return self._ask("seconds", seed, count)

    def close(self) -> None:
        self._pipe.close()
        self._process.join()

    def _ask(self, *order: Any) -> Any:
        self._pipe.send(order)
        return self._answer()

    def _answer(self) -> Any:
        try:
            done, answer = self._pipe.recv()
        except EOFError:
            raise RuntimeError("the process of this side has ended") from None
        if not done:
            raise RuntimeError(answer)
        return answer


def _serve(
    pipe: Connection, module: str, setting: Setting, case: int, side: int, cpu: bool
) -> None:
    from bench._measure import Here
    from bench._workloads import workload_of

    try:
        contest = workload_of(module).cases(setting)[case]
        assert isinstance(contest, Contest)
        runner = Here(contest, contest.sides[side], cpu=cpu)
        pipe.send((True, None))
        while True:
            try:
                what, *arguments = pipe.recv()
            except EOFError:
                return
            pipe.send((True, getattr(runner, what)(*arguments)))
    except Exception as error:
        pipe.send((False, f"{type(error).__name__}: {error}"))
