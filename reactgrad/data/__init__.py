"""Datasets and loaders, with PyTorch's names: ``rg.data.DataLoader(rg.data.ArrayDataset(X, y), batch_size=32)``.

- ``_dataset``: ``Dataset``, ``ArrayDataset``, ``Subset``, ``ConcatDataset``, ``random_split``.
- ``_tables``: ``TableDataset``, ``CSVDataset``, ``ParquetDataset``. ``_images``: ``ImageFolder``.
- ``_samplers``: which samples an epoch has, in which order.
- ``_loader``: ``DataLoader``: epochs, batches, and the place in them. ``_workers``: threads that load ahead.
- ``_collate``: from samples to a batch.
- ``_transforms``: functions of arrays. ``_batch_rng``: random numbers that belong to a batch.
- ``_errors``: ``DataError``.

It knows no graph: batches are NumPy arrays.
"""

from reactgrad._calls import explained as _explained
from reactgrad._habits import absent_from as _absent_from
from reactgrad._names_of_torch import OF_DATA as _OF_DATA
from reactgrad.data._batch_rng import batch_rng as batch_rng
from reactgrad.data._collate import default_collate as default_collate
from reactgrad.data._dataset import ArrayDataset as ArrayDataset
from reactgrad.data._dataset import ConcatDataset as ConcatDataset
from reactgrad.data._dataset import Dataset as Dataset
from reactgrad.data._dataset import Subset as Subset
from reactgrad.data._dataset import random_split as random_split
from reactgrad.data._errors import DataError as DataError
from reactgrad.data._images import ImageFolder as ImageFolder
from reactgrad.data._loader import DataLoader as DataLoader
from reactgrad.data._samplers import BatchSampler as BatchSampler
from reactgrad.data._samplers import RandomSampler as RandomSampler
from reactgrad.data._samplers import Sampler as Sampler
from reactgrad.data._samplers import SequentialSampler as SequentialSampler
from reactgrad.data._samplers import SubsetRandomSampler as SubsetRandomSampler
from reactgrad.data._samplers import WeightedRandomSampler as WeightedRandomSampler
from reactgrad.data._tables import CSVDataset as CSVDataset
from reactgrad.data._tables import ParquetDataset as ParquetDataset
from reactgrad.data._tables import TableDataset as TableDataset
from reactgrad.data._transforms import Compose as Compose
from reactgrad.data._transforms import Flatten as Flatten
from reactgrad.data._transforms import Normalize as Normalize
from reactgrad.data._transforms import OneHot as OneHot
from reactgrad.data._transforms import RandomCrop as RandomCrop
from reactgrad.data._transforms import RandomHorizontalFlip as RandomHorizontalFlip
from reactgrad.data._transforms import ToFloat as ToFloat

random_split = _explained("rg.data.random_split", random_split, __name__)
__getattr__ = _absent_from(__name__, _OF_DATA)
