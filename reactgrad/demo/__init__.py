"""The demos: a book of options, repriced after single changes; networks that evolve, and that learn.

Start reading at ``_book``, ``_evolution`` and ``training``: these are the parts that use reactgrad.

- ``_prices``: a CSV file of prices to spots and volatilities, with errors that name the line.
- ``_market``: the options (``Terms``) and the numbers that move (``Market``), as arrays.
- ``_book``: the book as a graph: leaves, value, live Greeks.
- ``_closed_form``: Black-Scholes value and Greeks in plain NumPy, to check the graph against.
- ``_story``: the changes, what each one ran, and the checks.
- ``_report``: the story as a text table or as one JSON document.
- ``_page``: the same changes as a page to click through.
- ``_progress``: a progress bar on stderr.
- ``_evolution``: XOR, evolved with neat-python and evaluated by reactgrad; ``_history``: how it went, as
  a picture.
- ``_learning``: data of scikit-learn, learned by evolution, by gradient, and by both.
- ``_neat_config``: neat-python and the settings of its example.
- ``training/``: networks that are trained: stories that end in a picture.
- ``data/``: the embedded prices and their source.
"""

from ._evolution import INPUTS as INPUTS
from ._evolution import WANTED as WANTED
from ._evolution import Evolution as Evolution
from ._evolution import evolution_as_json as evolution_as_json
from ._evolution import evolution_as_text as evolution_as_text
from ._evolution import evolve as evolve
from ._history import history_as_svg as history_as_svg
from ._learning import DATA as DATA
from ._learning import WAYS as WAYS
from ._learning import Learning as Learning
from ._learning import learn as learn
from ._learning import learning_as_json as learning_as_json
from ._learning import learning_as_text as learning_as_text
from ._neat_config import import_neat as import_neat
from ._neat_config import neat_config as neat_config
from ._page import write_page as write_page
from ._prices import EMBEDDED as EMBEDDED
from ._prices import PriceFileError as PriceFileError
from ._prices import embedded_stocks as embedded_stocks
from ._prices import stocks_from_file as stocks_from_file
from ._progress import Progress as Progress
from ._report import as_json as as_json
from ._report import as_text as as_text
from ._story import STEPS as STEPS
from ._story import Story as Story
from ._story import tell as tell
from .training import TRAINING as TRAINING
from .training import TrainingStory as TrainingStory
from .training import balance_pole as balance_pole
from .training import check_picture as check_picture
from .training import generate_digits as generate_digits
from .training import learn_digits as learn_digits
from .training import share_trunk as share_trunk
