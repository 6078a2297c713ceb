"""The module's types: mypy --strict, and pyright where it runs."""
import os
import subprocess
import sys

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "python", "cardan")


def main():
    found = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir=/dev/null", PACKAGE]).returncode
    try:  # it is a program for Node, which may not be here
        began = subprocess.run([sys.executable, "-m", "pyright", "--version"], capture_output=True, timeout=60).returncode == 0
    except subprocess.TimeoutExpired:
        began = False
    if not began:
        print("pyright does not run here: mypy alone has looked")
        sys.exit(found)
    sys.exit(found or subprocess.run([sys.executable, "-m", "pyright", "--pythonpath", sys.executable, PACKAGE]).returncode)


main()
