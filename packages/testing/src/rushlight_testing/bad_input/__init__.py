"""Bad input for every operator, made from its entry, and run in processes that may crash.

`cases_of(op, library)` makes the calls, `judge` and `judge_gradients` describe what is wrong with an outcome, and `hunt`
runs all calls in separate processes.
"""

from rushlight_testing.bad_input.cases import Call, Case, cases_of
from rushlight_testing.bad_input.gradients import judge_gradients
from rushlight_testing.bad_input.verdict import judge
from rushlight_testing.bad_input.watch import Report, hunt

__all__ = ["Call", "Case", "Report", "cases_of", "hunt", "judge", "judge_gradients"]
