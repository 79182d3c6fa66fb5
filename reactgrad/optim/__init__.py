"""Optimisers, with the names of ``torch.optim``.

- ``_optimizer``: what all share: groups, steps, hooks, state. ``_params``: params as they are given.
- ``_bucket``: params, gradients and moments side by side. ``_arrays``: what a rule works on. ``_hooks``: hooks.
- ``_decay``: weight decay. ``_compiled``: rules in one pass of the driver.
- ``_sgd``, ``_averaged``, ``_adam``, ``_adaptive``, ``_squares``, ``_signs``, ``_lion``: the rules of one step.
- ``_lbfgs``, ``_strong_wolfe``: quasi-Newton steps, and their line search.
- ``_clip``: gradients that are made smaller. ``_micro_batches``: one step for several batches.
- ``_schedules``, ``_cyclic``, ``_policies``: learning rates that follow the number of steps, or a measure.
"""

from reactgrad._calls import explained as _explained
from reactgrad._habits import absent_from as _absent_from
from reactgrad._names_of_torch import OF_OPTIM as _OF_OPTIM
from reactgrad.optim._adam import Adam as Adam
from reactgrad.optim._adam import AdamW as AdamW
from reactgrad.optim._adaptive import Adamax as Adamax
from reactgrad.optim._adaptive import NAdam as NAdam
from reactgrad.optim._adaptive import RAdam as RAdam
from reactgrad.optim._averaged import ASGD as ASGD
from reactgrad.optim._clip import clip_grad_norm_ as clip_grad_norm_
from reactgrad.optim._clip import clip_grad_value_ as clip_grad_value_
from reactgrad.optim._cyclic import CyclicLR as CyclicLR
from reactgrad.optim._lbfgs import LBFGS as LBFGS
from reactgrad.optim._lion import Lion as Lion
from reactgrad.optim._micro_batches import MicroBatches as MicroBatches
from reactgrad.optim._optimizer import Optimizer as Optimizer
from reactgrad.optim._policies import ChainedScheduler as ChainedScheduler
from reactgrad.optim._policies import OneCycleLR as OneCycleLR
from reactgrad.optim._policies import ReduceLROnPlateau as ReduceLROnPlateau
from reactgrad.optim._policies import SequentialLR as SequentialLR
from reactgrad.optim._schedules import ConstantLR as ConstantLR
from reactgrad.optim._schedules import CosineAnnealingLR as CosineAnnealingLR
from reactgrad.optim._schedules import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from reactgrad.optim._schedules import ExponentialLR as ExponentialLR
from reactgrad.optim._schedules import LambdaLR as LambdaLR
from reactgrad.optim._schedules import LinearLR as LinearLR
from reactgrad.optim._schedules import LRScheduler as LRScheduler
from reactgrad.optim._schedules import MultiplicativeLR as MultiplicativeLR
from reactgrad.optim._schedules import MultiStepLR as MultiStepLR
from reactgrad.optim._schedules import PolynomialLR as PolynomialLR
from reactgrad.optim._schedules import StepLR as StepLR
from reactgrad.optim._sgd import SGD as SGD
from reactgrad.optim._signs import Rprop as Rprop
from reactgrad.optim._squares import Adadelta as Adadelta
from reactgrad.optim._squares import Adagrad as Adagrad
from reactgrad.optim._squares import RMSprop as RMSprop

for _name in ("clip_grad_norm_", "clip_grad_value_"):
    globals()[_name] = _explained(f"rg.optim.{_name}", globals()[_name], __name__)
del _name
__getattr__ = _absent_from(__name__, _OF_OPTIM)
