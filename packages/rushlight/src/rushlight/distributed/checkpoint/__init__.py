"""Checkpoints that several processes write together: there are none.

`torch.save(max_shard_size=...)` writes several files in parallel. The names here are for libraries that import them; using
them raises RuntimeError.
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
    """What reads files of several processes."""


class FileSystemWriter(_Absent):
    """What writes files of several processes."""


class StateDictOptions(_Absent):
    """Which parts of a state are wanted."""


class HuggingFaceStorageReader(_Absent):
    """What reads shards that have Hugging Face's index."""


class HuggingFaceStorageWriter(_Absent):
    """What writes shards with Hugging Face's index."""
