"""Compare one entry of the operator database in both libraries.

For each dtype in turn (DTYPES, and one integer), every sample is called in both libraries. The comparison covers the kinds,
numbers, shapes, dtypes and values of the results, which of them require grad, and the gradients by all tensors of the
sample, from fixed gradients of the results. For arguments that must raise an error, the class of the error is compared: a
handler of PyTorch's error must catch ours.

If values differ, PyTorch runs again. If it gives other values with another seed, the operator is random, and only shapes and
dtypes are compared. If results are not unique, the values that the database derives from them are compared. If there is a
wider dtype, the result in it is the reference: our error may be 1.5 times PyTorch's, and for gradients three times
PyTorch's. Calls that PyTorch refuses are skipped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from opinfo.translate import AbsentError, Recipe, Translator, UnsupportedError, name_of, rebuilt, recipe

DTYPES = ("float32", "float64", "bool", "bfloat16", "complex64")
INTEGERS = ("int64", "int32", "uint8", "int16", "int8")  # the first that an operator supports
SAMPLES = 150  # of one dtype; if there are more, this many are chosen at even distances
TOLERANCES = {
    "float64": 1e-9,
    "float32": 2e-5,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "complex64": 2e-5,
    "complex128": 1e-9,
}
UNITS = {
    "float32": 2**-23,
    "float16": 2**-10,
    "bfloat16": 2**-7,
    "complex64": 2**-23,
}  # one unit in the last place of 1
GRADIENT_FACTOR = 3.0  # times PyTorch's error, since the libraries round after different steps
WIDER = {"float32": "float64", "bfloat16": "float32", "float16": "float32", "complex64": "complex128"}


@dataclass(frozen=True)
class Difference:
    """One difference from PyTorch."""

    op: str
    kind: str  # one of report.KINDS
    dtype: str
    sample: str
    text: str


@dataclass
class Row:
    """The result of the comparison of one entry."""

    op: str
    samples: int = 0
    gradients: int = 0
    errors: int = 0
    refused: int = 0  # samples that PyTorch refused
    skipped: int = 0  # kinds of tensors that are out of scope
    absent: str = ""  # names that rushlight lacks
    differences: list[Difference] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def of_json(data: dict[str, Any]) -> Row:
        return Row(**{**data, "differences": [Difference(**d) for d in data["differences"]]})


@dataclass
class Outcome:
    """The outcome of a call: flat results and gradients, or an error."""

    error: Exception | None = None
    structure: Any = None
    results: list[Any] = field(default_factory=list)
    processed: list[Any] = field(default_factory=list)  # unique values derived from the results
    gradients: list[Any] | None = None  # None if there are none
    refused: Exception | None = None  # by backward


class Sample:
    """A sample as recipes: both libraries make their own arguments from it, as often as needed."""

    def __init__(self, sample: Any, index: str) -> None:
        self.index = index
        frozen: dict[int, Recipe] = {}
        kept: list[Any] = []

        def freeze(value: Any) -> Any:
            if hasattr(value, "untyped_storage"):
                kept.append(value)
                return frozen.setdefault(id(value), recipe(value))
            return rebuilt(value, freeze)

        self.arguments = freeze(((sample.input, *sample.args), dict(sample.kwargs)))
        self.text = f"{index}: {described(self.arguments[0], self.arguments[1])}"
        self.process = getattr(sample, "output_process_fn_grad", None)

    def made(self, make: Callable[[Any], Any]) -> tuple[Any, Any, list[Any]]:
        """Return the positional arguments, the keyword arguments, and the leaves among both."""
        known: dict[int, Any] = {}
        leaves: list[Any] = []

        def thaw(value: Any) -> Any:
            if isinstance(value, Recipe):
                if id(value) not in known:
                    known[id(value)] = make(value)
                    if value.requires_grad:
                        leaves.append(known[id(value)])
                return known[id(value)]
            changed = rebuilt(value, thaw)
            return make(value) if changed is value else changed

        args, kwargs = thaw(self.arguments)
        return args, kwargs, leaves


class Comparison:
    """Both libraries, and the comparison of one entry."""

    def __init__(self, theirs: Any, ours: Any, note: Callable[[str], None] = lambda _: None) -> None:
        self.theirs, self.ours, self.note = theirs, ours, note
        self.translator, self.unseeded = Translator(theirs, ours), Translator(theirs, theirs)
        self.wider = {getattr(theirs, a): getattr(theirs, b) for a, b in WIDER.items()}

    def row(self, entry: Any) -> Row:
        self.entry, self.found = entry, Row(entry.formatted_name)
        if "jiterator" in entry.formatted_name or "triton" in entry.formatted_name:
            return self.found  # kernels of GPUs
        try:
            self.function = self.translator.function(entry)
            for dtype in self._dtypes():
                self._dtype(dtype)
            self._errors()
        except AbsentError as absent:
            self.found.absent = str(absent)
        return self.found

    def _dtypes(self) -> list[str]:
        there = {name_of(d) for d in self.entry.supported_dtypes("cpu")}
        integers = [d for d in INTEGERS if d in there][:1]
        return [d for d in (*DTYPES[:2], *integers, *DTYPES[2:]) if d in there]

    # --- results and gradients ---

    def _dtype(self, dtype: str) -> None:
        kind = getattr(self.theirs, dtype)
        requires_grad = kind in self.entry.supported_backward_dtypes("cpu")
        samples = self._samples(lambda: self.entry.sample_inputs("cpu", kind, requires_grad=requires_grad))
        for sample in spread(samples, SAMPLES):
            self._sample(sample, dtype)

    def _samples(self, make: Callable[[], Iterable[Any]], inner: str = "") -> list[Sample]:
        """Return the samples that both libraries can run."""
        self._seed(0)
        made = []
        try:
            for k, given in enumerate(make()):
                try:
                    made.append(Sample(getattr(given, inner) if inner else given, str(k)))
                except UnsupportedError:
                    self.found.skipped += 1
        except Exception:  # the function that makes the samples fails on this machine
            self.found.skipped += 1
        return made

    def _sample(self, sample: Sample, dtype: str) -> None:
        def said(check: str, text: str) -> None:
            first = text.splitlines()[0] if text else ""
            self.found.differences.append(
                Difference(self.entry.formatted_name, check, dtype, sample.text, first)
            )

        theirs = self._there(sample)
        if theirs.error is not None:
            self.found.refused += 1
            return
        try:
            ours = self._here(sample)
        except UnsupportedError:
            self.found.skipped += 1
            return
        self.found.samples += 1
        if ours.error is not None:
            said("raises", f"{type(ours.error).__name__}: {ours.error}")
            return
        if ours.structure != theirs.structure:
            said("shape", f"{ours.structure}, not {theirs.structure}")
            return
        for k, (x, y) in enumerate(zip(ours.results, theirs.results, strict=True)):
            check, text = self._apart(x, y, functools.partial(self._wide_result, sample, k))
            if check == "values" and (self._is_random(sample) or self._same_processed(sample, ours, theirs)):
                break
            if check:
                said(check, f"result {k}: {text}" if len(ours.results) > 1 else text)
            elif hasattr(y, "requires_grad") and y.numel() and y.requires_grad != x.requires_grad:
                said("gradient", f"requires_grad of result {k} is {x.requires_grad}, not {y.requires_grad}")
        if theirs.gradients is None or not any(g is not None and g.numel() for g in theirs.gradients):
            return
        self.found.gradients += 1
        if ours.gradients is None:
            said("gradient", f"backward raises {ours.refused}" if ours.refused else "there is none")
            return
        for k, (x, y) in enumerate(zip(ours.gradients, theirs.gradients, strict=True)):
            if x is None or y is None:
                known = y if x is None else x
                if known is not None and bool((known != 0).any()):
                    said("gradient", f"of tensor {k}: {'None' if x is None else 'a tensor'}, not the other")
                continue
            check, text = self._apart(
                x, y, functools.partial(self._wide_gradient, sample, k), GRADIENT_FACTOR
            )
            if check == "values" and self._is_random(sample):
                return
            if check:
                said("gradient", f"of tensor {k}: {text}")

    def _there(self, sample: Sample, widen: bool = False) -> Outcome:
        wider = self.wider if widen else {}

        def make(value: Any) -> Any:
            return value.theirs(wider) if isinstance(value, Recipe) else value

        self.note(f"PyTorch, sample {sample.text}")
        return self._called(self.theirs, self.entry.op, sample, make, lambda process: process)

    def _here(self, sample: Sample) -> Outcome:
        self.note(f"here, sample {sample.text}")
        return self._called(self.ours, self.function, sample, self.translator.value, self.translator.callable)

    def _called(
        self,
        library: Any,
        function: Any,
        sample: Sample,
        make: Callable[[Any], Any],
        bind: Callable[[Any], Any],
    ) -> Outcome:
        args, kwargs, leaves = sample.made(make)
        self._seed(1)
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            if library is self.ours and (missing := _missing(error, library)):
                raise AbsentError(missing) from error
            if library is self.ours and "there is no operator of this name" in str(error):
                raise AbsentError(str(error).partition(":")[0]) from error
            return Outcome(error=error)
        processed = bind(sample.process)(result) if sample.process else result
        outcome = Outcome(None, structure(result), flat(result), flat(processed))
        if not leaves:
            return outcome
        found = [y for y in outcome.processed if hasattr(y, "requires_grad") and y.requires_grad]
        if not found:
            return outcome
        try:
            outcome.gradients = list(
                library.autograd.grad(
                    found, leaves, [self._cotangent(library, y) for y in found], allow_unused=True
                )
            )
        except Exception as error:
            outcome.refused = error
        return outcome

    @staticmethod
    def _cotangent(library: Any, y: Any) -> Any:
        """Return the incoming gradient of a result, of any dtype, which is a different number for each element."""
        ramp = (library.arange(y.numel(), dtype=library.int64) * 37) % 64
        ramp = (ramp.to(library.float64) / 64 + 0.5).reshape(y.shape)
        return (ramp * (1 - 0.5j) if y.is_complex() else ramp).to(y.dtype)

    def _seed(self, seed: int) -> None:
        self.theirs.manual_seed(seed)
        self.ours.manual_seed(seed)

    def _reference(self, sample: Sample) -> Outcome:
        """Return PyTorch's results in the next wider dtype."""
        outcome = self._there(sample, widen=True)
        if outcome.error is not None:
            raise outcome.error
        return outcome

    def _same_processed(self, sample: Sample, ours: Outcome, theirs: Outcome) -> bool:
        """Return whether the values that the database derives from non-unique results agree."""
        if len(ours.processed) != len(theirs.processed):
            return False
        wide = functools.cache(lambda: self._reference(sample).processed)

        def element(k: int) -> Any:
            return wide()[k]

        pairs = enumerate(zip(ours.processed, theirs.processed, strict=True))
        return not any(self._apart(x, y, functools.partial(element, k))[0] for k, (x, y) in pairs)

    def _wide_result(self, sample: Sample, k: int) -> Any:
        return self._reference(sample).results[k]

    def _wide_gradient(self, sample: Sample, k: int) -> Any:
        return (self._reference(sample).gradients or [])[k]

    def _is_random(self, sample: Sample) -> bool:
        """Return whether PyTorch's results depend on the seed or are uninitialized."""
        if "empty" in self.entry.name:
            return True
        function = self.unseeded.callable(self.entry.op)  # without the seed that the database sets
        before = None
        for seed in range(2, 10):
            args, kwargs, _ = sample.made(lambda v: v.theirs() if isinstance(v, Recipe) else v)
            self._seed(seed)
            results = [r for r in flat(function(*args, **kwargs)) if hasattr(r, "numel")]
            now = [array(r).tobytes() for r in results]
            if before not in (None, now):
                return True
            before = now
        return False

    def _apart(self, x: Any, y: Any, reference: Callable[[], Any], factor: float = 1.5) -> tuple[str, str]:
        """Return the check that fails and why, or two empty texts."""
        if not hasattr(y, "numel") or not hasattr(x, "numel"):
            same = x == y or (x != x and y != y) or name_of(x) == name_of(y)
            return ("", "") if same else ("values", f"{x!r}, not {y!r}")
        if name_of(x.dtype) != name_of(y.dtype):
            return "dtype", f"{name_of(x.dtype)}, not {name_of(y.dtype)}"
        if tuple(x.shape) != tuple(y.shape):
            return "shape", f"{tuple(x.shape)}, not {tuple(y.shape)}"
        if name_of(x.layout) != name_of(y.layout):
            return "shape", f"{name_of(x.layout)}, not {name_of(y.layout)}"
        text = apart(array(x), array(y), TOLERANCES.get(name_of(x.dtype), 0.0))
        if text and name_of(x.dtype) in WIDER:
            try:
                wide = reference()
            except Exception:  # there is none
                return "values", text
            if (
                wide is not None
                and tuple(wide.shape) == tuple(y.shape)
                and as_near(array(x), array(y), array(wide), UNITS[name_of(x.dtype)], factor)
            ):
                return "", ""
        return ("values", text) if text else ("", "")

    # --- errors ---

    def _errors(self) -> None:
        if self.entry.error_inputs_func is None:
            return
        expected: list[Any] = []

        def errors() -> Iterable[Any]:
            for error in self.entry.error_inputs("cpu"):
                expected.append(error.error_type)
                yield error

        for sample in self._samples(errors, "sample_input"):
            theirs = self._there(sample).error
            if theirs is None:
                continue
            try:
                ours = self._here(sample).error
            except UnsupportedError:
                self.found.skipped += 1
                continue
            self.found.errors += 1
            wanted = f"{type(theirs).__name__} ({str(theirs).splitlines()[0][:100] if str(theirs) else ''})"
            said = None
            if ours is None:
                said = "raises", f"nothing, not {wanted}"
            elif not caught_like(ours, theirs) and not isinstance(ours, expected[int(sample.index)]):
                said = "error", f"{type(ours).__name__} ({str(ours).splitlines()[0][:60]}), not {wanted}"
            if said:
                self.found.differences.append(
                    Difference(self.entry.formatted_name, said[0], "error", f"error {sample.text}", said[1])
                )


# --- without a library ---


def spread(items: list[Any], count: int) -> list[Any]:
    """Return at most `count` of the items, at even distances, including the first and the last."""
    if len(items) <= count:
        return items
    return [items[round(i * (len(items) - 1) / (count - 1))] for i in range(count)]


def flat(results: Any) -> list[Any]:
    """Return results as a flat list: tuples, lists and dicts are flattened."""
    if isinstance(results, dict):
        results = tuple(results.values())
    if isinstance(results, (tuple, list)):
        return [one for r in results for one in flat(r)]
    return [results]


def structure(results: Any) -> Any:
    """Return the structure of results: names of fields, numbers of elements, and the positions of tensors."""
    if isinstance(results, dict):
        return {k: structure(v) for k, v in results.items()}
    if isinstance(results, (tuple, list)):
        inner = [structure(r) for r in results]
        return inner if len(set(map(str, inner))) > 1 else [len(inner), *inner[:1]]
    return "tensor" if hasattr(results, "numel") else "value"


def array(tensor: Any) -> Any:
    """Return a tensor of either library as a NumPy array: bfloat16 becomes float32, and sparse tensors dense."""
    tensor = tensor.detach()
    if name_of(tensor.layout) != "strided":
        tensor = tensor.to_dense()
    if name_of(tensor.dtype) == "bfloat16":
        tensor = tensor.float()
    if getattr(tensor, "_is_zerotensor", bool)():  # PyTorch may only mark a tensor as zero
        return tensor.numpy(force=True)
    return tensor.resolve_conj().resolve_neg().numpy()


def apart(a: Any, b: Any, tolerance: float) -> str:
    """Describe where and how two arrays differ by more than the tolerance; return an empty text if they do not."""
    import numpy as np

    with np.errstate(all="ignore"):
        if a.dtype.kind == "c":  # NaN and infinities of each part
            return apart(a.real, b.real, tolerance) or apart(a.imag, b.imag, tolerance)
        near = (a == b) if a.dtype.kind not in "f" else np.isclose(a, b, tolerance, tolerance, equal_nan=True)
    if near.all():
        return ""
    at = np.unravel_index(int(np.argmin(near)), near.shape)
    return f"{a[at]}, not {b[at]}, at {tuple(int(i) for i in at)}"


def as_near(a: Any, b: Any, reference: Any, unit: float = 0.0, factor: float = 1.5) -> bool:
    """Return whether the largest error of `a` is at most `factor` times that of `b`, plus half a unit of rounding."""
    import numpy as np

    with np.errstate(all="ignore"):
        special = ~np.isfinite(reference)
        if special.any() and not np.array_equal(
            a[special], reference[special].astype(a.dtype), equal_nan=True
        ):
            return False
        mine, other = (np.abs(x[~special] - reference[~special]) for x in (a, b))
    if not mine.size:
        return True
    half = 0.5 * unit * np.abs(reference[~special]).max()
    return bool(np.isfinite(mine).all() and mine.max() <= factor * np.nan_to_num(other, nan=0.0).max() + half)


def caught_like(mine: Exception, other: Exception) -> bool:
    """Return whether a handler of the other's class, by its name, catches mine."""
    return type(other).__name__.lstrip("_") in {c.__name__.lstrip("_") for c in type(mine).__mro__}


def described(args: Any, kwargs: dict[str, Any]) -> str:
    """Return a short text of arguments: tensors by dtype and shape."""
    parts = [_described(a) for a in args] + [f"{k}={_described(v)}" for k, v in kwargs.items()]
    text = ", ".join(parts)
    return text if len(text) <= 160 else text[:157] + "..."


def _described(value: Any) -> str:
    if isinstance(value, Recipe):
        return f"{name_of(value.dtype)}{value.shape}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_described(v) for v in value)}]"
    text = getattr(value, "__name__", None) or str(value)
    return text.splitlines()[0][:60] if text else "''"


def _missing(error: Exception, library: Any) -> str:
    """Return the missing attribute of our library that an AttributeError names; an empty text for other errors."""
    if not isinstance(error, AttributeError) or error.name is None:
        return ""
    asked = error.obj
    own = getattr(type(asked), "__module__", "").startswith("rushlight") or getattr(
        asked, "__name__", ""
    ).startswith(library.__name__)
    return str(error.name) if own else ""
