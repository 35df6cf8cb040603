"""Distributed checkpoints, which several processes write together. Distributed checkpoints are not supported.

To write a large checkpoint as several files in parallel, use `torch.save(max_shard_size=...)`. The functions
and classes of this module exist so that libraries can import them; calling one raises RuntimeError.
"""

from rushlight.distributed._absent import Absent as _Absent
from rushlight.distributed._absent import refused as _refused

__all__ = ["FileSystemReader", "FileSystemWriter", "load", "save"]

save = _refused("checkpoint.save")
load = _refused("checkpoint.load")
get_model_state_dict = _refused("checkpoint.state_dict.get_model_state_dict")
get_optimizer_state_dict = _refused("checkpoint.state_dict.get_optimizer_state_dict")
set_model_state_dict = _refused("checkpoint.state_dict.set_model_state_dict")
set_optimizer_state_dict = _refused("checkpoint.state_dict.set_optimizer_state_dict")


class FileSystemReader(_Absent):
    """Reader of distributed checkpoints. Not supported: the constructor raises RuntimeError.

    Example:
        >>> torch.distributed.checkpoint.FileSystemReader("folder")
        Traceback (most recent call last):
            ...
        RuntimeError: distributed.FileSystemReader(): is not supported
    """


class FileSystemWriter(_Absent):
    """Writer of distributed checkpoints. Not supported: the constructor raises RuntimeError.

    Example:
        >>> torch.distributed.checkpoint.FileSystemWriter("folder")
        Traceback (most recent call last):
            ...
        RuntimeError: distributed.FileSystemWriter(): is not supported
    """


class StateDictOptions(_Absent):
    """Options of the functions that read and set the state of distributed modules.

    Not supported: the constructor raises RuntimeError.

    Example:
        >>> from rushlight.distributed.checkpoint.state_dict import StateDictOptions
        >>> StateDictOptions()
        Traceback (most recent call last):
            ...
        RuntimeError: distributed.StateDictOptions(): is not supported
    """


class HuggingFaceStorageReader(_Absent):
    """Reader of checkpoints in Hugging Face's format. Not supported: the constructor raises RuntimeError.

    Example:
        >>> from rushlight.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
        >>> HuggingFaceStorageReader("folder")
        Traceback (most recent call last):
            ...
        RuntimeError: distributed.HuggingFaceStorageReader(): is not supported
    """


class HuggingFaceStorageWriter(_Absent):
    """Writer of checkpoints in Hugging Face's format. Not supported: the constructor raises RuntimeError.

    Example:
        >>> from rushlight.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
        >>> HuggingFaceStorageWriter("folder")
        Traceback (most recent call last):
            ...
        RuntimeError: distributed.HuggingFaceStorageWriter(): is not supported
    """
