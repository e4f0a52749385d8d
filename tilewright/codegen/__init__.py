"""Code generation: flat functions to images. What all back ends share is here, each back end in a folder of its own.

back_end.py says what a back end is, registry.py which there are; layout.py how a kernel is called; queries.py asks
about expressions.
"""
