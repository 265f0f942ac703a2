"""Objects by where they are: "module:name", or "path/to/file.py:name"."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from llenvs.core.errors import InvalidOption, listed, nearest

_FORMS = '"module:name" or "path/to/file.py:name"'


def locate(field: str, where: str) -> Any:
    """The object at `where`; its module is imported.

    Raises:
        InvalidOption: naming `field`: the form is wrong, the module cannot be imported or lacks the name.
    """
    module_name, colon, name = where.rpartition(":")
    if not colon or not module_name or not name:
        raise InvalidOption(field, where, "does not say where the object is", valid=_FORMS)
    try:
        module = _file(module_name) if module_name.endswith(".py") else importlib.import_module(module_name)
    except Exception as error:
        problem = f"{module_name} cannot be imported ({type(error).__name__}: {error})"
        raise InvalidOption(field, where, problem, valid=_FORMS) from error
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            names = [each for each in vars(module) if not each.startswith("_")]
            hint = nearest(part, names) or names
            raise InvalidOption(field, where, f"{module_name} has no {name}", valid=listed(hint))
        found = getattr(found, part)
    return found


def _file(path: str) -> ModuleType:
    file = Path(path).expanduser().resolve()
    # under a name of its own, so that what it defines can be found again and no installed module is hidden
    name = f"llenvs_aviary_file_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise ImportError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
