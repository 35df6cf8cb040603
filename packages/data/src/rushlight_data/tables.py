"""Datasets whose samples are rows of tables: CSV files, read with pandas, and Parquet files, read with pyarrow."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import rushlight_core as core

from .dataset import Dataset
from .optional import require
from .shared_list import SharedList

__all__ = ["CSVDataset", "ParquetDataset", "read_parquet"]


class _Table(Dataset[dict[str, Any]]):
    """Base class of datasets whose samples are the rows of a table. The columns of the table are in memory."""

    draws_random = False
    path: str
    columns: dict[str, Any]
    _length: int

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not -self._length <= index < self._length:
            raise IndexError(
                f"{type(self).__name__}: index {index} is out of range for {self._length} rows of {self.path!r}"
            )
        return {name: column[index] for name, column in self.columns.items()}

    def __getbatch__(self, indices: Sequence[int]) -> dict[str, Any]:
        indices = list(indices)
        return {
            name: [column[i] for i in indices]
            if isinstance(column, SharedList)
            else core.as_tensor(column[indices])
            for name, column in self.columns.items()
        }


class CSVDataset(_Table):
    """A dataset whose samples are the rows of a CSV file, which `pandas.read_csv` reads when the dataset is created.

    A sample is a dict that maps the name of each column to a value. Columns of numbers are NumPy arrays, and columns of
    strings are a `SharedList`, so forked workers share the memory of all columns. An empty field is NaN in a column of
    numbers.

    Arguments:
        path: path of the file.
        columns: names of the columns to read. Default: all.
        options: further arguments of `pandas.read_csv`, such as `sep` and `dtype`.

    Raises ModuleNotFoundError if pandas is not installed, ValueError for an empty field in a column of strings and for rows
    with more fields than the header, and TypeError for a column that contains neither only numbers nor only strings. A note
    with the path is added to errors that pandas raises.

    Example:
        >>> _ = open("people.csv", "w").write("name,age\\nada,36\\ngrace,85\\n")
        >>> people = CSVDataset("people.csv", dtype={"age": "int64"})
        >>> len(people), people[1]["name"], int(people[1]["age"])
        (2, 'grace', 85)
    """

    def __init__(
        self, path: str | os.PathLike[str], columns: Sequence[str] | None = None, **options: Any
    ) -> None:
        pandas = require("pandas", "CSVDataset", "csv")
        self.path: str = os.fspath(path)
        if columns is not None:
            options["usecols"] = list(columns)
        # By default, pandas takes the first column for row labels if rows have more fields than the header.
        options.setdefault("index_col", False)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("error", "Length of header", pandas.errors.ParserWarning)
                frame = pandas.read_csv(self.path, **options)
        except pandas.errors.ParserWarning:
            raise ValueError(
                f"CSVDataset(path): {self.path!r} has rows with more fields than the header has names\n"
                "hint: pass header=0 and names with a name for each field, or index_col for a column of row labels."
            ) from None
        except Exception as error:
            error.add_note(f"in CSVDataset(path={self.path!r})")
            raise
        if not isinstance(frame, pandas.DataFrame):
            raise TypeError("CSVDataset(options): chunksize and iterator are not supported")
        self._length = len(frame)
        self.columns: dict[str, Any] = {
            name: _csv_column(f"CSVDataset: column {name!r} of {self.path!r}", frame[name])
            for name in (frame.columns if columns is None else columns)
        }


class ParquetDataset(_Table):
    """A dataset whose samples are the rows of a Parquet file, which pyarrow reads when the dataset is created.

    A sample is a dict that maps the name of each column to a value. Columns of numbers and of lists of numbers of a fixed
    size are NumPy arrays, and columns of strings and bytes are a `SharedList`, so forked workers share the memory of all
    columns. `read_parquet` reads files that do not fit into memory.

    Arguments:
        path: path of the file.
        columns: names of the columns to read. Default: all.

    Raises ModuleNotFoundError if pyarrow is not installed, ValueError if a column is missing or has a null, and TypeError if
    the type of a column is not supported. A note with the path is added to errors that pyarrow raises.

    Example:
        >>> import pyarrow, pyarrow.parquet
        >>> pyarrow.parquet.write_table(pyarrow.table({"name": ["ada", "grace"], "age": [36, 85]}), "people.parquet")
        >>> people = ParquetDataset("people.parquet", columns=["age"])
        >>> len(people), int(people[1]["age"])
        (2, 85)
    """

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> None:
        self.path: str = os.fspath(path)
        with _ParquetFile(self.path, columns, "ParquetDataset") as file:
            self.columns: dict[str, Any] = file.read()
            self._length = file.length


def read_parquet(
    path: str | os.PathLike[str], columns: Sequence[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Iterate over the rows of a Parquet file, one row group at a time, for a `ShardStream`.

    Arguments and errors are the same as for `ParquetDataset`.

    Example:
        >>> import pyarrow, pyarrow.parquet
        >>> pyarrow.parquet.write_table(pyarrow.table({"name": ["ada", "grace"]}), "people.parquet")
        >>> [row["name"] for row in read_parquet("people.parquet")]
        ['ada', 'grace']
    """
    with _ParquetFile(os.fspath(path), columns, "read_parquet") as file:
        for group in range(file.groups):
            read = file.read(group)
            for values in zip(*read.values(), strict=True):
                yield dict(zip(read, values, strict=True))


class _ParquetFile:
    """An open Parquet file. `user` is the name with which error messages begin."""

    def __init__(self, path: str, columns: Sequence[str] | None, user: str) -> None:
        self._arrow = require("pyarrow", user, "parquet")
        parquet = require("pyarrow.parquet", user, "parquet")
        self._path, self._user = path, user
        try:
            self._file = parquet.ParquetFile(path)
        except Exception as error:
            self._add_note(error)
            raise
        there = self._file.schema_arrow.names
        self._columns = list(there if columns is None else columns)
        for name in self._columns:
            if name not in there:
                self._file.close()
                raise ValueError(
                    f"{user}(columns): {path!r} has no column {name!r}; it has {', '.join(there)}"
                )
        self.groups: int = self._file.num_row_groups
        self.length: int = self._file.metadata.num_rows

    def __enter__(self) -> _ParquetFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def read(self, group: int | None = None) -> dict[str, Any]:
        """Return the columns of the file, or of one of its row groups."""
        try:
            if group is None:
                table = self._file.read(self._columns)
            else:
                table = self._file.read_row_group(group, self._columns)
        except Exception as error:
            self._add_note(error)
            raise
        where = "" if group is None else f" in row group {group}"
        return {
            name: self._column(f"{self._user}: column {name!r} of {self._path!r}", table.column(name), where)
            for name in self._columns
        }

    def _column(self, what: str, column: Any, where: str) -> Any:
        types = self._arrow.types
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        kind = column.type
        if column.null_count:
            row = column.is_null().to_pylist().index(True)
            raise ValueError(f"{what} has a null at row {row}{where}")
        if _is_number(types, kind):
            return column.to_numpy()
        if types.is_fixed_size_list(kind) and _is_number(types, kind.value_type):
            flat = self._arrow.chunked_array(
                [chunk.flatten() for chunk in column.chunks], type=kind.value_type
            )
            if flat.null_count:
                row = flat.is_null().to_pylist().index(True) // kind.list_size
                raise ValueError(f"{what} has a null in the list at row {row}{where}")
            return flat.to_numpy().reshape(len(column), kind.list_size)
        if any(
            is_kind(kind)
            for is_kind in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
        ):
            return SharedList(column.to_pylist())
        raise TypeError(
            f"{what} is of type {kind}; supported are numbers, strings, bytes and lists of numbers of a fixed size"
        )

    def _add_note(self, error: Exception) -> None:
        error.add_note(f"in {self._user}(path={self._path!r})")


def _is_number(types: Any, kind: Any) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _csv_column(what: str, series: Any) -> Any:
    array = series.to_numpy()
    if array.dtype.kind in "biufc":
        return array
    missing = series.isna().to_numpy()
    if missing.any():
        raise ValueError(
            f"{what} has no value in row {missing.argmax()}\n"
            "Pass keep_default_na=False to read empty strings instead."
        )
    values = array.tolist()
    for row, value in enumerate(values):
        if not isinstance(value, str):
            raise TypeError(
                f"{what} must have numbers or strings; row {row} has a value of type {type(value).__name__}"
            )
    return SharedList(values)
