"""Switches and marks of the user that gradients obey, and the values that are kept for gradients.

- ``_mode``: ``no_grad``, ``enable_grad``, ``inference``.
- ``_gate``: nodes that pass their operand's value and stop or scale its gradient.
- ``_training``: train and eval mode.
- ``_checkpoint``: values that are computed again rather than kept.
- ``_saved``: values that a user's hooks pack and unpack. ``_places``: such hooks ready-made.
- ``_passing``: values that are dropped in the course of one ``backward``.
"""

from reactgrad.flow._checkpoint import checkpoint as checkpoint
from reactgrad.flow._checkpoint import follow_segment as follow_segment
from reactgrad.flow._checkpoint import in_checkpoint as in_checkpoint
from reactgrad.flow._gate import detach_node as detach_node
from reactgrad.flow._gate import scale_grad as scale_grad
from reactgrad.flow._mode import PLAIN_MODE as PLAIN_MODE
from reactgrad.flow._mode import Differentiable as Differentiable
from reactgrad.flow._mode import GradMode as GradMode
from reactgrad.flow._mode import enable_grad as enable_grad
from reactgrad.flow._mode import inference as inference
from reactgrad.flow._mode import is_grad_enabled as is_grad_enabled
from reactgrad.flow._mode import mode_here as mode_here
from reactgrad.flow._mode import no_grad as no_grad
from reactgrad.flow._mode import set_grad_enabled as set_grad_enabled
from reactgrad.flow._passing import passing as passing
from reactgrad.flow._saved import hooks_here as hooks_here
from reactgrad.flow._saved import open_hooks as open_hooks
from reactgrad.flow._saved import saved_tensors_hooks as saved_tensors_hooks
from reactgrad.flow._training import mode_of as mode_of
