"""How gradients flow: switches and marks that gradient building honours.

- ``_mode``      no_grad, enable_grad, inference
- ``_gate``      nodes that stop or scale what gradients pass
- ``_training``  train and eval
"""

from reactgrad.flow._gate import detach_node as detach_node
from reactgrad.flow._gate import scale_grad as scale_grad
from reactgrad.flow._mode import Differentiable as Differentiable
from reactgrad.flow._mode import GradMode as GradMode
from reactgrad.flow._mode import enable_grad as enable_grad
from reactgrad.flow._mode import inference as inference
from reactgrad.flow._mode import is_grad_enabled as is_grad_enabled
from reactgrad.flow._mode import no_grad as no_grad
from reactgrad.flow._mode import set_grad_enabled as set_grad_enabled
from reactgrad.flow._training import mode_of as mode_of
