"""Messages between server and jobs survive the wire, and a wrong one is named where it is read."""

import dataclasses
import json
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigon_tools.jobs import JOBS
from tigon_tools.schema.reference import InputSpec, Reference, TraceRequest
from tigon_tools.schema.wire import WireError, from_wire, to_wire

scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text())
inputs = st.builds(
    InputSpec,
    name=st.text(),
    shape=st.one_of(st.none(), st.lists(st.integers()).map(tuple)),
    dtype=st.text(),
    requires_grad=st.booleans(),
    value=scalars,
)
references = st.builds(
    Reference,
    code=st.text(),
    entry=st.text(),
    origin=st.text(),
    module=st.one_of(st.none(), st.text()),
    inputs=st.one_of(st.none(), st.lists(inputs).map(tuple)),
)


@given(references)
def test_a_message_comes_back_as_it_was_sent(reference: Reference) -> None:
    request = TraceRequest(reference)
    received = from_wire(TraceRequest, json.loads(json.dumps(to_wire(request))))
    assert received == request
    for sent, got in zip(reference.inputs or (), received.reference.inputs or (), strict=True):
        assert type(got.value) is type(sent.value)  # 1, 1.0 and True are equal, but not the same scalar


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ({"entry": "f"}, "'code' is missing"),
        ({"code": "", "entry": "f", "inputz": None}, "unknown field 'inputz'"),
        ({"code": 3, "entry": "f"}, "Reference.code: expected str"),
        ({"code": "", "entry": "f", "inputs": [{"name": "x", "shape": [2, "3"]}]}, r"inputs[0].shape[1]"),
        ({"code": "", "entry": "f", "inputs": [{"name": "x", "requires_grad": 1}]}, "requires_grad"),
        ([], "expected an object"),
    ],
)
def test_a_message_that_does_not_fit_names_the_field(message: object, names: str) -> None:
    with pytest.raises(WireError) as problem:
        from_wire(Reference, message)
    assert names in str(problem.value)


@pytest.mark.parametrize("job", JOBS.values(), ids=lambda job: job.name)
def test_every_message_type_is_one_the_wire_understands(job: object) -> None:
    """A field of a type that `from_wire` cannot read would only show when a job is first called."""

    def check(annotation: object) -> None:
        if dataclasses.is_dataclass(annotation):
            for hint in typing.get_type_hints(annotation).values():
                check(hint)
            return
        arguments = [a for a in typing.get_args(annotation) if a is not Ellipsis]
        if arguments:
            for argument in arguments:
                check(argument)
            return
        assert annotation in (str, int, float, bool, type(None)), annotation

    check(job.request)  # type: ignore[attr-defined]
    check(job.result)  # type: ignore[attr-defined]
