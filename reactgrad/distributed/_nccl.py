"""Ranks whose arrays lie on GPUs: a probe of what NCCL needs."""

from __future__ import annotations

from reactgrad._errors import MissingExtraError
from reactgrad.distributed._errors import DistributedError
from reactgrad.distributed._work import Transport


def world(timeout: float) -> Transport:
    """Return the transport among all processes, one GPU each.

    Raises
    ------
    MissingExtraError
        If CuPy is not installed.
    DistributedError
        If there is no GPU for each rank, or CuPy has no NCCL.
    """
    try:
        import cupy
    except ImportError as error:
        raise MissingExtraError(
            'rg.distributed.init("nccl") needs CuPy: pip install "reactgrad[cuda12,distributed]". Ranks '
            'without GPUs work by init("mpi").'
        ) from error
    try:
        from cupy.cuda import nccl

        devices = cupy.cuda.runtime.getDeviceCount() if nccl.available else 0
    except Exception as error:  # whatever the driver says: there is no GPU to use
        raise DistributedError(
            f'rg.distributed.init("nccl"): no GPU answers ({error}). Write init("mpi").'
        ) from error
    if not devices:
        raise DistributedError(
            'rg.distributed.init("nccl"): CuPy has no NCCL here, or there is no GPU. Write init("mpi").'
        )
    from reactgrad.distributed._nccl_transport import NCCLTransport

    return NCCLTransport(timeout, devices)
