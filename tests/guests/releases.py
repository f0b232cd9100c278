"""What older releases of a framework lack, or do otherwise by themselves."""

from importlib.metadata import version

import pytest
from packaging.version import Version


def since(package: str, release: str, what: str) -> pytest.MarkDecorator:
    """Skip a test about `what` where the installed release of a framework is older than `release`."""
    return pytest.mark.skipif(Version(version(package)) < Version(release), reason=f"{what}: since {package} {release}")
