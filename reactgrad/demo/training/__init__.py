"""Stories of training, which end in a picture.

- ``_told``: what a story gives to the command line. ``_picture``: pictures with matplotlib.
- ``_digits``: images of handwritten digits.
- ``_classifier``, ``_questions``, ``_learned_digits``: digits are classified, and questions asked.
- ``_tasks``, ``_shared_trunk``: two tasks with a common trunk, and a third one on top of it.
- ``_adversaries``, ``_generated_digits``: digits are generated.
- ``_cart_pole``, ``_actor_critic``, ``_balanced_pole``: a pole is balanced.
"""

from typing import Final

from ._balanced_pole import balance_pole as balance_pole
from ._generated_digits import generate_digits as generate_digits
from ._learned_digits import learn_digits as learn_digits
from ._picture import check_picture as check_picture
from ._shared_trunk import share_trunk as share_trunk
from ._told import TrainingStory as TrainingStory

TRAINING: Final = {
    "learn": TrainingStory(learn_digits, length=20, more=3),
    "multitask": TrainingStory(share_trunk, length=30, more=2),
    "gan": TrainingStory(generate_digits, length=40, more=0),
    "ppo": TrainingStory(balance_pole, length=40, more=0),
}
