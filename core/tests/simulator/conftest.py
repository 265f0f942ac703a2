import sys
from pathlib import Path

# `changing_upstreams` is imported by name: here, in second processes and in engine processes
sys.path.insert(0, str(Path(__file__).parent))
