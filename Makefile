# SPDX-License-Identifier: BSD-3-Clause
# Quire's build. Out of tree in build/ (BUILD=...), quiet unless V=1. `make help` lists the targets.

BUILD    ?= build
PREFIX   ?= /usr/local
DESTDIR  ?=
CC       ?= gcc
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
            -Iinclude -Isrc -Itransport -Itopology -Ialgorithms $(CFLAGS)
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

all: lib tools perf

lib: $(BUILD)/libquire.so $(BUILD)/libquire.a $(BUILD)/quire.pc
tools: $(TOOLS)
perf: $(PERFS)
tests: $(TESTS)

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CFLAGS_) -MMD -MP -c $< -o $@

$(BUILD)/libquire.a: $(LIB_OBJ)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $(LIB_OBJ)

$(BUILD)/$(SONAME): $(LIB_OBJ) src/api/exports.map
	$(call say,LD,$@)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=src/api/exports.map -Wl,-z,defs \
		$(LDFLAGS_) -o $@ $(LIB_OBJ) $(LIBS)

$(BUILD)/libquire.so: $(BUILD)/$(SONAME)
	$(Q)ln -sf $(SONAME) $@

$(BUILD)/quire.pc: Makefile
	@mkdir -p $(@D)
	$(Q)printf 'prefix=%s\nlibdir=$${prefix}/lib\nincludedir=$${prefix}/include\n\nName: quire\nDescription: collective communication library\nVersion: %s\nLibs: -L$${libdir} -lquire\nLibs.private: -lhwloc -lm -pthread\nCflags: -I$${includedir}\n' '$(PREFIX)' '$(VERSION)' > $@

# Tools that show the inside (plans, knobs) link the static library; the others use the shared one as a user would.
$(BUILD)/quire-plan: $(BUILD)/obj/tools/quire-plan.o $(BUILD)/libquire.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_) -o $@ $< $(BUILD)/libquire.a $(LIBS)
$(BUILD)/quire-%: $(BUILD)/obj/tools/quire-%.o $(BUILD)/libquire.so
	$(call say,LD,$@)$(CC) $(LDFLAGS_) -o $@ $< -L$(BUILD) -lquire -Wl,-rpath,'$$ORIGIN'
$(BUILD)/%_perf: $(BUILD)/obj/perf/%_perf.o $(PERF_LIB) $(BUILD)/libquire.so
	$(call say,LD,$@)$(CC) $(LDFLAGS_) -o $@ $< $(PERF_LIB) -L$(BUILD) -lquire -lm -Wl,-rpath,'$$ORIGIN'
$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(TEST_LIB) $(BUILD)/libquire.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_) -o $@ $< $(TEST_LIB) $(BUILD)/libquire.a $(LIBS) $(CHECK_LIBS)

clean:
	$(Q)rm -rf $(BUILD)

.PHONY: all lib tools perf tests clean
.SECONDARY:
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
