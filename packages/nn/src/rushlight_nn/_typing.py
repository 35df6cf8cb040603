"""Names for annotations that are defined without importing `typing`, because this import is slow.

The names also exist at run time, so that `typing.get_type_hints` can read the annotations of layers and their subclasses. At
run time, `Any` is `object`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any as Any
    from typing import ClassVar as ClassVar
    from typing import NoReturn as NoReturn
    from typing import Self as Self
    from typing import TypeAlias as TypeAlias
else:
    Any = Self = TypeAlias = object
    NoReturn = None

    class ClassVar:
        def __class_getitem__(cls, item: object) -> type:
            return object
