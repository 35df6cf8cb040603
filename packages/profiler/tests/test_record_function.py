"""`record_function` as a context manager and as a decorator, and while no profile records."""

from __future__ import annotations

import pytest

from rushlight_core.seams.profiler import span
from rushlight_profiler import profile, record_function


def test_it_returns_itself():
    mine = record_function("a")
    assert mine.name == "a"
    assert mine.args is None
    with mine as entered:
        assert entered is mine
    assert record_function("a", "text").args == "text"
    assert record_function(name="a", args="text").args == "text"


def test_text_is_kept():
    with profile() as prof, record_function("load", "batch 3"):
        pass
    event = prof.events()[0]
    assert (event.name, event.args, event.is_user_annotation) == ("load", "batch 3", True)


def test_names_of_any_letters():
    with profile() as prof:
        for name in ("", "naïve ✓", "a\nb", 'quote " and <tag>'):
            with record_function(name):
                pass
    assert [event.name for event in prof.events()] == ["", "naïve ✓", "a\nb", 'quote " and <tag>']


@pytest.mark.parametrize("arguments", [(1,), (None,), ("a", 2)])
def test_wrong_arguments(arguments):
    with pytest.raises(TypeError, match="record_function"):
        record_function(*arguments)
    with pytest.raises(TypeError):
        record_function()
    with pytest.raises(TypeError):
        record_function("a", nonsense=1)


def test_a_name_that_is_no_text_in_utf8():
    with profile(), pytest.raises(UnicodeEncodeError):
        record_function("\ud800").__enter__()
    with record_function("\ud800"):
        pass


def test_decorator(x):
    @record_function("work")
    def work(a, *, b):
        """Adds."""
        return a + b

    assert work(x, b=x).tolist() == (x + x).tolist()
    assert (work.__name__, work.__doc__) == ("work", "Adds.")
    with profile() as prof:
        work(x, b=x)
        work(x, b=1)
    assert [event.name for event in prof.events()] == ["work", "add", "work", "add"]
    assert prof.events()[1].cpu_parent is prof.events()[0]


def test_decorated_methods_and_recursion(x):
    class Net:
        @record_function("forward")
        def forward(self, depth):
            return self.forward(depth - 1) if depth else x + x

    with profile() as prof:
        Net().forward(3)
    row = next(row for row in prof.key_averages() if row.key == "forward")
    assert row.count == 4
    # The time of a call inside another call of the same name is not counted twice.
    assert row.cpu_time_total == pytest.approx(prof.events()[0].cpu_time_total)
    assert row.self_cpu_time_total <= row.cpu_time_total


def test_one_object_entered_twice_is_one_span():
    mine = record_function("twice")
    with profile() as prof:
        with mine, mine:
            pass
        with mine:
            pass
    assert [event.cpu_parent for event in prof.events()] == [None, None]


def test_a_span_that_the_recording_cuts_is_left_out(x):
    before = record_function("before")
    before.__enter__()
    after = record_function("after")
    with profile() as prof:
        before.__exit__(None, None, None)
        after.__enter__()
        x + x
    after.__exit__(None, None, None)
    add = prof.events()[0]
    assert (add.name, add.cpu_parent, len(prof.events())) == ("add", None, 1)
    with profile() as prof, record_function("whole"):
        pass
    assert [event.name for event in prof.events()] == ["whole"]


def test_spans_that_end_in_the_wrong_order(x):
    a, b = record_function("a"), record_function("b")
    with profile() as prof:
        a.__enter__()
        b.__enter__()
        a.__exit__(None, None, None)
        b.__exit__(None, None, None)
        x + x
    assert [event.name for event in prof.events()] == ["a", "add"]
    assert prof.events()[1].cpu_parent is None


def test_spans_of_other_packages(x):
    with span("DataLoader.next"):
        pass
    with profile() as prof, span("DataLoader.next"):
        x + x
    with span("DataLoader.next"):
        pass
    assert [(event.name, event.kind) for event in prof.events()] == [
        ("DataLoader.next", "annotation"),
        ("add", "operator"),
    ]


def test_a_subclass():
    class Named(record_function):
        pass

    with profile() as prof, Named("mine"):
        pass
    assert prof.events()[0].name == "mine"
