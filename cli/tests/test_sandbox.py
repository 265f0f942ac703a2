import json

import pytest

from llenvs.container.sandbox_plan import Part, SandboxPlan
from llenvs.container.sandboxes import CACHE_VARIABLE, Sandbox, create_sandbox, open_sandbox

PLAN = SandboxPlan("small", (Part("packaging", None, "packaging"),), (), None, None, "small-0123")


@pytest.fixture
def made(tmp_path, monkeypatch) -> Sandbox:
    """One small sandbox, made by the real uv, in a cache of its own."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return create_sandbox(PLAN, notice=lambda line: None)


def test_list_says_what_there_is(made, quick):
    done = quick("sandbox", "list")
    assert done.returncode == 0
    row = next(line for line in done.stdout.splitlines() if "small-0123" in line)
    assert f"Python {made.python}, " in row
    assert row.endswith("MB, used just now")
    assert f"in {made.path.parent}" in done.stdout


def test_list_as_json(made, quick):
    (found,) = json.loads(quick("sandbox", "list", "--json").stdout)
    assert found["name"] == "small-0123"
    assert found["adapter"] == "small"
    assert found["python"] == made.python
    assert found["path"] == str(made.path)
    assert found["contents"] == list(made.contents)
    assert found["bytes"] == made.size


def test_list_of_none_says_how_to_make_one(quick, tmp_path):
    done = quick("sandbox", "list", LLENVS_CACHE_DIR=str(tmp_path))
    assert done.stdout == "No sandboxes. Make one with: llenvs sandbox create ADAPTER\n"


def test_remove(made, quick):
    with open_sandbox(PLAN):
        refused = quick("sandbox", "remove", "small")
        assert refused.returncode == 2
        assert "small-0123 is in use" in refused.stderr
    done = quick("sandbox", "remove", "small-0123")
    assert done.stdout == "removed small-0123\n"
    assert not made.path.exists()
    again = quick("sandbox", "remove", "small-0123")
    assert again.returncode == 2
    assert "unknown sandbox 'small-0123' (list them with: llenvs sandbox list)" in again.stderr


def test_create_of_an_unknown_adapter_names_the_nearest(quick):
    done = quick("sandbox", "create", "reasoning_gim")
    assert done.returncode == 2
    assert "did you mean 'reasoning_gym'" in done.stderr


def test_clean_removes_what_was_never_finished(made, quick):
    unfinished = made.path.with_name("small-dead")
    unfinished.mkdir()
    assert "1 unfinished sandbox" in quick("sandbox", "clean", "--dry-run").stdout
    assert unfinished.exists()
    assert quick("sandbox", "clean").stdout.startswith("removed: ")
    assert not unfinished.exists()
    assert made.path.exists()


def test_serve_needs_an_adapter_and_a_name(quick):
    done = quick("serve", "sums")
    assert done.returncode == 2
    assert "must name the adapter too, got 'sums'" in done.stderr
