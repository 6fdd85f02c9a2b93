# Every verb is one script in scripts/, so that a person, CI and this file run the same thing.
# ARGS goes to the script: make demo ARGS="--port 9000 --no-browser"
.PHONY: help demo test check bench gpu-check

help:
	@echo "make demo       a server and a training job to look at; Ctrl-C ends both"
	@echo "make check      format, lint, types, JavaScript tests"
	@echo "make test       everything that CI runs: install, check, pytest, wheel smoke test"
	@echo "make bench      time the parts that run for every sample"
	@echo "make gpu-check  the tests that need a GPU, with the machine's own python3 and torch"

demo:
	@scripts/demo $(ARGS)

test:
	@scripts/test $(ARGS)

check:
	@scripts/check $(ARGS)

bench:
	@scripts/bench $(ARGS)

gpu-check:
	@scripts/gpu-check $(ARGS)
