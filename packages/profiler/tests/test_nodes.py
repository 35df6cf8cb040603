"""Backward nodes, reported by core's hooks as autograd's engine reports them."""

from __future__ import annotations

import threading

from rushlight_profiler import profile, record_function


def backward(hooks, *nodes):
    for name, sequence in nodes:
        hooks.observer.node_begin(name.encode(), sequence)
        hooks.observer.node_end(sequence)


def test_nobody_watches_while_nobody_records(hooks):
    assert hooks.observer is None
    with profile():
        assert hooks.observer is not None
    assert hooks.observer is None


def test_nodes_are_spans(hooks, x):
    with profile() as prof:
        hooks.observer.node_begin(b"AddBackward", 5)
        x + x
        hooks.observer.node_end(5)
    node, add = prof.events()
    assert (node.name, node.kind, node.sequence_nr) == ("AddBackward", "node", 5)
    assert add.cpu_parent is node
    assert node.fwd_thread is None


def test_nodes_know_the_thread_of_their_operators(hooks, x, make_recording):
    # Record the node on a separate thread, as an engine does. The sequence number is the number that node_made
    # reports for the operator.
    with profile() as prof:
        thread = threading.Thread(target=backward, args=(hooks, ("MulBackward", 9)))
        thread.start()
        thread.join()
    node = prof.events()[0]
    assert node.thread != threading.get_native_id()
    recording = make_recording(
        ("operator", "mul", 0, 1, 0, {"sequence": 9, "thread": 3}),
        ("node", "MulBackward", 2, 3, 0, {"sequence": 9, "thread": 4}),
    )
    assert recording.events()[1].fwd_thread == 3


def test_the_innermost_operator_gets_the_number(hooks, x):
    # No operator is open to which the number could belong: an annotation is not an operator.
    with profile() as prof:
        with record_function("span"):
            hooks.observer.node_made(3)
        hooks.observer.node_made(4)
        x + x
    assert [event.sequence_nr for event in prof.events()] == [-1, -1]


def test_nested_passes(hooks, x):
    with profile() as prof:
        hooks.observer.node_begin(b"Outer", 1)
        hooks.observer.node_begin(b"Inner", 2)
        x + x
        hooks.observer.node_end(2)
        hooks.observer.node_end(1)
    outer, inner, add = prof.events()
    assert add.cpu_parent is inner
    assert inner.cpu_parent is outer


def test_a_node_that_begins_before_and_one_that_ends_after(hooks, x):
    with profile():
        observer = hooks.observer
    with profile() as prof:
        observer.node_end(1)
        observer.node_begin(b"Late", 2)
        x + x
    observer.node_end(2)
    assert [event.name for event in prof.events()] == ["add"]
