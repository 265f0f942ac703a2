"""Images, with a tiny model of random weights whose logits transformers computes as well."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from llenvs.inference import ChatMessage, Generation, GenerationRequest, ImageContent, SamplingParams
from llenvs_vllm import VLLMBackend

GREEDY = SamplingParams(temperature=0.0, max_tokens=4, logprobs=1)


def picture(colour: str) -> ImageContent:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (56, 56), colour).save(file, "PNG")
    return ImageContent(data=file.getvalue())


def right(folder: Path, prompt: str, colours: list[str]) -> tuple[list[int], list[int], float]:
    """Prompt ids, completion ids and the first logprob by transformers."""
    import torch
    from PIL import Image
    from transformers import AutoProcessor, Idefics3ForConditionalGeneration

    model: Any = Idefics3ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    images = [Image.new("RGB", (56, 56), colour) for colour in colours]
    inputs = AutoProcessor.from_pretrained(folder)(text=prompt, images=images, return_tensors="pt")
    with torch.inference_mode():
        made = model.generate(
            **inputs, max_new_tokens=4, do_sample=False, return_dict_in_generate=True, output_logits=True
        )
    length = inputs["input_ids"].shape[1]
    return (
        inputs["input_ids"][0].tolist(),
        made.sequences[0, length:].tolist(),
        float(made.logits[0][0].log_softmax(-1).max()),
    )


def test_images_reach_the_model(model_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tiny-idefics3"
    script = Path(__file__).with_name("tiny_vision_model.py")
    subprocess.run([sys.executable, str(script), str(folder), str(model_folder)], check=True)
    engine = {"enforce_eager": True, "max_num_seqs": 4, "limit_mm_per_prompt": {"image": 2}}
    with VLLMBackend(folder, dtype="float32", n_ctx=512, engine=engine) as backend:

        def ask(text: str, *colours: str) -> tuple[str, Generation]:
            message = ChatMessage.user(text, tuple(map(picture, colours)))
            request = GenerationRequest((message,), GREEDY)
            return backend.render(request).text, backend.generate_sync(request)

        seen = []
        for colours in (["red"], ["blue"], ["red", "blue"]):
            prompt, answer = ask("What is it?", *colours)
            prompt_ids, ids, logprob = right(folder, prompt, colours)
            assert answer.prompt_token_ids == tuple(prompt_ids)
            assert answer.completion_token_ids == tuple(ids)
            assert answer.logprobs is not None
            assert answer.logprobs[0].logprob == pytest.approx(logprob, abs=1e-3)
            seen.append(answer.logprobs[0].logprob)
        assert len(set(seen)) == 3  # it does look at them
        assert backend.capabilities.images is True
        # the text of the placeholder inside a message is no image
        literal = ask("What <image> is it?", "red")[1]
        image = backend._running.chat.encode("<image>", special=True)[0]  # type: ignore[union-attr]
        assert literal.prompt_token_ids is not None
        assert literal.prompt_token_ids.count(image) == 4
