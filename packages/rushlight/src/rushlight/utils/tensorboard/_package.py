"""The protobuf messages and the event-file writer of the installed package `tensorboard` or `tensorboardX`.

Both packages define the same messages, in modules with different names.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

_NAMES = ("tensorboard", "tensorboardX")


def _import(in_tensorboard: str, in_tensorboardx: str) -> ModuleType:
    for package, module in zip(_NAMES, (in_tensorboard, in_tensorboardx), strict=True):
        try:
            return import_module(f"{package}.{module}")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != package:
                raise  # the package is installed, but lacks one of its requirements
    raise ModuleNotFoundError(
        "rushlight.utils.tensorboard: needs the package tensorboard or tensorboardX\nhint: pip install tensorboard",
        name="tensorboard",
    )


def _message(name: str) -> ModuleType:
    return _import(f"compat.proto.{name}_pb2", f"proto.{name}_pb2")


EventFileWriter: Any = _import("summary.writer.event_file_writer", "event_file_writer").EventFileWriter
event: Any = _message("event")
summary: Any = _message("summary")
tensor: Any = _message("tensor")
shape: Any = _message("tensor_shape")
types: Any = _message("types")
graph: Any = _message("graph")
node: Any = _message("node_def")
attributes: Any = _message("attr_value")
versions: Any = _message("versions")
layout: Any = _import("plugins.custom_scalar.layout_pb2", "proto.layout_pb2")
hparams: Any = _import("plugins.hparams.plugin_data_pb2", "proto.plugin_hparams_pb2")
hparams_api: Any = _import("plugins.hparams.api_pb2", "proto.api_pb2")
pr_curve: Any = _import("plugins.pr_curve.plugin_data_pb2", "proto.plugin_pr_curve_pb2")
text: Any = _import("plugins.text.plugin_data_pb2", "proto.plugin_text_pb2")
mesh: Any = _import("plugins.mesh.plugin_data_pb2", "proto.plugin_mesh_pb2")
