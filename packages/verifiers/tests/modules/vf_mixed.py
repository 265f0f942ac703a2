"""An EnvGroup of a single-turn environment and one with tools."""

import verifiers as vf
import vf_guess
import vf_sums
import vf_tools


def load_environment():
    envs = [vf_sums.load_environment(num_tasks=3), vf_tools.load_environment(), vf_guess.load_environment()]
    return vf.EnvGroup(envs, env_names=["sums", "tools", "guess"])
