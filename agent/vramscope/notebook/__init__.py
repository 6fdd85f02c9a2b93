"""``%load_ext vramscope`` and ``%vramscope``: the page of a kernel's run, below a cell."""
