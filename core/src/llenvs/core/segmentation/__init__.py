"""Segmentation: a response taken apart into steps, each of which can be judged, branched from and replaced.

```python
env = SegmentedEnvironment(llenvs.make("reasoning_gym/leg_counting"), SentenceSegmenter())
state, _ = env.reset(options={"task_index": 0})
for result in env.replay(state, "First, count the animals. There are 2 dogs. <answer>8</answer>"):
    print(result.rewards.total)
```
"""

from llenvs.core.segmentation.build import make_segmenter, segmented_environment, segmenter_names
from llenvs.core.segmentation.composite import CompositeSegmenter
from llenvs.core.segmentation.control import final_segment, user_feedback
from llenvs.core.segmentation.custom import CustomSegmenter
from llenvs.core.segmentation.environment import SegmentedEnvironment
from llenvs.core.segmentation.lines import LineSegmenter, ParagraphSegmenter
from llenvs.core.segmentation.numbered import NumberedStepSegmenter
from llenvs.core.segmentation.replay import Replay
from llenvs.core.segmentation.response import Response, SegmentedHidden
from llenvs.core.segmentation.segmenter import Segmenter
from llenvs.core.segmentation.sentence import SentenceSegmenter
from llenvs.core.segmentation.tokens import TokenSegmenter

__all__ = [
    "CompositeSegmenter",
    "CustomSegmenter",
    "LineSegmenter",
    "NumberedStepSegmenter",
    "ParagraphSegmenter",
    "Replay",
    "Response",
    "SegmentedEnvironment",
    "SegmentedHidden",
    "Segmenter",
    "SentenceSegmenter",
    "TokenSegmenter",
    "final_segment",
    "make_segmenter",
    "segmented_environment",
    "segmenter_names",
    "user_feedback",
]
