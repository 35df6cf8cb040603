"""Programs as data: what `torch.export` has, as far as it is here. See rushlight_graph."""

from rushlight_graph import Dim as Dim
from rushlight_graph import ExportedProgram as ExportedProgram
from rushlight_graph import export as export
from rushlight_graph import load as load
from rushlight_graph import save as save

__all__ = ["Dim", "ExportedProgram", "export", "load", "save"]
