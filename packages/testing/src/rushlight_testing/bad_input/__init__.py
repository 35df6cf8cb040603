"""Call every operator with bad input, generated from the operator's YAML entry, in processes that may crash.

`cases_of(op, library)` generates the calls, `judge` and `judge_gradients` run a call and describe its fault, if there is
one, and `hunt` runs all calls in separate processes.
"""

from rushlight_testing.bad_input.cases import Call, Case, cases_of
from rushlight_testing.bad_input.gradients import judge_gradients
from rushlight_testing.bad_input.verdict import judge
from rushlight_testing.bad_input.watch import Report, hunt

__all__ = ["Call", "Case", "Report", "cases_of", "hunt", "judge", "judge_gradients"]
