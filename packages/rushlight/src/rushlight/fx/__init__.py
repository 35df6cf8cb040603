"""Tracing, changing and running programs as graphs of Python calls, with the names of `torch.fx`.

`symbolic_trace` runs a module once with proxies, which have no values, in place of its arguments. `export` instead runs a
module with values and records the operators, so that the program can run without Python.
"""

from __future__ import annotations

from rushlight.fx import operator_schemas as operator_schemas
from rushlight.fx import passes as passes
from rushlight.fx import subgraph_rewriter as subgraph_rewriter
from rushlight.fx import traceback as traceback
from rushlight.fx._symbolic_trace import PH as PH
from rushlight.fx._symbolic_trace import ProxyableClassMeta, Tracer, symbolic_trace, wrap
from rushlight.fx.graph import CodeGen, Graph, PythonCode
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter, Transformer
from rushlight.fx.node import Node, has_side_effect, map_arg
from rushlight.fx.proxy import Proxy
from rushlight.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "PythonCode",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
