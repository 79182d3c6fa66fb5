"""The functions of formulas, a family each.

``_math``, ``_statistics``, ``_logic``, ``_text``, ``_dates``, ``_finance``, ``_lookup``, ``_bases``.

``_register`` holds the table by name.
"""

from reactgrad.tables.excel.functions import _bases as _bases
from reactgrad.tables.excel.functions import _dates as _dates
from reactgrad.tables.excel.functions import _finance as _finance
from reactgrad.tables.excel.functions import _logic as _logic
from reactgrad.tables.excel.functions import _lookup as _lookup
from reactgrad.tables.excel.functions import _math as _math
from reactgrad.tables.excel.functions import _statistics as _statistics
from reactgrad.tables.excel.functions import _text as _text
from reactgrad.tables.excel.functions._register import FUNCTIONS as FUNCTIONS
from reactgrad.tables.excel.functions._register import LAZY as LAZY
from reactgrad.tables.excel.functions._register import OVER_CELLS as OVER_CELLS
from reactgrad.tables.excel.functions._register import SINGLE_VALUES as SINGLE_VALUES
from reactgrad.tables.excel.functions._register import takes as takes
