"""How gradients flow: switches and marks that gradient building honours.

- ``_mode``        no_grad and enable_grad
- ``_transient``   values that stay only as long as a run reads them
- ``_saved``       values that the user puts away and brings back
- ``_places``      ready-made places for them
- ``_checkpoint``  values that are computed again rather than kept
"""

from reactgrad.flow._checkpoint import checkpoint as checkpoint
from reactgrad.flow._checkpoint import follow_segment as follow_segment
from reactgrad.flow._mode import enable_grad as enable_grad
from reactgrad.flow._mode import is_grad_enabled as is_grad_enabled
from reactgrad.flow._mode import no_grad as no_grad
from reactgrad.flow._places import save_on_cpu as save_on_cpu
from reactgrad.flow._places import save_on_disk as save_on_disk
from reactgrad.flow._saved import hooks_here as hooks_here
from reactgrad.flow._saved import open_hooks as open_hooks
from reactgrad.flow._saved import saved_tensors_hooks as saved_tensors_hooks
from reactgrad.flow._transient import Transient as Transient
