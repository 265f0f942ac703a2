"""Evaluation: rollouts, runs on disk, figures with their uncertainty.

```python
from llenvs.evaluation import run_evaluation

result = run_evaluation("reasoning_gym/leg_counting", backend, num_tasks=100, system_prompt="general_reasoning")
print(result.success_rate, result.success_interval)
```
"""

from llenvs.evaluation.config import (
    EnvironmentConfig,
    EvaluationConfig,
    ModelConfig,
    load_config,
)
from llenvs.evaluation.configured import arun_config, run_config
from llenvs.evaluation.evaluate import arun_evaluation, run_evaluation
from llenvs.evaluation.interruption import EvaluationInterrupted, TooManyErrors
from llenvs.evaluation.prepare import PreparedEnvironment, PreparedRun, prepare_run
from llenvs.evaluation.result import EvaluationResult, RunResult, SignalSummary
from llenvs.evaluation.rollout import Rollout, RolloutError
from llenvs.evaluation.run_folder import RunFolderError, read_trajectories
from llenvs.evaluation.runner import TrajectoryRunner
from llenvs.evaluation.segmented_decisions import (
    Branch,
    Feedback,
    Finish,
    ForceNext,
    GoOn,
    SegmentStep,
    StepCallback,
    Stop,
)
from llenvs.evaluation.segmented_rollout import SegmentedRollout
from llenvs.evaluation.segmented_runner import SegmentedTrajectoryRunner
from llenvs.evaluation.segmented_search import SegmentProposer
from llenvs.evaluation.statistics import Interval, bootstrap_interval, pass_at_k, wilson_interval
from llenvs.evaluation.yaml_source import ConfigError

__all__ = [
    "Branch",
    "ConfigError",
    "EnvironmentConfig",
    "EvaluationConfig",
    "EvaluationInterrupted",
    "EvaluationResult",
    "Feedback",
    "Finish",
    "ForceNext",
    "GoOn",
    "Interval",
    "ModelConfig",
    "PreparedEnvironment",
    "PreparedRun",
    "Rollout",
    "RolloutError",
    "RunFolderError",
    "RunResult",
    "SegmentProposer",
    "SegmentStep",
    "SegmentedRollout",
    "SegmentedTrajectoryRunner",
    "SignalSummary",
    "StepCallback",
    "Stop",
    "TooManyErrors",
    "TrajectoryRunner",
    "arun_config",
    "arun_evaluation",
    "bootstrap_interval",
    "load_config",
    "pass_at_k",
    "prepare_run",
    "read_trajectories",
    "run_config",
    "run_evaluation",
    "wilson_interval",
]
