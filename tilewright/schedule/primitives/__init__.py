"""The primitives, a family or a large one a file. Every module of this folder is imported, in the order of their names,
so that a primitive is a method of Schedule when its file is here."""
from tilewright.support.registry import load_folder

load_folder(__name__)
