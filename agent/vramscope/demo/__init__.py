"""The training job that ``vramscope demo`` watches."""
