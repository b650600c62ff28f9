# Thin: each target is one or two commands that can also be typed. `make help` lists them.

TARGET_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))
IMAGE_TARGET := aarch64-unknown-none
export HCOMM_IMAGE ?= $(TARGET_DIR)/$(IMAGE_TARGET)/image/hcomm-image

HOST_STUB := cargo run --locked --release -p host-stub --

.DEFAULT_GOAL := help
.PHONY: run test soak bench ci fmt lint doc image setup clean help

run: image ## copy 256 bytes through the AArch64 image and check them; FILE=path copies a file, ARGS="..." adds options
ifeq ($(origin FILE),command line)
	$(HOST_STUB) copy "$$FILE" "$(or $(OUT),$(TARGET_DIR)/copy.out)" $(ARGS)
else
	$(HOST_STUB) run $(ARGS)
endif

test: image ## run every test, on both CPUs
	cargo test --locked --workspace

# Random sequences against the model, and seeds of two cores on one handle.
soak: ## run 10,000 random sequences and 5,000 seeds
	HCOMM_MODEL_CASES=$(or $(CASES),10000) HCOMM_STRESS_SEEDS=$(or $(SEEDS),5000) \
		cargo test --locked -p hcomm-aicpu --test model --test stress -- --nocapture

bench: image ## measure, and print one table; BENCH_JSON=path writes it as JSON too
	cargo bench --locked --bench performance

ci: ## run what CI runs
	@.ci/run

fmt: ## format the code
	cargo fmt --all

lint: setup ## check format and clippy, for the host and for the device
	@.ci/run fmt lint

doc: ## build the reference into the target folder
	@.ci/run doc

image: setup ## build the device image
	cargo build --locked -p hcomm-kernel --features image --target $(IMAGE_TARGET) --profile image

setup: ## check that all tools are there, and install what is missing
	@scripts/setup.sh

clean: ## remove all that was built
	cargo clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | while IFS='	' read -r name text; do \
		printf '  make %-7s %s\n' "$$name" "$$text"; done
