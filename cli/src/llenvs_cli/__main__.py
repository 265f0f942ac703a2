"""``python -m llenvs_cli`` is the command ``llenvs``."""

from llenvs_cli.main import main

if __name__ == "__main__":
    main()
