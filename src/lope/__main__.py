"""`python -m lope`: the command line."""

from lope.cli.entry import main

main()
