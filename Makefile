# Thin: each target is one or two commands that can also be typed. `make help` lists them.

TARGET_DIR := $(shell scripts/target_dir.sh)
IMAGE_TARGET := aarch64-unknown-none
LINUX_TARGET := aarch64-unknown-linux-gnu
export DESTDIR LIBDIR
export HCOMM_IMAGE ?= $(TARGET_DIR)/$(IMAGE_TARGET)/image/hcomm-image

HOST_STUB := cargo run --locked --release -p host-stub --

.DEFAULT_GOAL := help
.PHONY: run test test-fast test-aarch64 soak card card-test card-package test-blackbox mutants planted msrv loom miri memcheck fuzz bench bench-compare ci fmt lint doc image linux lib capi install uninstall toolkit headers headers-check setup clean help

run: image ## copy 256 bytes through the AArch64 image and check them; FILE=path copies a file, ARGS="..." adds options
ifeq ($(origin FILE),command line)
	$(HOST_STUB) copy "$$FILE" "$(or $(OUT),$(TARGET_DIR)/copy.out)" $(ARGS)
else
	$(HOST_STUB) run $(ARGS)
endif

test: image capi linux card-package ## run every test, on all CPUs
	cargo test --locked --workspace --no-fail-fast; status=$$?; make card-test && exit $$status

test-fast: ## run the tests that need neither image nor QEMU nor a C compiler: an answer in a minute
	cargo test --locked --workspace --exclude hcomm-tests --exclude hcomm-card-lint --no-fail-fast --lib --bins --tests

# The processor that kernels run on, its memory order apart: qemu-aarch64 runs the programs.
test-aarch64: ## run the tests of the device crate as AArch64 programs of Linux
	@scripts/setup.sh linux
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
		cargo test --locked --no-fail-fast --target aarch64-unknown-linux-gnu \
		-p hcomm-aicpu -p hcomm-device-tests --lib --tests

# Random sequences against the model, seeds of two cores on one handle, and copies between which host and device sleep.
soak: image capi linux ## run 10,000 random sequences, 5,000 seeds and 1,000,000 launches on each CPU, 10,000 graphs and whitelists
	HCOMM_MODEL_CASES=$(or $(CASES),10000) HCOMM_STRESS_SEEDS=$(or $(SEEDS),5000) \
		HCOMM_WAKE_ROUNDS=$(or $(ROUNDS),1000000) \
		cargo test --locked -p hcomm-tests --test model --test stress --test cases_ring -- --nocapture
	HCOMM_RACE_GRAPHS=$(or $(CASES),10000) cargo test --locked -p hcomm-sim --lib random_graphs
	HCOMM_GATHER_ROUNDS=1000 cargo test --locked -p hcomm-tests --test c_races
	HCOMM_RANK_ROUNDS=$(or $(CASES),10000) cargo test --locked -p hcomm-tests --test c_ranks rank_may_close
	cargo test --locked -p hcomm-tests --test collective_kernels -- --ignored
	HCOMM_WHITELIST_CASES=$(or $(CASES),10000) cargo test --locked -p hcomm-card-lint --test install_script -- --nocapture

mutants: ## change the code in each way that cargo-mutants knows: unit tests must find each; SHARD=i/n runs a part
	@scripts/setup.sh mutants
	scripts/mutants.sh $(SHARD)

planted: ## plant bugs that cargo-mutants can't make, one at a time: tests must find each; BUGS="word..." selects
	cargo run --locked --quiet -p hcomm-planted -- $(BUGS)

msrv: ## check all with the oldest compiler that is supported
	scripts/msrv.sh

loom: ## try every order of two cores and a device on one ring
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$(TARGET_DIR)/loom" \
		cargo test --locked -p hcomm-aicpu --lib --release loom

# Pointers to memory that is known by its device address come out of numbers, hence the permissive provenance.
MIRI := MIRIFLAGS=-Zmiri-permissive-provenance cargo +nightly miri test --locked

# Tests that try every bit of a descriptor are safe code and take too long there.
miri: ## run the tests of the logic in an interpreter that reports undefined behaviour
	@scripts/setup.sh miri
	$(MIRI) -p hcomm-aicpu --lib
	$(MIRI) -p hcomm-sim --lib -- decode scheduler_tests alloc queue --skip every_bit --skip decode::ub

memcheck: ## run the native CPU under valgrind
	@scripts/setup.sh valgrind
	scripts/memcheck.sh

# What a run finds is kept in the target folder; what it starts from is kept in fuzz/corpus.
fuzz: ## feed each fuzz target for a minute; SECONDS=n sets how long, TARGETS="..." which
	@scripts/setup.sh fuzz
	@set -e; for target in $(or $(TARGETS),sqe image params handle); do \
		mkdir -p "$(TARGET_DIR)/fuzz/corpus/$$target"; \
		cargo +nightly fuzz run --target-dir "$(TARGET_DIR)/fuzz" $$target \
			"$(TARGET_DIR)/fuzz/corpus/$$target" fuzz/corpus/$$target -- -max_total_time=$(or $(SECONDS),60); \
	done

bench: image linux ## measure, and print one table; BENCH_JSON=path writes it as JSON too
	cargo bench --locked -p hcomm-tests --bench performance

bench-compare: ## measure commit BASE and the working tree in turn, and fail where this one is worse; RUNS=n sets how often
	@[ -n "$(BASE)" ] || { echo 'bench-compare: which commit? make bench-compare BASE=commit' >&2; exit 2; }
	scripts/bench_compare.sh "$(BASE)"

ci: ## run what CI runs
	@.ci/run

fmt: ## format the code
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml

lint: setup ## check format and clippy, for the host and for the device
	@.ci/run fmt lint

doc: ## build the reference into the target folder
	@.ci/run doc

image: setup ## build the device image, and QEMU's plugin for the check core; KERNEL="a.c b.cpp" puts kernels in C or C++ into one of their own (OUT=path, CPPFLAGS="-Ifolder", ENTRIES=name,..)
ifneq ($(KERNEL),)
	$(if $(DEVICE_CC)$(DEVICE_CXX),,@scripts/setup.sh cross)
	CPPFLAGS='$(CPPFLAGS)' ENTRIES='$(ENTRIES)' scripts/kernel_image.sh "$(or $(OUT),$(basename $(notdir $(firstword $(KERNEL)))).elf)" $(KERNEL)
else
	cargo build --locked -p hcomm-kernel --features image --target $(IMAGE_TARGET) --profile image
	cargo build --locked -p hcomm-core-plugin
endif

linux: setup ## build what the AI CPU linux runs: runner, libccl_kernel.so and the stock kernels, for AArch64 Linux
	@scripts/setup.sh linux
	scripts/linux.sh

lib: setup ## build the libraries for C and C++, of the host and of kernels
	@scripts/setup.sh linux
	scripts/lib.sh host "$(TARGET_DIR)/lib" release
	scripts/lib.sh device "$(TARGET_DIR)/lib/device/host"
	scripts/lib.sh device "$(TARGET_DIR)/lib/device/$(IMAGE_TARGET)" $(IMAGE_TARGET)
	scripts/lib.sh device "$(TARGET_DIR)/lib/device/$(LINUX_TARGET)" $(LINUX_TARGET)

install: lib linux image ## install all for C and C++, and the command line, below PREFIX (default /usr/local); DESTDIR, LIBDIR
	HCOMM_COMMIT=$$(git rev-parse --short=12 HEAD 2>/dev/null || true) cargo build --locked --release -p host-stub --bin host-stub
	scripts/install.sh "$(TARGET_DIR)/lib" "$(or $(PREFIX),/usr/local)"

uninstall: ## remove what `make install` has installed below PREFIX
	scripts/install.sh --uninstall "$(or $(PREFIX),/usr/local)"

toolkit: lib linux ## write a folder with the vendor's layout (ASCEND_HOME_PATH) to OUT
	@[ -n "$(OUT)" ] || { echo 'toolkit: where to? make toolkit OUT=folder' >&2; exit 2; }
	scripts/toolkit.sh "$(TARGET_DIR)/lib" "$(OUT)"

KERNELS_OF_TESTS := $(addprefix tests/c/,copy_kernel.c control_kernel.c gather_kernel.c log_kernel.c staged_copy.c cxx_kernel.cpp)

# What the tests of the C API need: the libraries as the other tests compile them, and an image with the kernels of tests/c;
# if there is a clang, one of its making, too.
capi: setup
	@scripts/setup.sh linux valgrind
	scripts/lib.sh host "$(TARGET_DIR)/capi" dev
	scripts/lib.sh device "$(TARGET_DIR)/capi/device/host"
	scripts/lib.sh device "$(TARGET_DIR)/capi/device/$(IMAGE_TARGET)" $(IMAGE_TARGET)
	scripts/lib.sh device "$(TARGET_DIR)/capi/device/$(LINUX_TARGET)" $(LINUX_TARGET)
	scripts/kernel_image.sh "$(TARGET_DIR)/capi/kernels.elf" $(KERNELS_OF_TESTS)
	@rm -f "$(TARGET_DIR)/capi/kernels-clang.elf"
	@! command -v clang >/dev/null || DEVICE_CC=clang DEVICE_CXX=clang++ \
		scripts/kernel_image.sh "$(TARGET_DIR)/capi/kernels-clang.elf" $(KERNELS_OF_TESTS)

# The library that a card loads, the same for this machine, and the stand-in of the driver's library for both: tests need all of them.
card: setup ## build libhcomm_card.so, the stock kernels for a card's AI CPU; CRATE=folder builds the library of a crate of yours
ifneq ($(CRATE),)
	@scripts/setup.sh linux
	scripts/card/library.sh "$(or $(OUT),$(TARGET_DIR)/card)" $(LINUX_TARGET) "$(CRATE)" $(KERNELS)
else
	@scripts/setup.sh linux
	scripts/card/library.sh "$(TARGET_DIR)/card"
	scripts/card/library.sh "$(TARGET_DIR)/card/host" host
	scripts/card/fake.sh "$(TARGET_DIR)/card/fake"
endif

# On the oldest core that an AI CPU may be, and on one with all that QEMU knows.
card-test: linux card-package ## run the tests of a card's queue, library and backend as AArch64 code, in qemu-aarch64
	set -e; for cpu in cortex-a53 max; do \
		CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
		CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -cpu $$cpu -L /usr/aarch64-linux-gnu" \
		cargo test --locked -p hcomm-hal --target $(LINUX_TARGET) --lib --tests; \
		QEMU_CPU=$$cpu cargo test --locked -p hcomm-tests --test card_kernels; \
		QEMU_CPU=$$cpu HCOMM_TEST_DEVICE=fake-card HCOMM_TEST_CPU=linux cargo test --locked -p hcomm-tests --test blackbox; \
	done
	set -e; for product in atlas-350 atlas-800t-a2; do \
		HCOMM_TEST_DEVICE=fake-card HCOMM_TEST_CPU=native HCOMM_TEST_PRODUCT=$$product cargo test --locked -p hcomm-tests --test blackbox; \
	done

# DEVICE: sim, fake-card or card:N; CPU: native, qemu or linux. Without CPU: fake-card runs natively, and as AArch64 code on the oldest core
# that an AI CPU may be and on one with all that QEMU knows; natively also as an Ascend910B.
test-blackbox: image linux card-package ## run the tests that every device passes; DEVICE=sim, fake-card or card:N, CPU=native, qemu or linux
	set -e; export HCOMM_TEST_DEVICE="$(or $(DEVICE),$(HCOMM_TEST_DEVICE),sim)"; cpu="$(or $(CPU),$(HCOMM_TEST_CPU))"; \
	run() { HCOMM_TEST_CPU=$$1 cargo test --locked -p hcomm-tests --test blackbox -- --nocapture; }; \
	case "$$HCOMM_TEST_DEVICE,$$cpu" in \
		fake-card,) run native; HCOMM_TEST_PRODUCT=atlas-800t-a2 run native; for model in cortex-a53 max; do QEMU_CPU=$$model run linux; done ;; \
		*,) run native ;; \
		*) run "$$cpu" ;; \
	esac

card-package: $(if $(LIB),,card) ## pack a library for a card: the stock one, or LIB=libNAME.so; KERNELS="Name=function ..", OUT=folder
	scripts/card/package.sh "$(or $(LIB),$(TARGET_DIR)/card/libhcomm_card.so)" "$(or $(OUT),$(TARGET_DIR)/card)" $(KERNELS)

headers: ## write the generated headers of the C API
	scripts/headers.sh

headers-check: ## check that the generated headers are up to date
	scripts/headers.sh --check

setup: ## check that all tools are there, and install what is missing
	@scripts/setup.sh

clean: ## remove all that was built
	cargo clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | while IFS='	' read -r name text; do \
		printf '  make %-13s %s\n' "$$name" "$$text"; done
