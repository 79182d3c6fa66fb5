"""How gradients flow: switches and marks that gradient building honours.

- ``_mode``        no_grad and enable_grad
- ``_transient``   values that stay only as long as a run reads them
- ``_checkpoint``  values that are computed again rather than kept
"""

from reactgrad.flow._checkpoint import checkpoint as checkpoint
from reactgrad.flow._checkpoint import follow_segment as follow_segment
from reactgrad.flow._mode import enable_grad as enable_grad
from reactgrad.flow._mode import is_grad_enabled as is_grad_enabled
from reactgrad.flow._mode import no_grad as no_grad
from reactgrad.flow._transient import Transient as Transient
