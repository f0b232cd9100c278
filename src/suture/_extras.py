"""Optional packages: imported when they are used, and checked for a release that is new enough."""

import re
from functools import lru_cache
from typing import Any

from suture.errors import ConfigError


def import_extra(module: str, requirement: str) -> Any:
    """Import an SDK's module, or say how to install it if it is missing or too old.

    >>> import_extra("no_such_sdk", "no-such-sdk>=3")
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: this needs the package no-such-sdk, which is not installed: pip install 'no-such-sdk>=3'
    """
    from importlib import import_module  # noqa: PLC0415 - only where an SDK is used

    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != module.split(".", maxsplit=1)[0]:
            raise
        package = requirement.partition(">")[0]
        missing = f"this needs the package {package}, which is not installed: pip install '{requirement}'"
        raise ConfigError(missing) from None
    check_version(requirement)
    return found


@lru_cache
def check_version(requirement: str) -> None:
    """Raise `ConfigError` if an installed package is too old; a release without a number passes.

    >>> check_version("openai>=2.54")
    """
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - as above

    package, _, needed = requirement.partition(">=")
    try:
        found = version(package.partition("[")[0])
    except PackageNotFoundError:  # the module may come from another package
        return
    if _numbers(found) < _numbers(needed):
        raise ConfigError(f"this needs {requirement}, and {package} {found} is installed: pip install '{requirement}'")


def _numbers(release: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", re.split(r"[^\d.]", release)[0])]
