"""Nested containers as trees, under the path that programs import them by: :mod:`rushlight_core.pytree`."""

from rushlight_core.pytree import (
    SUPPORTED_NODES as SUPPORTED_NODES,
)
from rushlight_core.pytree import (
    Context as Context,
)
from rushlight_core.pytree import (
    GetAttrKey as GetAttrKey,
)
from rushlight_core.pytree import (
    KeyPath as KeyPath,
)
from rushlight_core.pytree import (
    LeafSpec as LeafSpec,
)
from rushlight_core.pytree import (
    MappingKey as MappingKey,
)
from rushlight_core.pytree import (
    NodeDef as NodeDef,
)
from rushlight_core.pytree import (
    PyTree as PyTree,
)
from rushlight_core.pytree import (
    SequenceKey as SequenceKey,
)
from rushlight_core.pytree import (
    TreeSpec as TreeSpec,
)
from rushlight_core.pytree import (
    _defaultdict_flatten as _defaultdict_flatten,
)
from rushlight_core.pytree import (
    _defaultdict_unflatten as _defaultdict_unflatten,
)
from rushlight_core.pytree import (
    _deque_flatten as _deque_flatten,
)
from rushlight_core.pytree import (
    _deque_unflatten as _deque_unflatten,
)
from rushlight_core.pytree import (
    _dict_flatten as _dict_flatten,
)
from rushlight_core.pytree import (
    _dict_flatten_with_keys as _dict_flatten_with_keys,
)
from rushlight_core.pytree import (
    _dict_unflatten as _dict_unflatten,
)
from rushlight_core.pytree import (
    _get_node_type as _get_node_type,
)
from rushlight_core.pytree import (
    _is_leaf as _is_leaf,
)
from rushlight_core.pytree import (
    _is_namedtuple_instance as _is_namedtuple_instance,
)
from rushlight_core.pytree import (
    _list_flatten as _list_flatten,
)
from rushlight_core.pytree import (
    _list_flatten_with_keys as _list_flatten_with_keys,
)
from rushlight_core.pytree import (
    _list_unflatten as _list_unflatten,
)
from rushlight_core.pytree import (
    _namedtuple_flatten as _namedtuple_flatten,
)
from rushlight_core.pytree import (
    _namedtuple_unflatten as _namedtuple_unflatten,
)
from rushlight_core.pytree import (
    _ordereddict_unflatten as _ordereddict_unflatten,
)
from rushlight_core.pytree import (
    _register_pytree_node as _register_pytree_node,
)
from rushlight_core.pytree import (
    _tuple_flatten as _tuple_flatten,
)
from rushlight_core.pytree import (
    _tuple_unflatten as _tuple_unflatten,
)
from rushlight_core.pytree import (
    keystr as keystr,
)
from rushlight_core.pytree import (
    map_only as map_only,
)
from rushlight_core.pytree import (
    register_pytree_node as register_pytree_node,
)
from rushlight_core.pytree import (
    tree_all as tree_all,
)
from rushlight_core.pytree import (
    tree_all_only as tree_all_only,
)
from rushlight_core.pytree import (
    tree_any as tree_any,
)
from rushlight_core.pytree import (
    tree_any_only as tree_any_only,
)
from rushlight_core.pytree import (
    tree_flatten as tree_flatten,
)
from rushlight_core.pytree import (
    tree_flatten_with_path as tree_flatten_with_path,
)
from rushlight_core.pytree import (
    tree_iter as tree_iter,
)
from rushlight_core.pytree import (
    tree_leaves as tree_leaves,
)
from rushlight_core.pytree import (
    tree_map as tree_map,
)
from rushlight_core.pytree import (
    tree_map_ as tree_map_,
)
from rushlight_core.pytree import (
    tree_map_only as tree_map_only,
)
from rushlight_core.pytree import (
    tree_map_only_ as tree_map_only_,
)
from rushlight_core.pytree import (
    tree_map_with_path as tree_map_with_path,
)
from rushlight_core.pytree import (
    tree_structure as tree_structure,
)
from rushlight_core.pytree import (
    tree_unflatten as tree_unflatten,
)
