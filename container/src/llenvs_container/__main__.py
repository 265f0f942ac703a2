"""``python -m llenvs_container``."""

import sys

from llenvs_container.main import main

if __name__ == "__main__":
    sys.exit(main())
