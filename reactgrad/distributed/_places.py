"""Places that hold something on a worker, such as a copy of a graph: actors of Dask, or threads of this process."""

from __future__ import annotations

import pickle
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from reactgrad._errors import DTypeError
from reactgrad.distributed._errors import DistributedError

# How often a call looks whether the worker that it waits for is still there, in seconds.
_LOOK = 0.5


class LostError(Exception):
    """The worker of a place is gone."""


class Place(ABC):
    """One object on one worker, whose methods return a pair: whether all went well, and the result or the error."""

    host: str

    @abstractmethod
    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the object there, and return its result.

        Raises
        ------
        LostError
            If the worker is gone.
        Exception
            What the method has raised.
        """

    def close(self) -> None:  # noqa: B027 - not all have something to release
        """Release the object."""


class Hosts(ABC):
    """Workers on which places can be made."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the workers that are there."""

    @abstractmethod
    def place(self, host: str, kind: type, given: Any) -> Place:
        """Return a new place on a worker, which holds ``kind(given)``."""


def unwrapped(answer: tuple[bool, Any]) -> Any:
    """Return what a holder answered; raise what it raised."""
    good, result = answer
    if not good:
        try:
            raise result
        finally:
            del result, answer  # the traceback holds this frame
    return result


# --- Dask ------------------------------------------------------------------------------------------


class Answering:
    """The object that an actor is. Calls and answers are bytes: Dask would write each argument apart."""

    def __init__(self, kind: type, given: Any) -> None:
        self._held = kind(given)

    def call(self, data: bytes) -> bytes:
        """Call a method, and return its answer."""
        try:
            method, arguments = pickle.loads(data)
            return written(getattr(self._held, method)(*arguments))
        except Exception as error:  # something does not travel
            return written((False, error))


def written(value: Any) -> bytes:
    """Return a value as bytes; functions as code where they have no name to be found by."""
    try:
        return pickle.dumps(value, protocol=5)
    except Exception:
        from cloudpickle import dumps  # Dask brings it

        return dumps(value, protocol=5)


class DaskPlace(Place):
    """An actor of Dask."""

    def __init__(self, hosts: DaskHosts, host: str, future: Any, actor: Any) -> None:
        self.hosts, self.host = hosts, host
        self._future, self._actor = future, actor

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the object there; see ``Place``."""
        data = written((method, arguments))
        try:
            waiting = self._actor.call(data)
        except Exception as error:  # the actor is known to be lost
            raise LostError(self.host) from error
        while True:
            try:
                answer = waiting.result(timeout=_LOOK)
                break
            except TimeoutError:
                if self.host not in self.hosts.names():
                    raise LostError(self.host) from None
            except Exception as error:  # methods answer with their errors: this is the connection
                raise LostError(self.host) from error
        return unwrapped(pickle.loads(answer))

    def close(self) -> None:
        """Release the object."""
        self._future.release()


class DaskHosts(Hosts):
    """The workers of a Dask cluster."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def names(self) -> list[str]:
        """Return the workers that are there."""
        return self.client.run_on_scheduler(_workers)

    def place(self, host: str, kind: type, given: Any) -> Place:
        """Return a new place on a worker, which holds ``kind(given)``."""
        future = self.client.submit(Answering, kind, given, actor=True, workers=[host], pure=False)
        while True:
            try:
                actor = future.result(timeout=_LOOK)
                break
            except TimeoutError:
                if host not in self.names():
                    future.release()
                    raise LostError(host) from None
            except Exception as error:
                if host not in self.names():
                    raise LostError(host) from error
                raise
        return DaskPlace(self, host, future, actor)


def _workers(dask_scheduler: Any) -> list[str]:
    return list(dask_scheduler.workers)


# --- threads of this process -------------------------------------------------------------------------


class LocalPlace(Place):
    """An object in this process."""

    def __init__(self, hosts: LocalHosts, host: str, holder: Any) -> None:
        self.hosts, self.host = hosts, host
        self._holder = holder

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the object; see ``Place``."""
        if self.host not in self.hosts.alive:
            raise LostError(self.host)
        if self.hosts.service:
            time.sleep(self.hosts.service)
        answer = getattr(self._holder, method)(*arguments)
        if self.host not in self.hosts.alive:  # killed meanwhile: the answer is lost
            raise LostError(self.host)
        return unwrapped(answer)


class LocalHosts(Hosts):
    """Workers that are threads of this process, for tests and for simulations of large clusters.

    Parameters
    ----------
    count : int
    service : float
        The seconds that each call takes on top of its work.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0, name="x")
    >>> y = x * x
    >>> with rg.distributed.Farm(g, rg.distributed.LocalHosts(2), outputs=[y]) as farm:
    ...     list(farm.map([{x: 2.0}, {x: 3.0}]))
    [np.float64(4.0), np.float64(9.0)]
    """

    def __init__(self, count: int, service: float = 0.0) -> None:
        self.service = service
        self._made = count
        self._lock = threading.Lock()
        self.alive = {f"local-{i}" for i in range(count)}

    def names(self) -> list[str]:
        """Return the workers that are there."""
        return sorted(self.alive, key=lambda name: int(name.rpartition("-")[2]))

    def place(self, host: str, kind: type, given: Any) -> Place:
        """Return a new place on a worker, which holds ``kind(given)``."""
        if host not in self.alive:
            raise LostError(host)
        return LocalPlace(self, host, kind(given))

    def kill(self, host: str, replace: bool = True) -> None:
        """Let a worker die, and another one take its place."""
        with self._lock:
            self.alive.discard(host)
            if replace:
                self.alive.add(f"local-{self._made}")
                self._made += 1


def hosts_of(client: Any) -> Hosts:
    """Return the workers behind what a user calls a client."""
    if isinstance(client, Hosts):
        return client
    if isinstance(client, int) and not isinstance(client, bool) and client > 0:
        return LocalHosts(client)
    if hasattr(client, "run_on_scheduler") and hasattr(client, "submit"):
        return DaskHosts(client)
    raise DTypeError(
        f"a farm works on a client of Dask, not {type(client).__name__}. Write "
        "distributed.Client(...), or a number of threads of this process."
    )


def start(
    hosts: Hosts, kind: type, given: Callable[[], Any], taken: set[str], patience: float
) -> Place:
    """Return a place on a worker that has none, with ``kind(given())``; wait for a worker to come.

    Raises
    ------
    DistributedError
        If none comes.
    """
    end = time.monotonic() + patience
    while True:
        for host in hosts.names():
            if host not in taken:
                try:
                    return hosts.place(host, kind, given())
                except LostError:
                    continue
        if time.monotonic() >= end:
            raise DistributedError(
                f"no worker is left to take over, and none came within {patience:g} s. Start workers, or "
                "raise patience=."
            )
        time.sleep(0.05)
