"""How gradients flow: switches and marks that gradient building honours.

- ``_mode``  no_grad and enable_grad
"""

from reactgrad.flow._mode import enable_grad as enable_grad
from reactgrad.flow._mode import is_grad_enabled as is_grad_enabled
from reactgrad.flow._mode import no_grad as no_grad
