"""`python -m ronid` is `ronid`."""

from ronid.cli import main

main()
