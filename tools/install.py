"""Install packages into the environment of this Python: `python install.py PIP-ARGUMENTS…`, one mark a package.

On a terminal one line shows how far it is; elsewhere it says only how it ended. What pip wrote is shown if it failed.
"""

import signal
import subprocess
import sys
from collections.abc import Sequence

WIDTH = 79
GRACE = 2
INTERRUPTED = 128 + signal.SIGINT


def main(arguments: Sequence[str]) -> int:
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *arguments]
    lines: list[str] = []
    packages = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        try:
            for line in pip.stdout or ():
                lines.append(line)
                word, _, rest = line.strip().partition(" ")
                packages += word == "Collecting"
                if sys.stdout.isatty() and word in ("Collecting", "Downloading", "Installing"):
                    what = f"{word.lower()} {rest.split(' ')[0]}" if word != "Installing" else "installing them"
                    shown = f"  {'#' * min(packages, 40)} {packages} packages, {what}"
                    print(f"\r\x1b[K{shown[:WIDTH]}", end="", flush=True)
        except KeyboardInterrupt:
            return stop(pip)
    if sys.stdout.isatty():
        print("\r\x1b[K", end="")
    if pip.returncode:
        print("".join(lines[-20:]), file=sys.stderr)
    else:
        print(f"  {packages} packages installed")
    return pip.returncode


def stop(pip: subprocess.Popen[str]) -> int:
    try:
        pip.communicate(timeout=GRACE)  # Ctrl-C reached pip as well, which removes what it has half done
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        pip.kill()
    erased = "\r\x1b[K" if sys.stdout.isatty() else ""
    print(f"{erased}stopped; the next make begins this installation again", file=sys.stderr)
    return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
