"""Programs that a model wrote, run in processes of their own with limits (see `programs.run` for what holds
them).
"""
