"""Each rule of advice applies above its threshold, and does not apply just below."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core.seams.profiler import DATA_WAIT, Argument, span
from rushlight_profiler import Recording, profile


def rules(recording):
    return [advice.rule for advice in recording.advice()]


def calls(name, count, each, gap=0.0, **fields):
    """Return rows for `count` calls of `each` microseconds, with gaps of `gap` microseconds."""
    return [("operator", name, i * (each + gap), i * (each + gap) + each, 0, fields) for i in range(count)]


def test_nothing_stands_out(make_recording):
    recording = make_recording(*calls("mm", 200, 50.0, nbytes=1 << 20))
    assert recording.advice() == []
    assert str(recording.advice()) == "Nothing stands out."
    assert make_recording().advice() == []


def test_tiny_operators(make_recording):
    advice = make_recording(*calls("add", 100, 2.0, nbytes=64)).advice()
    assert [item.rule for item in advice] == ["tiny operators"]
    assert advice[0].share == 1
    assert advice[0].time == 200
    assert "100 calls took 2.000us on average" in advice[0].text
    assert "add" in advice[0].title
    assert rules(make_recording(*calls("add", 99, 2.0, nbytes=64))) == []
    assert rules(make_recording(*calls("add", 100, 20.0, nbytes=64))) == []
    assert rules(make_recording(*calls("add", 100, 2.0, nbytes=1 << 20))) == []
    # If there is one large operator beside them, the tiny calls are not reported.
    rest = ("operator", "mm", 1000, 5000, 0, {"nbytes": 1 << 20})
    assert "tiny operators" not in rules(make_recording(*calls("add", 100, 2.0, nbytes=64), rest))


def test_copies_name_what_they_are_called_by(make_recording):
    recording = make_recording(
        ("operator", "reshape", 0, 400, 0, {"nbytes": 1 << 20}),
        ("operator", "clone", 0, 390, 1, {"nbytes": 1 << 20}),
        ("operator", "copy_", 10, 380, 2, {"nbytes": 1 << 20}),
        ("operator", "mm", 400, 1000, 0, {"nbytes": 1 << 20}),
    )
    (advice,) = recording.advice()
    assert advice.rule == "copies"
    assert advice.time == 390  # a copy inside another copy is not counted again
    assert "1 call moved 1.00 MB, most of it in reshape" in advice.text


def test_casts_are_told_from_copies(make_recording):
    pair = {"arguments": (Argument("float32", (9,)), Argument("float64", (9,))), "nbytes": 36}
    recording = make_recording(
        ("operator", "copy_", 0, 300, 0, pair), ("operator", "mm", 300, 1000, 0, {"nbytes": 1 << 20})
    )
    assert "casts" in rules(recording)
    assert "copies" not in rules(recording)


def test_waiting_for_data(make_recording):
    wait = ("annotation", DATA_WAIT, 0, 600, 0)
    work = ("operator", "mm", 600, 2000, 0, {"nbytes": 1 << 20})
    (advice,) = make_recording(wait, work).advice()
    assert (advice.rule, advice.share) == ("waiting for data", 0.3)
    assert "num_workers" in advice.text
    assert rules(make_recording(("annotation", DATA_WAIT, 0, 100, 0), work)) == []


def test_between_operators(make_recording):
    advice = make_recording(*calls("mm", 20, 50.0, gap=150.0, nbytes=1 << 20)).advice()
    assert [item.rule for item in advice] == ["between operators"]
    assert 0.7 < advice[0].share < 0.75
    assert rules(make_recording(*calls("mm", 20, 50.0, gap=40.0, nbytes=1 << 20))) == []


def test_waiting_is_not_counted_as_python(make_recording):
    rows = [("annotation", DATA_WAIT, 0, 1800, 0), ("operator", "mm", 1800, 2000, 0, {"nbytes": 1 << 20})]
    assert rules(make_recording(*rows)) == ["waiting for data"]


def test_double_precision(make_recording):
    wide = {"arguments": (Argument("float64", (99,)), None), "nbytes": 1 << 20}
    (advice,) = make_recording(*calls("mm", 10, 100.0, **wide)).advice()
    assert advice.rule == "double precision"
    single = {"arguments": (Argument("float32", (99,)), None), "nbytes": 1 << 20}
    assert rules(make_recording(*calls("mm", 10, 100.0, **single))) == []


def test_missing_events(make_recording):
    (advice,) = make_recording(("operator", "mm", 0, 1, 0), dropped=3).advice()
    assert (advice.rule, advice.share) == ("missing events", 0.75)


def test_the_greatest_share_comes_first(make_recording):
    recording = make_recording(*calls("add", 200, 5.0, gap=15.0, nbytes=64))
    shares = [advice.share for advice in recording.advice()]
    assert len(shares) == 2
    assert shares == sorted(shares, reverse=True)
    assert str(recording.advice()).count("\n") >= 3


def test_a_real_loop_over_elements():
    x = core.tensor([1.0] * 16)
    with profile() as prof:
        for _ in range(500):
            with span("nothing to do with data"):
                x + x
    # Ignore calls that were interrupted by another process, whose times are arbitrary.
    brief = [
        e._replace(parent=0) for e in prof.recording.raw if e.kind == "operator" and e.end - e.begin < 10_000
    ]
    assert "tiny operators" in rules(Recording(prof.recording.header, brief))
