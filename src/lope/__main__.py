"""`python -m lope`: the command line."""

from lope.cli.main import main

main()
