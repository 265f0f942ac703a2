"""What requests may hold, as pydantic models: they check what comes in and describe it in the OpenAPI document."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from llenvs.container.errors import RequestRefused
from llenvs.core.errors import UnknownName

BATCH_LIMIT = 4096
"""Most steps in one batch, and most requests in one frame of the channel."""
PAGE_LIMIT = 100
"""Most tasks in one page."""


class Request(BaseModel):
    """Root of the requests; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class DescribeRequest(Request):
    """What is served here."""


class TasksRequest(Request):
    """A page of the tasks: their first observations."""

    offset: int = Field(default=0, ge=0, description="Index of the first task.")
    limit: int = Field(default=20, ge=1, le=PAGE_LIMIT, description="Number of tasks.")


class ResetRequest(Request):
    """Begin an episode."""

    seed: Any = Field(
        default=None, description="Chooses the task, unless given, and everything random in the episode."
    )
    options: dict[str, Any] = Field(
        default_factory=dict,
        description="task_index picks a task of 0 <= i < num_tasks; see reset_options of /spec.",
    )


class StateRequest(Request):
    """A request about a state, given in full or by its key."""

    state: Any = Field(default=None, description="The state, as an answer gave it.")
    key: str | None = Field(
        default=None, max_length=64, description="The key of the state; status 409 says to send the state itself."
    )
    action: Any = Field(
        description='The action: its text, or {"text": ..., "tool_calls": [{"name", "arguments", "id"}]}.'
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> StateRequest:
        if (self.state is None) == (self.key is None):
            raise ValueError("needs exactly one of state and key")
        return self


class StepRequest(StateRequest):
    """Take an action in a state."""

    share_hidden: bool = Field(
        default=False, description="Leave the hidden state out of the answer when it is that of the state stepped."
    )


class StepBatchRequest(Request):
    """Take many steps; the answer has a result or an error for each."""

    steps: list[StepRequest] = Field(max_length=BATCH_LIMIT)


class ComputeRewardsRequest(StateRequest):
    """The signals of a step already taken."""

    next_state: Any = Field(default=None, description="The state that the step led to.")
    next_key: str | None = Field(default=None, max_length=64, description="Its key, instead.")

    @model_validator(mode="after")
    def _one_next(self) -> ComputeRewardsRequest:
        if (self.next_state is None) == (self.next_key is None):
            raise ValueError("needs exactly one of next_state and next_key")
        return self


RequestT = TypeVar("RequestT", bound=Request)


class UnknownField(UnknownName):
    """A request has no such field."""

    kind = "field"


def parse_request(model: type[RequestT], data: Any) -> RequestT:
    """`data` as a request.

    Raises:
        RequestRefused: naming the field, and the nearest valid ones when it is unknown.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise RequestRefused(f"the request is malformed: {_problem(error, model)}") from None


def _problem(error: ValidationError, model: type[Request]) -> str:
    problems = error.errors(include_url=False, include_input=False)
    for problem in problems:  # a misspelt field is the cause of the missing one
        if problem["type"] == "extra_forbidden":
            inner = StepRequest if "steps" in problem["loc"][:-1] else model
            return str(UnknownField(str(problem["loc"][-1])[:100], sorted(inner.model_fields)))
    path = ".".join(str(part) for part in problems[0]["loc"])
    message = problems[0]["msg"].removeprefix("Value error, ")
    return f"{path}: {message}" if path else message
