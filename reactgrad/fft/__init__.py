"""Discrete Fourier transforms, with the names of ``numpy.fft``.

- ``_arguments``: lengths, axes and norms as attributes of ops.
- ``_fit``: axes cut, or filled up with zeros.
- ``_transforms``: the ops, each along any number of axes, with their rules.
- ``_along_one``, ``_along_many``: their public functions.
- ``_shift``: fftshift and ifftshift. ``_frequencies``: fftfreq and rfftfreq.
"""

from reactgrad._calls import explain_all as _explain_all
from reactgrad._habits import absent_from as _absent_from
from reactgrad.fft._along_many import fft2 as fft2
from reactgrad.fft._along_many import fftn as fftn
from reactgrad.fft._along_many import ifft2 as ifft2
from reactgrad.fft._along_many import ifftn as ifftn
from reactgrad.fft._along_many import irfft2 as irfft2
from reactgrad.fft._along_many import irfftn as irfftn
from reactgrad.fft._along_many import rfft2 as rfft2
from reactgrad.fft._along_many import rfftn as rfftn
from reactgrad.fft._along_one import fft as fft
from reactgrad.fft._along_one import hfft as hfft
from reactgrad.fft._along_one import ifft as ifft
from reactgrad.fft._along_one import ihfft as ihfft
from reactgrad.fft._along_one import irfft as irfft
from reactgrad.fft._along_one import rfft as rfft
from reactgrad.fft._frequencies import fftfreq as fftfreq
from reactgrad.fft._frequencies import rfftfreq as rfftfreq
from reactgrad.fft._shift import fftshift as fftshift
from reactgrad.fft._shift import ifftshift as ifftshift

_explain_all(globals(), __name__, "rg.fft")
__getattr__ = _absent_from(__name__, {})
