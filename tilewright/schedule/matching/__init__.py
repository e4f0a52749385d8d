"""What tensorize finds out, in this order: the innermost blocks of description and program (`leaves`), whether they
compute the same, and on which boxes of the program's buffers (`match`), and the views that stand for these (`view`)."""
