"""Drafters handed to other engines, each in the form that it reads; and what each would misread in a folder."""
