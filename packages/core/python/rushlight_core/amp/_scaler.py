"""GradScaler: scaling of losses, so that gradients in float16 do not underflow."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

from .. import _C
from .._grad_mode import no_grad

_READY, _UNSCALED, _STEPPED = range(3)


def _stored_values(grad: _C.Tensor) -> _C.Tensor:
    """Return the gradient itself if it is dense, or the tensor of its stored values if it is sparse."""
    parts = _C._sparse_parts(grad)
    return grad if parts is None else parts[3]


class GradScaler:
    """Multiply losses by a scale, divide gradients by it, and skip steps whose gradients are not finite.

    The scale grows while steps succeed and shrinks when a step is skipped (Micikevicius et al. 2018)::

        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    Args:
        device: the type of device, "cuda" or "cpu". The scaler is disabled if there is no such device.
        init_scale: the initial scale.
        growth_factor: the factor by which the scale is multiplied after `growth_interval` consecutive steps
            without a skipped step.
        growth_interval: the number of consecutive steps after which the scale grows. A skipped step resets
            the count to 0.
        backoff_factor: the factor by which the scale is multiplied after a skipped step.
        enabled: if False, the scaler does nothing.

    Raises:
        ValueError: `growth_factor` is not above 1, or `backoff_factor` is not between 0 and 1.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = str(device)
        if enabled and self._device.startswith("cuda") and not _C._device_count("cuda"):
            warnings.warn("GradScaler('cuda') does nothing: there is no GPU", UserWarning, stacklevel=2)
            enabled = False
        self._enabled = enabled
        if not growth_factor > 1.0:
            raise ValueError(f"GradScaler(growth_factor): got {growth_factor}, needs a number above 1")
        if not 0.0 < backoff_factor < 1.0:
            raise ValueError(
                f"GradScaler(backoff_factor): got {backoff_factor}, needs a number between 0 and 1"
            )
        self._scale = float(init_scale)
        self._was_used = False  # whether `scale` was called
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0  # consecutive steps with finite gradients
        # For each optimizer: its stage since the last update, and whether its gradients are finite.
        self._stages: dict[Any, tuple[int, bool]] = {}

    def is_enabled(self) -> bool:
        """Return whether the scaler is enabled."""
        return self._enabled

    def scale(self, outputs: Any) -> Any:
        """Multiply one or several tensors by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, _C.Tensor):
            self._was_used = True
            return outputs * self._scale
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError(
            f"GradScaler.scale(outputs): got {type(outputs).__name__}, needs a tensor or several tensors"
        )

    def _check_used(self, method: str) -> None:
        if not self._was_used:
            # The first words are PyTorch's, whose scaler has no scale before the first call of `scale`.
            raise AssertionError(
                f"Attempted {method} but _scale is None: GradScaler.scale() was not called before {method}()\n"
                "hint: compute the gradients by scaler.scale(loss).backward()"
            )

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of the optimizer's parameters by the scale, in place, for example before clipping them.

        Raises:
            AssertionError: `scale` was never called, so the gradients are not scaled.
            RuntimeError: `unscale_` or `step` was already called for this optimizer since the last `update`.
            ValueError: a gradient is float16, in which an unscaled gradient may underflow; parameters must be float32.
        """
        if not self._enabled:
            return
        self._check_used("unscale_")
        stage, _ = self._stages.get(optimizer, (_READY, True))
        if stage != _READY:
            what = "unscale_() was called already" if stage == _UNSCALED else "step() was called already"
            raise RuntimeError(f"GradScaler.unscale_(optimizer): {what} since the last update()")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(grad.dtype is _C.float16 for grad in grads):
            raise ValueError(
                "GradScaler.unscale_(optimizer): gradients must not be float16\nhint: keep the parameters in float32"
            )
        with no_grad():
            inverse = 1.0 / self._scale
            stored = [_stored_values(grad) for grad in grads]
            # The check comes first, so that gradients are unchanged if it raises an error.
            finite = all(bool(_C.isfinite(values * inverse).all()) for values in stored)
            for values in stored:
                values.mul_(inverse)
        self._stages[optimizer] = (_UNSCALED, finite)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Divide the gradients by the scale, and call `optimizer.step(*args, **kwargs)` if all gradients are finite.

        If `unscale_` has already divided the gradients, they are not divided again.

        Raises:
            AssertionError: `scale` was never called, so the gradients are not scaled.
            RuntimeError: `step` was already called for this optimizer since the last `update`, or a closure
                is given.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError(
                "GradScaler.step(closure): is not supported, since gradients that a closure computes cannot be unscaled"
            )
        self._check_used("step")
        stage, finite = self._stages.get(optimizer, (_READY, True))
        if stage == _STEPPED:
            raise RuntimeError(
                "GradScaler.step(optimizer): step() was called already since the last update()"
            )
        if stage == _READY:
            self.unscale_(optimizer)
            finite = self._stages[optimizer][1]
        result = optimizer.step(*args, **kwargs) if finite else None
        self._stages[optimizer] = (_STEPPED, finite)
        return result

    def update(self, new_scale: Any = None) -> None:
        """Update the scale after the steps of an iteration, or set it to `new_scale`.

        Raises:
            AssertionError: `scale` was never called.
            RuntimeError: `new_scale` is None, and neither `unscale_` nor `step` was called since the last update.
        """
        if not self._enabled:
            return
        self._check_used("update")
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            if not self._stages:
                raise RuntimeError("GradScaler.update(): step() was not called since the last update()")
            if not all(finite for _, finite in self._stages.values()):
                self._scale *= self._backoff_factor
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    grown = self._scale * self._growth_factor
                    self._scale = grown if math.isfinite(grown) else self._scale
                    self._growth_tracker = 0
        self._stages.clear()

    def get_scale(self) -> float:
        """Return the scale, or 1 if the scaler is disabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale is multiplied after `growth_interval` successful steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale is multiplied after `growth_interval` successful steps."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale is multiplied after a skipped step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale is multiplied after a skipped step."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of steps after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps after which the scale grows."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """Return the state for `load_state_dict`; it is empty if the scaler is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned.

        Raises:
            RuntimeError: the state is empty, because the scaler that returned it was disabled.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "GradScaler.load_state_dict: the state is empty: it was saved from a scaler that was not enabled"
            )
        self._scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
