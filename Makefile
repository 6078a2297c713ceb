# Cardan: thin commands over CMake. Each does its own set-up and skips what is there.
PREFIX ?= /usr/local
DESTDIR ?=
BENCH ?=
PICTURE ?=
LABEL ?=
ARCH ?=
JOBS ?= $(shell nproc)
# Tests of the release wait half of their time: for processes, browsers and clocks.
AT_ONCE ?= $(shell expr 2 \* $(JOBS))
FUZZ_SECONDS ?= 60

configure = out=$$(cmake --preset $(1) $(2) 2>&1) || { echo "$$out" >&2; exit 1; }
compile = cmake --build $(1) -j $(JOBS) $(2) $$([ -t 2 ] || echo -- --quiet)
label = $(if $(LABEL),-L '$(LABEL)')

.NOTPARALLEL:
.PHONY: all build demo test test-setup test-release test-dev test-tsan test-long test-isolated test-fuzz test-fuzz-minute test-vm test-arm test-mcu test-cluster instructions bench docs pictures wheel dist deb test-deb install clean \
        tidy format help setup fmus

all: build

help: ## this list
	@sed -n 's/^# \(Cardan.*\)/\1/p; s/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 22

# The distribution's packages; nothing happens when they are there.
setup:
	@sh cmake/setup.sh

build/build.ninja: CMakeLists.txt CMakePresets.json | setup
	@$(call configure,release)

build: build/build.ninja ## build the release into build/
	@$(call compile,build)


# What the demonstration needs, without the tests
demo: build/build.ninja ## couple two emulated test benches and a simulated car, with a page to watch
	@$(call compile,build,--target cardan_command powertrain_fmus)
	@sh cmake/wltc.sh build/cycles
	@sh examples/prototype/demo.sh

# The Python tools of the tests live in a virtual environment of their own, those of the benchmarks
# in another: a peer may want other versions.
build/venv/ready: tests/tools/requirements.txt cmake/venv.sh | setup
	@sh cmake/venv.sh build/venv tests/tools/requirements.txt

build/venv-bench/ready: tests/tools/requirements.txt benchmarks/requirements.txt cmake/venv.sh | setup
	@sh cmake/venv.sh build/venv-bench tests/tools/requirements.txt benchmarks/requirements.txt

test: test-release test-dev test-tsan $(if $(filter-out fuzz,$(LABEL)),,test-fuzz-minute) ## all tests, also under the sanitizers; LABEL=unit chooses

# Before the build: what is there decides which tests there are
test-setup: | setup
	@sh cmake/setup.sh test || echo "cardan: without chromium, ngspice, clang or the arm64 compiler, what needs them is not tested" >&2

test-release: test-setup build build/venv/ready
	@sh cmake/ngspice.sh build/ngspice
	@sh cmake/wltc.sh build/cycles
	@ctest --test-dir build --output-on-failure -j $(AT_ONCE) -LE 'soak|long' $(label) || sh cmake/again.sh build

test-long: build build/venv/ready ## the sweeps that make test does in part
	@ctest --test-dir build --output-on-failure -j $(JOBS) -L long $(label)

test-isolated: build ## the tests of units and runs with every FMU in a worker process
	@CARDAN_ISOLATE=all ctest --test-dir build --output-on-failure -j $(JOBS) -LE 'soak|long' -R '^test_(unit|master|fmi|system|ssp)_'

test-vm: build build/venv/ready ## real-time kernel, CAN and netem, in a virtual machine
	@sh cmake/setup.sh vm
	@ctest --test-dir build --output-on-failure -L vm

test-mcu: build build/venv/ready ## what runs on controllers on emulated Cortex-M4F and M7 boards
	@sh cmake/setup.sh mcu
	@ctest --test-dir build --output-on-failure -j $(JOBS) -L mcu

instructions: build/build.ninja ## what circuits and twins of the thesis cost in instructions of arm64, beside its boards' times
	@sh cmake/setup.sh arm
	@sh cmake/sysroot.sh arm64 build/sysroot/arm64
	@$(call configure,arm64) && $(call compile,build/arm64,--target cardan_command)
	@python3 -B tests/platforms/instructions.py build/arm64/cardan build/sysroot/arm64 build/instructions

# Ray takes minutes and is left out where it cannot be had.
build/venv-cluster/ready: tests/cluster/requirements.txt tests/cluster/optional.txt cmake/venv.sh | setup
	@sh cmake/venv.sh build/venv-cluster tests/cluster/requirements.txt tests/cluster/optional.txt

test-cluster: build/venv-cluster/ready ## studies on Slurm, Open MPI, Dask and Ray, the real ones
	@sh cmake/setup.sh cluster
	@$(call configure,release)
	@$(call compile,build)
	@ctest --test-dir build --output-on-failure -L cluster

cross = $(call configure,$(1)) && $(call compile,build/$(1),--target arm_tests)

test-arm: build/build.ninja build/venv/ready ## arm64 and armhf under qemu, the same bits with other compilers and C libraries
	@sh cmake/setup.sh arm
	@$(call compile,build,--target cardan_command example_fmus)
	@sh cmake/sysroot.sh arm64 build/sysroot/arm64
	@sh cmake/sysroot.sh armhf build/sysroot/armhf
	@$(call cross,arm64)
	@$(call cross,armhf)
	@ctest --test-dir build/arm64 --output-on-failure -j $(JOBS) -L arm
	@ctest --test-dir build/armhf --output-on-failure -j $(JOBS) -L arm
	@CARDAN_TEST_ARM=1 ctest --test-dir build --output-on-failure -j $(JOBS) -L arm

# The example FMUs, which the builds with sanitizers share
fmus: build/build.ninja
	@$(call compile,build,--target example_fmus)
shared = -DCARDAN_SHARED_FMUS='$(CURDIR)/build/fmus'

test-dev: fmus build/venv/ready
	@$(call configure,dev,$(shared))
	@$(call compile,build/dev)
	@ctest --test-dir build/dev --output-on-failure -j $(JOBS) \
	    -LE 'soak|long|e2e|golden|peer|rates' $(label) || sh cmake/again.sh build/dev

test-tsan: fmus build/venv/ready
	@$(call configure,tsan,$(shared))
	@$(call compile,build/tsan,--target threaded_tests)
	@ctest --test-dir build/tsan --output-on-failure -j $(JOBS) \
	    -LE 'soak|long|e2e|golden|peer|serial|rates' $(label) || sh cmake/again.sh build/tsan

fuzzers = $(call configure,fuzz); $(call compile,build/fuzz,--target fuzzers)

# A minute for all fuzz targets together
test-fuzz-minute: build/build.ninja
	@if command -v clang >/dev/null; then $(fuzzers) && JOBS=$(JOBS) sh tests/fuzz/run.sh build/fuzz /60; \
	else echo "cardan: without clang nothing is fuzzed" >&2; fi

test-fuzz: build/build.ninja ## every fuzz target for FUZZ_SECONDS (default 60)
	@sh cmake/setup.sh fuzz
	@$(fuzzers) && JOBS=$(JOBS) sh tests/fuzz/run.sh build/fuzz $(FUZZ_SECONDS)

wheel: build build/venv/ready ## the Python module as a wheel in build/dist, out of the library in build/
	@CARDAN_WHEEL_BUILD='$(CURDIR)/build' build/venv/bin/python python/build_wheel.py build/dist

docs: build/venv/ready ## the documentation as a site in build/site, searchable offline
	@build/venv/bin/mkdocs build --strict --quiet && echo "build/site/index.html"

pictures: build build/venv/ready ## the pictures of the documentation, some in real time: on a quiet machine; PICTURE=plot.png makes one
	@sh cmake/setup.sh test
	@CARDAN_BUILD='$(CURDIR)/build' build/venv/bin/python -B tests/docs/pictures.py $(PICTURE)

bench: build build/venv-bench/ready ## benchmarks as ratios; BENCH=master runs those whose name starts so
	@sh cmake/setup.sh bench || echo "cardan: without ngspice, circuits are not compared with it" >&2
	@build/bench/cardan-bench --json build/bench.json --python build/venv-bench/bin/python $(BENCH)

dist: ## what is committed as a source archive in build/dist; it builds without git
	@sh packaging/dist.sh build/dist

deb: ## Debian packages in build/deb, checked by lintian; ARCH=arm64 cross-builds those of arm64 in build/deb-arm64
ifeq ($(ARCH),)
	@sh cmake/setup.sh deb
	@sh packaging/deb.sh build/deb
else
	@[ '$(ARCH)' = arm64 ] || { echo 'cardan: packages for ARCH=$(ARCH) are not made, expected arm64' >&2; exit 2; }
	@sh cmake/setup.sh deb arm
	@sh cmake/sysroot.sh $(ARCH) build/sysroot/$(ARCH)
	@sh packaging/deb.sh build/deb-$(ARCH) $(ARCH)
endif

test-deb: deb ## the packages installed, tried and purged in a new Debian root, and in a container; those of ARCH=arm64 by qemu
ifeq ($(ARCH),)
	@sh packaging/try.sh build/deb
	@sh packaging/container.sh build/deb
else
	@sh packaging/try_arm64.sh build/deb-$(ARCH)
endif

install: build ## install under PREFIX, below DESTDIR if given
	@DESTDIR='$(DESTDIR)' cmake --install build --prefix '$(PREFIX)' >/dev/null || \
	    { echo "cardan: try sudo make install, or PREFIX=~/.local" >&2; exit 1; }
	@[ -n '$(DESTDIR)' ] || [ "$$(id -u)" -ne 0 ] || ldconfig
	@echo "installed below $(DESTDIR)$(PREFIX), $$(wc -l <build/install_manifest.txt) files"

tidy: build ## clang-tidy over the sources, with its static analyser
	@sh cmake/setup.sh tidy
	@python3 -B tests/house/tidy.py . build

format: ## clang-format over the tree
	@sh cmake/setup.sh tidy
	@clang-format -i $$(git ls-files '*.c' '*.h')

clean: ## remove build/
	@rm -rf build
