"""Datasets, samplers and a DataLoader, with PyTorch's `utils.data` API."""

from .array_dataset import ArrayDataset
from .collate import collate, default_collate, default_collate_fn_map, default_convert
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .dataset_folder import DatasetFolder
from .errors import LoaderTimeout, WorkerError, WorkerExited
from .image_folder import ImageFolder
from .length_samplers import BucketBatchSampler, TokenBatchSampler
from .loader import DataLoader
from .permutation import Permutation, PermutationSampler
from .safetensors_dataset import SafetensorsDataset
from .sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .shared_dict import SharedDict
from .shared_list import SharedList
from .stats import LoaderStats
from .streams import MixStream, ShardStream, ShuffleStream, Stream, StreamIterator
from .tables import CSVDataset, ParquetDataset, read_parquet
from .tar_shards import read_tar
from .text_lines import TextLines
from .worker import WorkerInfo, get_worker_info

__version__ = "0.1.0"

__all__ = [
    "ArrayDataset",
    "BatchSampler",
    "BucketBatchSampler",
    "CSVDataset",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DatasetFolder",
    "DistributedSampler",
    "ImageFolder",
    "IterableDataset",
    "LoaderStats",
    "LoaderTimeout",
    "MixStream",
    "ParquetDataset",
    "Permutation",
    "PermutationSampler",
    "RandomSampler",
    "SafetensorsDataset",
    "Sampler",
    "SequentialSampler",
    "ShardStream",
    "SharedDict",
    "SharedList",
    "ShuffleStream",
    "StackDataset",
    "Stream",
    "StreamIterator",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "TextLines",
    "TokenBatchSampler",
    "WeightedRandomSampler",
    "WorkerError",
    "WorkerExited",
    "WorkerInfo",
    "collate",
    "default_collate",
    "default_collate_fn_map",
    "default_convert",
    "get_worker_info",
    "random_split",
    "read_parquet",
    "read_tar",
]
