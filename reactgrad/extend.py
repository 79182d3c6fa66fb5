"""How to add ops and kernels: the whole extension API on one screen."""

from reactgrad.backend import register_binder as register_binder
from reactgrad.backend import register_device as register_device
from reactgrad.backend import register_kernel as register_kernel
