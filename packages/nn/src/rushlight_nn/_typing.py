"""Names for annotations, without the time that importing `typing` takes.

They are defined at run time, too, so that `typing.get_type_hints` can read the annotations of layers and of classes derived
from them; `Any` is then `object`.
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
