"""Guardians and run directories, with shell commands in place of a server."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from llenvs.container.cleanup import find_leaks, remove_leaks
from llenvs.container.locks import FileLock
from llenvs.container.runtimes.guarded import GuardedServer, Launch
from llenvs.container.runtimes.run_directory import RunDirectory, is_live, leaked_directories
from llenvs.core.errors import ContainerFailed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(autouse=True)
def place(tmp_path_factory, monkeypatch) -> Path:
    path = tmp_path_factory.mktemp("t")
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    monkeypatch.setenv("LLENVS_CACHE_DIR", str(path / "cache"))
    return path


def start(script: str, **fields) -> GuardedServer:
    directory = RunDirectory()
    launch = Launch(["sh", "-c", script], dict(os.environ), "the script", directory.path / "log", **fields)
    return GuardedServer(directory, launch)


READY = """echo '{"ready": true, "address": "here"}'; """


def wait_for(condition) -> None:
    deadline = time.monotonic() + 20.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def processes_of(place: Path) -> list[int]:
    """Pids of processes that were started for a run directory in `place`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if f"LLENVS_RUN={place}" in (entry / "environ").read_bytes().decode("utf-8", "replace"):
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found


def test_ready_line_comes_on_stdout_and_the_rest_goes_to_the_log(place):
    server = start(f"{READY} echo said >&2; sleep 600")
    assert server.wait_until_ready(20.0) == "here"
    wait_for(lambda: server.log_tail() == "said")
    assert server.is_alive()
    server.stop()
    assert processes_of(place) == []
    assert list((place / f"llenvs-{os.getuid()}").iterdir()) == []


def test_whatever_is_said_instead_of_being_ready_is_shown():
    with pytest.raises(ContainerFailed, match=r"the script said b'hello\\n' instead of being ready"):
        start("echo hello; sleep 600").wait_until_ready(20.0)


@pytest.mark.parametrize(
    ("script", "how"),
    [("exit 3", "exit status 3"), ("kill -9 $$", "killed by SIGKILL"), ("exit 137", "killed by SIGKILL")],
)
def test_how_it_ended_is_said(script, how):
    with pytest.raises(ContainerFailed, match=f"the script ended before it was ready .{how}.") as failed:
        start(f"echo last words >&2; {script}").wait_until_ready(20.0)
    assert failed.value.log_tail == "last words"


def test_a_command_that_does_not_exist_is_said():
    directory = RunDirectory()
    launch = Launch(["/nowhere/python"], dict(os.environ), "the server", directory.path / "log")
    with pytest.raises(ContainerFailed, match="/nowhere/python: No such file or directory"):
        GuardedServer(directory, launch).wait_until_ready(20.0)
    assert not directory.path.exists()


def test_a_log_that_cannot_be_written_is_said_at_once():
    directory = RunDirectory()
    launch = Launch(["true"], dict(os.environ), "the server", directory.path / "gone" / "log")
    with pytest.raises(ContainerFailed, match="No such file or directory"):
        GuardedServer(directory, launch).wait_until_ready(20.0)


def test_a_server_that_ignores_sigterm_is_killed(monkeypatch, place):
    monkeypatch.setattr("llenvs.container.runtimes.guarded.GRACE", 0.3)
    server = start(f"trap '' TERM; {READY} while true; do sleep 1; done")
    server.wait_until_ready(20.0)
    server.stop()
    assert processes_of(place) == []


def test_last_commands_run_however_it_ends(tmp_path):
    mark = tmp_path / "mark"
    server = start(f"{READY} exec sleep 600", finally_=[["/nowhere"], ["touch", str(mark)]])
    server.wait_until_ready(20.0)
    assert not mark.exists()
    server.stop()
    assert mark.exists()


def test_standard_input_stays_open_for_one_that_lives_by_it():
    server = start(f"{READY} cat; echo closed >&2; sleep 600", keep_stdin=True)
    server.wait_until_ready(20.0)
    assert server.log_tail() == ""
    assert server.is_alive()
    server.stop()


def test_an_endless_log_is_bounded(monkeypatch, tmp_path):
    from llenvs.container.runtimes import guardian

    log = tmp_path / "log"
    monkeypatch.setattr(guardian, "_LOG_LIMIT", 1000)
    with log.open("ab") as writer:
        writer.write(b"x" * 1001)
        writer.flush()
        guardian._bound_log(str(log))
        writer.write(b"y")
    assert log.read_bytes() == b"y"


# -- run directories --------------------------------------------------------------------------------------


def test_a_directory_is_live_as_long_as_somebody_holds_its_lock():
    directory = RunDirectory()
    assert directory.path.stat().st_mode & 0o777 == 0o700
    assert is_live(directory.path)
    heir = subprocess.Popen(["sleep", "600"], pass_fds=[directory.lock_fd])
    directory.release()
    assert is_live(directory.path)
    heir.kill()
    heir.wait()
    assert not is_live(directory.path)
    assert leaked_directories() == [directory.path]
    # the next one sweeps
    following = RunDirectory()
    assert not directory.path.exists()
    following.remove()
    assert not following.path.exists()


def test_directories_made_at_once_do_not_sweep_one_another(place):
    vanished = []

    def make_some() -> None:
        for _ in range(100):
            directory = RunDirectory()
            if not all(directory.path.exists() for _ in range(3)):
                vanished.append(directory.path)
            directory.remove()

    makers = [threading.Thread(target=make_some) for _ in range(8)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert vanished == []


def test_a_directory_that_is_just_being_made_is_live(place):
    root = RunDirectory().path.parent
    (root / "new").mkdir()
    assert is_live(root / "new")
    os.utime(root / "new", (0, 0))
    assert not is_live(root / "new")
    assert not is_live(root / "absent")


@pytest.mark.parametrize("attack", ["open to all", "a link"])
def test_a_root_that_others_control_is_refused(place, attack):
    root = place / f"llenvs-{os.getuid()}"
    if attack == "a link":
        (place / "trap").mkdir(mode=0o700)
        root.symlink_to(place / "trap")
    else:
        root.mkdir()
        root.chmod(0o777)
    with pytest.raises(ContainerFailed, match="must be a directory of yours that nobody else can enter"):
        RunDirectory()


def test_secrets_are_for_the_owner_alone():
    directory = RunDirectory()
    path = directory.write_secret("token", b"abc")
    assert path.read_bytes() == b"abc"
    assert path.stat().st_mode & 0o777 == 0o600
    directory.remove()


# -- clean-up ---------------------------------------------------------------------------------------------


def test_the_clean_up_ends_processes_that_lost_their_guardian(place):
    live = start(f"{READY} exec sleep 600")
    live.wait_until_ready(20.0)
    # the server dies with its guardian; what detached itself from the server does not
    server = start(f"setsid sleep 600 & {READY} exec sleep 600")
    server.wait_until_ready(20.0)
    os.kill(server._guardian.pid, 9)
    server._guardian.wait()
    directory = server._directory.path

    def lost() -> set[int]:
        return {pid for pid in processes_of(directory) if _state(pid) != "Z"}

    wait_for(lambda: len(lost()) == 1)
    found = find_leaks()
    # leaks of other runs on this machine are found too, and are not ours to remove here
    ours = tuple(pid for pid in found.processes if pid in lost())
    leaks = replace(found, processes=ours, containers=())
    assert set(leaks.processes) == lost()
    assert leaks.directories == (directory,)
    assert str(leaks) == "1 process, 1 run directory"
    assert len(leaks) == 2
    remove_leaks(leaks)
    wait_for(lambda: not lost())
    assert not directory.exists()
    assert live.is_alive()
    again = find_leaks()
    assert again.directories == ()
    assert not {*ours, live._guardian.pid} & set(again.processes)
    live.stop()
    server.stop()


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


# -- locks ------------------------------------------------------------------------------------------------


def test_lock_shared_and_exclusive(tmp_path):
    path = tmp_path / "sub" / "lock"
    first, second, third = FileLock(path), FileLock(path), FileLock(path)
    assert first.acquire(shared=True, wait=False)
    assert second.acquire(shared=True, wait=False)
    assert not third.acquire(wait=False)
    first.release()
    second.release()
    assert third.acquire(wait=False)
    assert not first.acquire(shared=True, wait=False)
    third.remove()
    assert not path.exists()
    assert first.acquire(wait=False)
    first.release()
    first.release()


def test_who_waited_for_a_lock_that_was_removed_takes_the_new_one(tmp_path):
    import threading

    path = tmp_path / "lock"
    holder, waiter = FileLock(path), FileLock(path)
    holder.acquire()
    waiting = threading.Event()
    thread = threading.Thread(target=waiter.acquire, kwargs={"on_wait": waiting.set})
    thread.start()
    waiting.wait(20.0)
    holder.remove()
    thread.join(20.0)
    assert path.exists()
    assert not FileLock(path).acquire(wait=False)
    waiter.release()
