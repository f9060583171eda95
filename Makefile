# SPDX-License-Identifier: BSD-3-Clause
# Quire's build. Out of tree in build/ (BUILD=...), quiet unless V=1. `make help` lists the targets.

BUILD    ?= build
PREFIX   ?= /usr/local
DESTDIR  ?=
AT        = $(DESTDIR)$(PREFIX)
CC       := $(if $(filter default,$(origin CC)),gcc,$(CC))
V        ?= 0
WERROR   ?= 0
SANITIZE ?=
Q        := $(if $(filter 1,$(V)),,@)
say       = $(if $(filter 1,$(V)),,@printf '  %-6s %s\n' '$(1)' '$(2)';)

VERSION  := 0.1.0
SONAME   := libquire.so.0
# -O3 for the vectoriser: the plain C kernels are the definition, but they should not crawl.
OPT      ?= -O3
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter
CFLAGS_  := -std=gnu11 -D_GNU_SOURCE $(OPT) -g -fPIC -pthread -fvisibility=hidden -ffp-contract=off $(WARN) \
            $(if $(filter 1,$(WERROR)),-Werror) $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer) \
            $(if $(FUZZ),-fsanitize=fuzzer-no-link) \
            -Iinclude -Isrc -Itransport -Itopology -Ialgorithms -Itests $(CFLAGS)
LDFLAGS_ := -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LDFLAGS)
LIBS     := -lhwloc -lm
CHECK_LIBS = $(shell pkg-config --libs check 2>/dev/null || echo -lcheck_pic -lsubunit -lrt -lm)

LIB_SRC  := $(sort $(wildcard src/*/*.c transport/*.c topology/*.c algorithms/*.c))
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
TOOL_SRC := $(sort $(wildcard tools/quire-*.c))
TOOLS    := $(TOOL_SRC:tools/%.c=$(BUILD)/%)
PERF_SRC := $(sort $(wildcard perf/*_perf.c))
PERFS    := $(PERF_SRC:perf/%.c=$(BUILD)/%)
PERF_LIB := $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(filter-out $(PERF_SRC),$(wildcard perf/*.c))))
TEST_SRC := $(sort $(wildcard tests/*/*_test.c))
TESTS    := $(TEST_SRC:tests/%.c=$(BUILD)/tests/%)
TEST_LIB := $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(wildcard tests/harness/*.c)))
FUZZ_SRC := $(sort $(wildcard tests/fuzz/*_fuzz.c))
FUZZERS  := $(FUZZ_SRC:tests/fuzz/%_fuzz.c=$(BUILD)/fuzz/%)
MAN      := $(wildcard docs/man/*.1)

# Written anew by install, since PREFIX may be another one than when the tree was built.
write_pc  = printf 'prefix=%s\nlibdir=$${prefix}/lib\nincludedir=$${prefix}/include\n\nName: quire\nDescription: collective communication library\nVersion: %s\nLibs: -L$${libdir} -lquire\nLibs.private: -lhwloc -lm -pthread\nCflags: -I$${includedir}\n' '$(PREFIX)' '$(VERSION)'

all: lib tools perf ## build the library, the tools and the perf binaries

lib: $(BUILD)/libquire.so $(BUILD)/libquire.a $(BUILD)/quire.pc
tools: $(TOOLS)
perf: $(PERFS)
tests: $(TESTS)
fuzz: $(FUZZERS) ## build the fuzz targets (FUZZ=1 CC=clang: with libFuzzer)

demo: deps ## install what is missing, build, run a checked all_reduce on 4 processes
	$(Q)$(MAKE) --no-print-directory all
	$(Q)BUILD=$(BUILD) tools/demo.sh

check: deps ## install what is missing, build, run the tests
	$(Q)$(MAKE) --no-print-directory all tests fuzz
	$(Q)BUILD=$(BUILD) tests/run-tests.sh

check-long: export TESTS_LONG = 1
check-long: check ## the same, with the long forms of the tests

# A sanitizer build has its own tree. Kernels at -O1 are slow but the same code.
check-asan: ## tests under the address sanitizer
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)-asan SANITIZE=address OPT=-O1 all tests fuzz
	$(Q)BUILD=$(BUILD)-asan SANITIZE=address tests/run-tests.sh
check-ubsan: ## tests under the undefined behaviour sanitizer
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)-ubsan SANITIZE=undefined OPT=-O1 all tests fuzz
	$(Q)BUILD=$(BUILD)-ubsan SANITIZE=undefined tests/run-tests.sh
check-tsan: ## tests under the thread sanitizer
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)-tsan SANITIZE=thread OPT=-O1 all tests
	$(Q)BUILD=$(BUILD)-tsan SANITIZE=thread tests/run-tests.sh

lint: lib ## formatting, static checks, borders between rooms, exports
	$(Q)BUILD=$(BUILD) scripts/lint/run

format: ## clang-format all sources in place
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h')

deps: ## install missing Debian packages (root or sudo), or print the line to run
	$(Q)scripts/deps.sh

install: all ## install to PREFIX (default /usr/local) under DESTDIR
	$(Q)install -d "$(AT)/include" "$(AT)/lib/pkgconfig" "$(AT)/bin"
	$(Q)install -m 644 include/quire.h "$(AT)/include/"
	$(Q)install -m 755 $(BUILD)/$(SONAME) "$(AT)/lib/"
	$(Q)ln -sf $(SONAME) "$(AT)/lib/libquire.so"
	$(Q)install -m 644 $(BUILD)/libquire.a "$(AT)/lib/"
	$(Q)$(write_pc) > "$(AT)/lib/pkgconfig/quire.pc"
	$(Q)install -m 755 $(TOOLS) $(PERFS) "$(AT)/bin/"
	$(Q)$(if $(MAN),install -d "$(AT)/share/man/man1" && install -m 644 $(MAN) "$(AT)/share/man/man1/")

uninstall: ## remove what install put there
	$(Q)cd "$(AT)" && rm -f include/quire.h lib/$(SONAME) lib/libquire.so lib/libquire.a \
		lib/pkgconfig/quire.pc $(addprefix bin/,$(notdir $(TOOLS) $(PERFS))) $(addprefix share/man/man1/,$(notdir $(MAN)))

# Changed only when the compiler or its flags change: then everything in this tree is stale.
$(BUILD)/flags: export FLAGS_NOW = $(CC) $(CFLAGS_) $(LDFLAGS_) $(RPATH)
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' "$$FLAGS_NOW" | cmp -s - $@ || printf '%s\n' "$$FLAGS_NOW" > $@
FORCE:

$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CFLAGS_) -MMD -MP -c $< -o $@

$(BUILD)/libquire.a: $(LIB_OBJ)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $(LIB_OBJ)

$(BUILD)/$(SONAME): $(LIB_OBJ) src/api/exports.map
	$(call say,LD,$@)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=src/api/exports.map \
		$(if $(SANITIZE),,-Wl$(comma)-z$(comma)defs) $(LDFLAGS_) -o $@ $(LIB_OBJ) $(LIBS)

comma := ,

$(BUILD)/libquire.so: $(BUILD)/$(SONAME)
	$(Q)ln -sf $(SONAME) $@

$(BUILD)/quire.pc: Makefile
	@mkdir -p $(@D)
	$(Q)$(write_pc) > $@

# Beside the library in the build tree, or in bin/ of a prefix that the loader does not search.
RPATH := -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../lib'

# Tools that show the inside (plans, machine) link the static library; the others use the shared one as a user would.
$(BUILD)/quire-plan $(BUILD)/quire-info: $(BUILD)/quire-%: $(BUILD)/obj/tools/quire-%.o $(BUILD)/libquire.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_) -o $@ $< $(BUILD)/libquire.a $(LIBS)
$(BUILD)/quire-%: $(BUILD)/obj/tools/quire-%.o $(BUILD)/libquire.so
	$(call say,LD,$@)$(CC) $(LDFLAGS_) -o $@ $< -L$(BUILD) -lquire $(RPATH)
$(BUILD)/%_perf: $(BUILD)/obj/perf/%_perf.o $(PERF_LIB) $(BUILD)/libquire.so
	$(call say,LD,$@)$(CC) $(LDFLAGS_) -o $@ $< $(PERF_LIB) -L$(BUILD) -lquire -lm $(RPATH)
$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(TEST_LIB) $(BUILD)/libquire.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_) -o $@ $< $(TEST_LIB) $(BUILD)/libquire.a $(LIBS) $(CHECK_LIBS)

# A fuzz target is one function; driver.c makes it a program for any compiler, FUZZ=1 links libFuzzer instead.
$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%_fuzz.o $(BUILD)/obj/tests/fuzz/driver.o $(BUILD)/libquire.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_) $(if $(FUZZ),-fsanitize=fuzzer) -o $@ $< \
		$(if $(FUZZ),,$(BUILD)/obj/tests/fuzz/driver.o) $(BUILD)/libquire.a $(LIBS)

clean: ## remove the build trees
	$(Q)rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-ubsan $(BUILD)-tsan $(BUILD)-clang $(BUILD)-gcc $(BUILD)-fuzz

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo '  V=1 shows commands, CC=clang, WERROR=1, BUILD=dir, PREFIX=dir'

.PHONY: all lib tools perf tests fuzz demo check check-long check-asan check-ubsan check-tsan lint format deps install \
        uninstall clean help FORCE
.SECONDARY:
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
