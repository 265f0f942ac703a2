"""LLEnvs adapter for data sets of the Hugging Face hub and local ones. Importing it does not import `datasets`."""
