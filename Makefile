# Builds bertsql, fetches the model, runs the demo and the tests.
# `make help` lists the targets; tests/README.md explains the tests.
#
# Sources are found by wildcard: a new encoder/*/NAME.c, ext/NAME.c or
# tests/unit/test_NAME.c needs no change here.

MAKEFLAGS += --no-builtin-rules
SHELL := /bin/sh
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all

CC      := $(if $(filter default undefined,$(origin CC)),gcc,$(CC))
AR      := $(if $(filter default undefined,$(origin AR)),ar,$(AR))
PREFIX  ?= /usr/local
DESTDIR ?=
LDLIBS  ?=

# ---- Sources ---------------------------------------------------------------

encoder_sources := $(sort $(wildcard encoder/*/*.c))
ext_sources     := $(sort $(wildcard ext/*.c))
test_sources    := $(sort $(wildcard tests/unit/test_*.c))
support_sources := $(sort $(wildcard tests/support/*.c tests/unit/*_checks.c))
headers         := $(wildcard encoder/*.h encoder/*/*.h ext/*.h tests/unit/*.h tests/support/*.h)

# ---- What the build finds on the machine ------------------------------------
# Looked up when first used and not when this file is read, because `make demo`
# and `make test` may have installed the libraries in between.

once = $(eval $1 := $2)$($1)
triplet  = $(call once,triplet,$(shell $(CC) -print-multiarch 2>/dev/null | grep . || $(CC) -dumpmachine))
openblas = $(call once,openblas,$(shell sh tests/tools/find_library.sh openblas $(triplet)))
utf8proc = $(call once,utf8proc,$(shell sh tests/tools/find_library.sh utf8proc $(triplet)))
openblas_include = $(call once,openblas_include,$(shell sh tests/tools/find_library.sh cblas.h $(triplet)))

# ---- Flags -------------------------------------------------------------------
# No -march, no -ffast-math: one build runs on every processor of its kind, and
# kernels enable their instructions function by function. -ffp-contract=off
# keeps the compiler from fusing a*b+c behind our back, so that every compiler
# computes the same numbers; kernels that want a fused step write it.

warnings := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
            -Wpointer-arith -Wwrite-strings -Wvla -Werror
common   := -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -ffp-contract=off -pthread -g

# Each variant is a whole build of its own: flags, folder of its results.
variants      := release asan ubsan tsan
flags_release := -O2
flags_asan    := -O1 -fno-omit-frame-pointer -fsanitize=address
flags_ubsan   := -O1 -fno-omit-frame-pointer -fsanitize=undefined,float-divide-by-zero \
                 -fno-sanitize-recover=all
flags_tsan    := -O1 -fno-omit-frame-pointer -fsanitize=thread
out_release   := build
out_asan      := build/asan
out_ubsan     := build/ubsan
out_tsan      := build/tsan

# A library without undefined symbols; sanitizers resolve theirs at run time.
link_release  := -Wl,-z,defs

# ---- Everyday targets --------------------------------------------------------

.PHONY: all
all: build/bertsql.so build/libencoder.a ## build build/bertsql.so and build/libencoder.a (the default)

# `make demo` and `make test` start on machines that have no compiler yet:
# everything they build then waits for `deps`.
goals_that_install := demo test model-default asan ubsan tsan valgrind
ifneq ($(filter $(goals_that_install),$(MAKECMDGOALS)),)
installed := deps
endif

.PHONY: deps
deps: ## install the Debian packages that are missing (prints them first)
	@sh tests/tools/install_dependencies.sh

.PHONY: demo
demo: deps build/bertsql.so model-default ## install what is missing, build, fetch the model, run a session in the sqlite3 shell
	@sh tests/tools/demo.sh

.PHONY: shell
shell: build/bertsql.so ## sqlite3 in which load_extension('bertsql') works
	@LD_LIBRARY_PATH=$(CURDIR)/build$${LD_LIBRARY_PATH:+:$$LD_LIBRARY_PATH} sqlite3 $(DB)

# ---- Models ------------------------------------------------------------------

.PHONY: model model-default
model: $(if $(SOURCE),,model-default) ## fetch all-MiniLM-L6-v2, or SOURCE=org/name [REVISION=main] from the Hugging Face hub
ifneq ($(SOURCE),)
	@bash tests/tools/fetch_model.sh '$(SOURCE)' $(if $(REVISION),'$(REVISION)')
endif

model-default: | $(installed)
	@bash tests/tools/fetch_default_model.sh

# ---- Building ----------------------------------------------------------------

# A file that changes only when its text does: what depends on it is made anew
# when flags, compiler or the list of sources change.
write_if_changed = @mkdir -p $(@D); printf '%s\n' '$1' | cmp -s - $@ || printf '%s\n' '$1' > $@

.PHONY: FORCE
FORCE:

# One short line a step; V=1 shows the commands.
say = $(if $(V),,@printf '  %-5s %s\n' '$1' '$@';)

# $1: variant
define variant_rules
obj_$1     := build/obj/$1
encoder_$1 := $$(encoder_sources:%.c=build/obj/$1/%.o)
ext_$1     := $$(ext_sources:%.c=build/obj/$1/%.o)
support_$1 := $$(support_sources:%.c=build/obj/$1/%.o)
tests_$1   := $$(test_sources:tests/unit/%.c=build/$1/%)
flags_of_$1 := $$(common) $$(warnings) $$(flags_$1) $$(CPPFLAGS) $$(CFLAGS)

$$(obj_$1)/flags: FORCE
	$$(call write_if_changed,$$(CC) $$(flags_of_$1))
$$(obj_$1)/sources: FORCE
	$$(call write_if_changed,$$(encoder_sources) $$(ext_sources) $$(support_sources))

$$(obj_$1)/encoder/%.o: encoder/%.c $$(obj_$1)/flags | $$(installed)
	@mkdir -p $$(@D)
	$$(call say,CC) $$(CC) $$(flags_of_$1) $$(flags_for_$$(notdir $$*)) -MMD -MP -c -o $$@ $$<
$$(obj_$1)/ext/%.o: ext/%.c $$(obj_$1)/flags | $$(installed)
	@mkdir -p $$(@D)
	$$(call say,CC) $$(CC) $$(flags_of_$1) -MMD -MP -c -o $$@ $$<
$$(obj_$1)/tests/%.o: tests/%.c $$(obj_$1)/flags | $$(installed)
	@mkdir -p $$(@D)
	$$(call say,CC) $$(CC) $$(flags_of_$1) $$(test_flags) -DBERTSQL_LIBRARY='"$$(out_$1)/bertsql"' -MMD -MP -c -o $$@ $$<

$$(out_$1)/libencoder.a: $$(encoder_$1) $$(obj_$1)/sources
	@rm -f $$@
	$$(call say,AR) $$(AR) rcs $$@ $$(encoder_$1)

$$(out_$1)/bertsql.so: $$(ext_$1) $$(out_$1)/libencoder.a $$(obj_$1)/exports.map
	$$(call say,LINK) $$(CC) $$(flags_of_$1) -shared -o $$@ $$(ext_$1) $$(out_$1)/libencoder.a \
	  -Wl,--exclude-libs,ALL -Wl,--version-script,$$(obj_$1)/exports.map -Wl,--as-needed \
	  -Wl,-soname,bertsql.so $$(link_$1) $$(LDFLAGS) $$(openblas) $$(utf8proc) -lm $$(LDLIBS)

$$(obj_$1)/exports.map: $$(obj_$1)/flags
	@printf '{ global: sqlite3_bertsql_init; local: *; };\n' > $$@

$$(obj_$1)/libsupport.a: $$(support_$1) $$(obj_$1)/sources
	@rm -f $$@
	$$(call say,AR) $$(AR) rcs $$@ $$(support_$1)

$$(tests_$1): build/$1/%: $$(obj_$1)/tests/unit/%.o $$(obj_$1)/libsupport.a $$(out_$1)/libencoder.a
	@mkdir -p $$(@D)
	$$(call say,LINK) $$(CC) $$(flags_of_$1) -o $$@ $$< $$(obj_$1)/libsupport.a $$(out_$1)/libencoder.a \
	  $$(LDFLAGS) -Wl,--as-needed $$(openblas) $$(utf8proc) -lcmocka -lsqlite3 -ldl -lm $$(LDLIBS)

-include $$(encoder_$1:.o=.d) $$(ext_$1:.o=.d) $$(support_$1:.o=.d)
-include $$(test_sources:%.c=build/obj/$1/%.d)
endef
$(foreach v,$(variants),$(eval $(call variant_rules,$v)))

# One file sees OpenBLAS, whose header is not on the compiler's own path
# everywhere.
flags_for_gemm = $(openblas_include)
test_flags := -I. -Iencoder -Itests/support -Wno-unused-parameter -Wno-missing-prototypes

# ---- Tests -------------------------------------------------------------------

.PHONY: unit
unit: $(tests_release) build/bertsql.so ## build the unit tests (build/release/test_*)

.PHONY: clean
clean: ## remove build/
	rm -rf build

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
