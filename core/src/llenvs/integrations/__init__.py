"""For RL trainers: rewards of responses, data sets of prompts, token masks, and hooks for TRL, veRL and OpenRLHF.

```python
from llenvs.integrations import DatasetProvider, Scorer

scorer = Scorer("reasoning_gym/leg_counting", options={"size": 100})
print(scorer.score(task_index=0, response="<answer>100</answer>").reward)
```

The hooks are in `llenvs.integrations.trl`, `.verl` and `.openrlhf`; none of them imports its trainer before it is
used.
"""

from llenvs.integrations.chat_ids import PrefixBreak
from llenvs.integrations.dataset import DatasetProvider, TaskItem
from llenvs.integrations.masked_trajectory import MaskedTrajectory, TokenSpan
from llenvs.integrations.masking import MasksFromText, TrajectoryMasker
from llenvs.integrations.scoring import Scorer, ScoringResult
from llenvs.integrations.splits import TaskSplit, split_tasks
from llenvs.integrations.task_identity import TaskIdentity, TaskMismatch, prompt_sha256

__all__ = [
    "DatasetProvider",
    "MaskedTrajectory",
    "MasksFromText",
    "PrefixBreak",
    "Scorer",
    "ScoringResult",
    "TaskIdentity",
    "TaskItem",
    "TaskMismatch",
    "TaskSplit",
    "TokenSpan",
    "TrajectoryMasker",
    "prompt_sha256",
    "split_tasks",
]
