"""Arrays that move by NCCL; headers, and what NCCL has no call for, go by MPI.

Never run on GPUs yet: the probe in ``_nccl`` skips it where there are none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.distributed._mpi import MPITransport, mpi
from reactgrad.distributed._request import Request

# NCCL's numbers of dtypes.
_DTYPES = {"int32": 2, "int64": 4, "float16": 6, "float32": 7, "float64": 8}
_OPS = {"sum": 0, "avg": 0, "product": 1, "max": 2, "min": 3}


class _Stream:
    """A request like MPI's, of work on a stream of the GPU."""

    def __init__(self, stream: Any, device: Any, out: np.ndarray) -> None:
        self._stream, self._device, self._out = stream, device, out

    def Test(self) -> bool:
        """Return whether the work is done, with the result on the host."""
        if not self._stream.done:
            return False
        self._out[...] = self._device.get()
        return True


class NCCLTransport(MPITransport):
    """The place of one process and its GPU among all."""

    def __init__(self, timeout: float, devices: int) -> None:
        super().__init__(mpi().COMM_WORLD, timeout)
        import cupy
        from cupy.cuda import nccl

        self.name = "nccl"
        cupy.cuda.Device(self.rank % devices).use()
        number = self.comm.bcast(nccl.get_unique_id() if self.rank == 0 else None, 0)
        self._comm = nccl.NcclCommunicator(self.size, number, self.rank)
        self._stream = cupy.cuda.Stream(non_blocking=True)

    def move(self, request: Request, given: Any, into: Any) -> tuple[Any, Any]:
        """Begin to move data. Return what is asked whether it is there, and the array that it fills."""
        if request.kind not in ("all_reduce", "broadcast") or request.dtype not in _DTYPES:
            return super().move(request, given, into)
        import cupy

        dtype, stream = _DTYPES[request.dtype], self._stream
        with stream:
            device = cupy.asarray(given)
        pointer = device.data.ptr
        if request.kind == "all_reduce":
            op = _OPS[request.reduction or "sum"]
            self._comm.allReduce(pointer, pointer, device.size, dtype, op, stream.ptr)
        else:
            self._comm.bcast(pointer, device.size, dtype, request.root, stream.ptr)
        out = np.empty_like(given)
        return _Stream(stream, device, out), out
