"""LLEnvs adapter for aviary. Importing it does not import the upstream."""
