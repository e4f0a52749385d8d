"""Models of other systems as functions of the graph: a folder for each source, a table with a row for each operator."""
