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
ext_sources     := $(sort $(wildcard ext/*.c ext/*/*.c))
page_sources    := $(sort $(wildcard sql/page/*))
test_sources    := $(sort $(wildcard tests/unit/test_*.c))
support_sources := $(sort $(wildcard tests/support/*.c tests/unit/*_checks.c))
headers         := $(wildcard encoder/*.h encoder/*/*.h ext/*.h ext/*/*.h tests/unit/*.h tests/support/*.h)

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
#
# Warnings are errors with the compilers that the sources are checked with,
# gcc 12 and clang 14: what a newer one thinks of must not stop a user.
warnings := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
            -Wpointer-arith -Wwrite-strings -Wvla
strict    = $(call once,strict,$(shell $(CC) -dM -E -x c /dev/null 2>/dev/null | awk \
              '$$2 == "__GNUC__" { gcc = $$3 } $$2 == "__clang_major__" { clang = $$3 } \
               END { if (clang ? clang == 14 : gcc == 12) print "-Werror" }'))
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

# An assembler before binutils 2.35 does not know the instructions of AMX.
without_amx = $(call once,without_amx,$(shell echo 'void f(void) { __asm__("tilerelease"); }' | \
                $(CC) -x c -c -o /dev/null - 2>/dev/null || echo -DBERT_NO_AMX))

# What AddressSanitizer puts a function's variables on, when it looks for their use
# after its return, gcc 12 aligns to 32 bytes only: vectors of 64 on it crash. Kernels
# give no address of a variable away.
is_clang = $(call once,is_clang,$(shell $(CC) --version 2>/dev/null | grep clang))
kernel_flags_asan = $(if $(is_clang),-fsanitize-address-use-after-return=never,--param asan-use-after-return=0)

# A library without undefined symbols; sanitizers resolve theirs at run time.
link_release  := -Wl,-z,defs

# ---- Everyday targets --------------------------------------------------------

.PHONY: all
all: build/bertsql.so build/libencoder.a ## build build/bertsql.so and build/libencoder.a (the default)

# `make demo` and `make test` start on machines that have no compiler yet:
# everything they build then waits for `deps`.
checks := test asan ubsan tsan valgrind
ifneq ($(filter demo $(checks),$(MAKECMDGOALS)),)
installed := deps
endif

.PHONY: deps
deps: ## install the Debian packages that are missing, those of the tests too (prints them first)
	@sh tests/tools/install_dependencies.sh $(if $(filter deps $(checks),$(MAKECMDGOALS)),test) $(filter valgrind,$(MAKECMDGOALS))

.PHONY: demo
demo: deps build/bertsql.so model-default ## install what is missing, build, fetch the model, run a session in the sqlite3 shell
	@sh tests/tools/demo.sh

.PHONY: shell
shell: build/bertsql.so ## sqlite3 in which load_extension('bertsql') works; DB=my.db opens a database
	@LD_LIBRARY_PATH=$(CURDIR)/build:$(CURDIR)/build/sqlite-vec$${LD_LIBRARY_PATH:+:$$LD_LIBRARY_PATH} sqlite3 $(if $(DB),'$(DB)') || true

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

# One short line a step; V=1 shows the commands. What is linked takes its name
# when it is whole, so that a running program never meets half a library.
say = $(if $(V),,@printf '  %-5s %s\n' '$1' '$@';)

# $1: variant
define variant_rules
obj_$1     := build/obj/$1
encoder_$1 := $$(encoder_sources:%.c=build/obj/$1/%.o)
ext_$1     := $$(ext_sources:%.c=build/obj/$1/%.o) build/obj/$1/page_assets.o
support_$1 := $$(support_sources:%.c=build/obj/$1/%.o)
tests_$1   := $$(test_sources:tests/unit/%.c=build/$1/%)
flags_of_$1 = $$(common) $$(warnings) $$(strict) $$(flags_$1) $$(CPPFLAGS) $$(CFLAGS)

$$(obj_$1)/flags: FORCE | $$(installed)
	$$(call write_if_changed,$$(CC) $$(flags_of_$1))
$$(obj_$1)/sources: FORCE
	$$(call write_if_changed,$$(encoder_sources) $$(ext_sources) $$(support_sources))

$$(obj_$1)/encoder/%.o: encoder/%.c $$(obj_$1)/flags | $$(installed)
	@mkdir -p $$(@D)
	$$(call say,CC) $$(CC) $$(flags_of_$1) $$(if $$(filter kernels/%,$$*),$$(kernel_flags_$1) $$(without_amx)) \
	  $$(flags_for_$$(notdir $$*)) -MMD -MP -c -o $$@ $$<
$$(obj_$1)/ext/%.o: ext/%.c $$(obj_$1)/flags | $$(installed)
	@mkdir -p $$(@D)
	$$(call say,CC) $$(CC) $$(flags_of_$1) -MMD -MP -c -o $$@ $$<
$$(obj_$1)/page_assets.o: build/page/page_assets.c $$(obj_$1)/flags
	@mkdir -p $$(@D)
	$$(call say,CC) $$(CC) $$(flags_of_$1) -I. -MMD -MP -c -o $$@ $$<
$$(obj_$1)/tests/%.o: tests/%.c $$(obj_$1)/flags | $$(installed)
	@mkdir -p $$(@D)
	$$(call say,CC) $$(CC) $$(flags_of_$1) $$(test_flags) -DBERTSQL_LIBRARY='"$$(out_$1)/bertsql"' -MMD -MP -c -o $$@ $$<

$$(out_$1)/libencoder.a: $$(encoder_$1) $$(obj_$1)/sources
	@mkdir -p $$(@D); rm -f $$@.new
	$$(call say,AR) $$(AR) rcs $$@.new $$(encoder_$1) && mv -f $$@.new $$@

$$(out_$1)/bertsql.so: $$(ext_$1) $$(out_$1)/libencoder.a $$(obj_$1)/exports.map
	$$(call say,LINK) $$(CC) $$(flags_of_$1) -shared -o $$@.new $$(ext_$1) $$(out_$1)/libencoder.a \
	  -Wl,--exclude-libs,ALL -Wl,--version-script,$$(obj_$1)/exports.map -Wl,--as-needed \
	  -Wl,-soname,bertsql.so $$(link_$1) $$(LDFLAGS) $$(openblas) $$(utf8proc) -lm $$(LDLIBS) && mv -f $$@.new $$@

$$(obj_$1)/exports.map: $$(obj_$1)/flags
	@printf '{ global: sqlite3_bertsql_init; local: *; };\n' > $$@

$$(obj_$1)/libsupport.a: $$(support_$1) $$(obj_$1)/sources
	@mkdir -p $$(@D); rm -f $$@.new
	$$(call say,AR) $$(AR) rcs $$@.new $$(support_$1) && mv -f $$@.new $$@

$$(tests_$1): build/$1/%: $$(obj_$1)/tests/unit/%.o $$(obj_$1)/libsupport.a $$(out_$1)/libencoder.a
	@mkdir -p $$(@D)
	$$(call say,LINK) $$(CC) $$(flags_of_$1) -o $$@ $$< $$(obj_$1)/libsupport.a $$(out_$1)/libencoder.a \
	  $$(LDFLAGS) -Wl,--as-needed $$(openblas) $$(utf8proc) -lcmocka -lsqlite3 -ldl -lm $$(LDLIBS)

-include $$(encoder_$1:.o=.d) $$(ext_$1:.o=.d) $$(support_$1:.o=.d)
-include $$(test_sources:%.c=build/obj/$1/%.d)
endef
$(foreach v,$(variants),$(eval $(call variant_rules,$v)))

# The page of attn_html, in the library as two arrays.
build/page/page_assets.c: $(page_sources)
	@mkdir -p $(@D)
	$(call say,PAGE) sh sql/page/embed.sh sql/page > $@.new && mv -f $@.new $@

# One file sees OpenBLAS, whose header is not on the compiler's own path
# everywhere.
flags_for_gemm = $(openblas_include)
test_flags := -I. -Iencoder -Itests/support -Wno-unused-parameter -Wno-missing-prototypes

# ---- Tests -------------------------------------------------------------------
# ONLY=word runs only the test programs with that word in their names.

shell_tests := $(sort $(wildcard tests/shell/test_*.sh))
only = $(if $(ONLY),$(foreach program,$1,$(if $(findstring $(ONLY),$(notdir $(program))),$(program))),$1)

.PHONY: unit
unit: $(tests_release) build/bertsql.so ## build the unit tests, build/release/test_*

# $1: variant, $2: seconds that one program may take, $3: programs, $4: settings
run = @$4 CC='$(CC)' ENCODER_LIBS='$(openblas) $(utf8proc)' BERTSQL_OUT=$(out_$1) \
  BERTSQL_CFLAGS='$(flags_$1)' bash tests/tools/run_tests.sh -t $2 build/logs/$1 $(call only,$3)

# What runs with sanitizers and valgrind besides the unit tests.
sql_tests := tests/shell/test_sql.sh tests/shell/test_readme.sh tests/shell/test_header_example.sh
runtime = BERTSQL_PRELOAD=$$($(CC) -print-file-name=lib$1.so)

.PHONY: test
needed_by_test := build/node/installed build/sqlite-vec/vec0.so build/sqlite/installed
test: deps $(tests_release) build/bertsql.so build/libencoder.a model-default $(needed_by_test) ## build and run all tests
	$(call run,release,600,$(tests_release) $(shell_tests))

# Another extension that works on our vectors: a recipe uses it.
build/sqlite-vec/vec0.so: tests/tools/fetch_sqlite_vec.sh | $(installed)
	$(call say,FETCH) bash $< $@

# What drives Chromium in the tests of the page of attn_html.
build/node/installed: tests/page/package-lock.json tests/page/package.json | $(installed)
	@mkdir -p $(@D)
	@cp tests/page/package.json tests/page/package-lock.json $(@D)
	$(call say,NPM) npm ci --prefix $(@D) --no-audit --no-fund --loglevel=error && touch $@

# The oldest SQLite that bertsql supports and the newest, for tests/shell/test_*_sqlite.sh.
build/sqlite/installed: tests/tools/build_sqlite.sh | $(installed)
	@CC='$(CC)' bash tests/tools/build_sqlite.sh && touch $@

.PHONY: asan
asan: deps $(tests_asan) build/asan/bertsql.so model-default ## the tests with AddressSanitizer
	$(call run,asan,1800,$(tests_asan) $(sql_tests),$(call runtime,asan) \
	  ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 \
	  LSAN_OPTIONS=suppressions=tests/tools/lsan.supp:print_suppressions=0)

.PHONY: ubsan
ubsan: deps $(tests_ubsan) build/ubsan/bertsql.so model-default ## the tests with UndefinedBehaviorSanitizer
	$(call run,ubsan,1800,$(tests_ubsan) $(sql_tests),UBSAN_OPTIONS=print_stacktrace=1)

.PHONY: tsan
tsan: deps $(tests_tsan) build/tsan/bertsql.so model-default ## the tests with ThreadSanitizer
	$(call run,tsan,1800,$(tests_tsan) $(sql_tests),$(call runtime,tsan) TSAN_OPTIONS=die_after_fork=0)

# Valgrind calls a function for each fused multiply-add, so that AVX2 products take
# it ten times as long as those of an old processor's OpenBLAS. What compares the
# sets of kernels still runs the vector kernels, on fewer texts.
under_valgrind := BERTSQL_RUN='valgrind --quiet --error-exitcode=99 --leak-check=full \
  --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect' \
  BERTSQL_KERNELS=scalar OPENBLAS_CORETYPE=Nehalem
.PHONY: valgrind
valgrind: deps $(tests_release) build/bertsql.so model-default ## the tests under valgrind
	$(call run,release,7200,$(tests_release) $(filter-out %example.sh,$(sql_tests)),$(under_valgrind))

.PHONY: sql-expected
sql-expected: build/bertsql.so model-default build/sqlite-vec/vec0.so ## write tests/sql/*.out and the outputs in README.md, sql/docs and of the demo anew
	@bash tests/shell/test_sql.sh --write
	@bash tests/shell/test_demo.sh --write
	@bash tests/shell/test_recipes.sh --write
	@bash tests/shell/test_readme.sh --write
	@git --no-pager diff --stat -- tests/sql tests/docs sql/docs README.md

.PHONY: arm64
arm64: ## the kernels of 64-bit ARM, cross-compiled, checked under an emulator
	@sh tests/tools/kernels_arm64.sh

.PHONY: lint
lint: ## clang-tidy, cppcheck and the rules of the house, warnings as errors
	@CC='$(CC)' bash tests/tools/lint.sh

.PHONY: format-check
format-check: ## does clang-format agree with the sources?
	@clang-format --dry-run -Werror $(encoder_sources) $(ext_sources) $(test_sources) $(support_sources) $(headers)

.PHONY: bench
bench: build/bertsql.so build/libencoder.a model-default ## measure speed and memory
	@bash tests/bench/run.sh

.PHONY: plots
plots: ## draw tests/bench/plots/*.svg from what `make bench` measured
	@python3 tests/bench/plots.py build/bench tests/bench/plots && ls tests/bench/plots/*.svg

# ---- Installing --------------------------------------------------------------

installer = @PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' sh tests/tools/install.sh

.PHONY: install install-model uninstall
install: build/bertsql.so build/libencoder.a ## install below PREFIX (/usr/local); DESTDIR is put before it
	$(installer) install
install-model: model-default ## install all-MiniLM-L6-v2 as the default model beside the library
	$(installer) install-model
uninstall: ## remove what install and install-model put there
	$(installer) uninstall

# ---- The rest ----------------------------------------------------------------

.PHONY: clean distclean
clean: ## remove build/
	rm -rf build
distclean: clean ## remove build/ and the models
	rm -rf models

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
