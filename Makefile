# Cardan: thin commands over CMake. Each does its own set-up and skips what is there.
PREFIX ?= /usr/local
BENCH ?=
LABEL ?=
JOBS ?= $(shell nproc)

.PHONY: all demo test test-release test-dev test-tsan test-fuzz bench install clean tidy format help

all: build/cardan

help:
	@sed -n 's/^# //p; s/^\([a-z-]*\):.*## /  make \1\t/p' Makefile

# The distribution's packages; nothing happens when they are there.
.PHONY: setup
setup:
	@sh cmake/setup.sh

build/build.ninja: CMakeLists.txt CMakePresets.json | setup
	@cmake --preset release >build.log 2>&1 && rm -f build.log || { cat build.log; rm -f build.log; exit 1; }

.PHONY: build/cardan
build/cardan: build/build.ninja ## build the release into build/
	@cmake --build build -j $(JOBS)

demo: build/cardan ## run the linear oscillator as two FMUs next to its monolithic solution
	@sh examples/demo/demo.sh

# The Python tools of the tests live in a virtual environment of their own.
build/venv/ready: tests/tools/requirements.txt | setup
	@sh cmake/venv.sh build/venv tests/tools/requirements.txt

test: test-release test-dev test-tsan ## all tests, also under the sanitizers

test-release: build/cardan build/venv/ready
	@ctest --test-dir build --output-on-failure -j $(JOBS) -LE 'soak' $(if $(LABEL),-L $(LABEL))

test-dev: build/venv/ready
	@cmake --preset dev >/dev/null && cmake --build build/dev -j $(JOBS)
	@ctest --test-dir build/dev --output-on-failure -j $(JOBS) -LE 'soak|e2e|golden|peer' $(if $(LABEL),-L $(LABEL))

test-tsan: build/venv/ready
	@cmake --preset tsan >/dev/null && cmake --build build/tsan -j $(JOBS)
	@ctest --test-dir build/tsan --output-on-failure -j $(JOBS) -L 'threads' $(if $(LABEL),-L $(LABEL))

test-fuzz: | setup ## every fuzz target for FUZZ_SECONDS (default 60)
	@cmake --preset fuzz >/dev/null && cmake --build build/fuzz -j $(JOBS)
	@sh tests/fuzz/run.sh build/fuzz $${FUZZ_SECONDS:-60}

bench: build/cardan build/venv/ready ## benchmarks as ratios; BENCH=master runs those whose name starts so
	@build/bench/cardan-bench --json build/bench.json --python build/venv/bin/python $(BENCH)

install: build/cardan ## install under PREFIX
	@cmake --install build --prefix $(PREFIX)

tidy: build/cardan ## clang-tidy over the sources
	@clang-tidy -p build --quiet $$(git ls-files 'src/*.c' ':!src/fmi/export')

format: ## clang-format over the tree
	@clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	@rm -rf build
