# Epimetheus. `make help` lists the targets; everything is built below $(BUILD), nothing in the tree.

MODE ?= release
ifeq ($(MODE),release)
BUILD ?= build
else
BUILD ?= build/$(MODE)
endif

.DEFAULT_GOAL := all
.SUFFIXES:
.DELETE_ON_ERROR:
.SECONDARY:
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += --jobs=$(shell nproc)
endif
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# The commit and its date. Tests' builds have none: each commit would link all tests anew.
ifeq ($(origin REVISION)$(MODE),undefinedrelease)
COMMIT := $(shell base/self/commit.sh)
REVISION := $(word 1,$(COMMIT))
REVISION_TIME := $(word 2,$(COMMIT))
endif

# ---------------------------------------------------------------------------------------------------
# The house: rooms from the ground up, and what each may include. A room uses only rooms that come before it in ROOMS,
# so no two use each other. `make lint` and every link below follow this table.

ROOMS := base base/yaml base/xml base/gzip base/demangle base/self base/net \
	proto proto/report proto/otlp proto/jfr proto/legacy proto/folded proto/any \
	discovery/sources discovery/kubernetes discovery/apis discovery \
	scrape/config scrape/receive scrape/forward scrape/targets scrape \
	tsdb/bucket tsdb/store tsdb/remote tsdb/debuginfo/index tsdb/debuginfo/elf tsdb/debuginfo/pclntab tsdb/debuginfo/dwarf \
	tsdb/debuginfo/extract tsdb/debuginfo/store tsdb/debuginfo/service tsdb/debuginfo/shared scrape/debuginfod \
	tsdb/segments tsdb/symbols tsdb/debuginfo/names tsdb/columns tsdb/rollup tsdb/series tsdb/block tsdb/lists tsdb/catalog \
	tsdb/head tsdb/compact tsdb/read tsdb tsdb/cluster tsdb/cluster/assignment tsdb/cluster/inspect \
	promql/syntax promql/changed promql/runs promql/value promql/costs promql/profiles promql/files promql promql/engine promql/pprof \
	promql/rules/template promql/rules/notify promql/rules promql/rules/saved \
	web/http web/grpc web/router web/openapi web/render web/pyroscope web/push web/profefe web/debuginfo web/files web/api web/rules web/annotations web/mcp web

uses_base/yaml := base
uses_base/xml := base
uses_base/gzip := base
uses_base/demangle := base
uses_base/self := base base/demangle
uses_base/net := base base/yaml
uses_proto := base base/gzip base/demangle
uses_proto/report := base proto
uses_proto/otlp := base proto
uses_proto/jfr := base proto
uses_proto/legacy := base proto
uses_proto/folded := base proto
uses_proto/any := base proto proto/jfr proto/legacy proto/folded
uses_discovery/sources := base base/yaml base/net
uses_discovery/kubernetes := base base/yaml base/net discovery/sources
uses_discovery/apis := base base/yaml base/xml base/net discovery/sources
uses_discovery := base base/yaml base/net discovery/sources discovery/kubernetes discovery/apis
uses_scrape/config := base base/yaml base/net proto discovery
uses_scrape/receive := base base/net proto discovery scrape/config
uses_scrape/forward := base base/gzip base/net proto
uses_scrape/targets := base base/net proto discovery scrape/config
uses_scrape := base base/gzip base/net proto proto/legacy discovery scrape/config scrape/targets
uses_tsdb/bucket := base base/self base/xml base/net
uses_tsdb/store := base
uses_tsdb/remote := base base/net tsdb/bucket tsdb/store
uses_tsdb/debuginfo/index := base base/demangle
uses_tsdb/debuginfo/elf := base tsdb/debuginfo/index
uses_tsdb/debuginfo/pclntab := base tsdb/debuginfo/index tsdb/debuginfo/elf
uses_tsdb/debuginfo/dwarf := base tsdb/debuginfo/index tsdb/debuginfo/elf
uses_tsdb/debuginfo/extract := base tsdb/debuginfo/index tsdb/debuginfo/elf tsdb/debuginfo/pclntab tsdb/debuginfo/dwarf
uses_tsdb/debuginfo/store := base base/self
uses_tsdb/debuginfo/service := base tsdb/debuginfo/index tsdb/debuginfo/store
uses_tsdb/debuginfo/shared := base base/net tsdb/bucket tsdb/debuginfo/store tsdb/debuginfo/service
uses_scrape/debuginfod := base base/net scrape/config tsdb/debuginfo/elf tsdb/debuginfo/store tsdb/debuginfo/service
uses_tsdb/segments := base tsdb/store
uses_tsdb/symbols := base proto
uses_tsdb/debuginfo/names := base tsdb/symbols tsdb/debuginfo/index tsdb/debuginfo/store
uses_tsdb/columns := base proto tsdb/symbols
uses_tsdb/rollup := base proto tsdb/symbols tsdb/columns
uses_tsdb/series := base tsdb/symbols tsdb/columns
uses_tsdb/block := base tsdb/store tsdb/symbols tsdb/columns tsdb/rollup
uses_tsdb/lists := base tsdb/store tsdb/segments tsdb/block
uses_tsdb/catalog := base proto tsdb/store tsdb/segments tsdb/symbols tsdb/columns tsdb/rollup tsdb/series tsdb/block tsdb/lists
uses_tsdb/head := base base/self proto tsdb/store tsdb/segments tsdb/symbols tsdb/columns tsdb/series tsdb/block tsdb/lists tsdb/catalog
uses_tsdb/compact := base base/self tsdb/store tsdb/symbols tsdb/columns tsdb/rollup tsdb/series tsdb/block tsdb/lists tsdb/catalog tsdb/head
uses_tsdb/read := base proto tsdb/store tsdb/symbols tsdb/columns tsdb/rollup tsdb/series tsdb/block tsdb/lists tsdb/catalog tsdb/head
uses_tsdb := base proto tsdb/store tsdb/symbols tsdb/columns tsdb/series tsdb/block tsdb/lists tsdb/catalog tsdb/head tsdb/compact tsdb/read
uses_tsdb/cluster := base base/self base/net tsdb/bucket tsdb/segments tsdb/store tsdb/block tsdb/lists tsdb/catalog tsdb/head tsdb
uses_tsdb/cluster/assignment := base base/net tsdb/bucket tsdb/cluster
uses_tsdb/cluster/inspect := base tsdb/bucket tsdb/segments tsdb/block tsdb/cluster
uses_promql/syntax := base proto/report tsdb/symbols
uses_promql/changed := base
uses_promql/runs := base promql/changed
uses_promql/value := base tsdb promql/syntax
uses_promql/costs := base promql/syntax promql/value
uses_promql/profiles := base proto/report tsdb/symbols promql/syntax promql/value promql/costs
uses_promql/files := base proto proto/any tsdb/symbols promql/syntax promql/value promql/profiles
uses_promql := base proto/report tsdb tsdb/debuginfo/names tsdb/columns promql/syntax promql/changed promql/value promql/costs promql/profiles promql/files
uses_promql/engine := base base/self proto tsdb tsdb/debuginfo/names promql/syntax promql/value promql/costs promql/files promql
uses_promql/pprof := base proto tsdb/symbols promql/syntax promql/value promql/profiles
uses_promql/rules/template := base base/net
uses_promql/rules/notify := base base/net discovery
uses_promql/rules := base base/yaml base/net tsdb/columns promql/syntax promql/value promql/engine promql/pprof \
	promql/rules/template promql/rules/notify
uses_promql/rules/saved := base base/net promql/rules
uses_web/http := base base/gzip base/yaml base/net promql/syntax
uses_web/grpc := base base/net proto proto/otlp web/http
uses_web/router := base base/self base/gzip base/net scrape/receive scrape/forward web/http
uses_web/openapi := base proto/report web/http web/router
uses_web/render := base base/gzip proto proto/report promql/value promql/profiles promql/pprof web/http
uses_web/pyroscope := base proto tsdb promql/syntax promql/engine web/http web/router web/render
uses_web/push := base base/gzip proto proto/otlp proto/jfr proto/legacy proto/folded scrape/receive scrape/forward web/http web/grpc web/router \
	web/pyroscope
uses_web/profefe := base base/self base/net proto proto/legacy scrape/config scrape/receive scrape tsdb web/http web/router web/render web/push
uses_web/debuginfo := base proto scrape/config tsdb tsdb/symbols tsdb/read tsdb/debuginfo/index tsdb/debuginfo/elf tsdb/debuginfo/store tsdb/debuginfo/service \
	web/http web/router web/pyroscope web/push
uses_web/files := base base/net proto proto/any tsdb/bucket tsdb/symbols promql/syntax promql/files web/http web/router web/push
uses_web/api := base base/self base/yaml base/gzip proto proto/any discovery scrape/config scrape/receive scrape/targets scrape scrape/debuginfod tsdb tsdb/columns promql/syntax promql/engine promql/rules \
	promql/rules/template promql/rules/notify promql/rules/saved web/http web/router web/render web/push web/files
uses_web/rules := base promql/rules promql/rules/saved web/http web/router web/api
uses_web/annotations := base proto scrape/receive tsdb promql/syntax web/http web/router web/push web/api
uses_web/mcp := base base/self proto proto/report scrape/config tsdb promql/syntax promql/engine promql/value web/http web/router web/render
uses_web := base base/self base/gzip proto scrape/receive scrape/forward web/http web/grpc web/router web/openapi web/api web/pyroscope web/push \
	web/profefe web/debuginfo web/files web/rules web/annotations web/mcp
uses_cmd := $(ROOMS)
# needs_ROOM is linked with a room: itself, the rooms it uses, and their needs. Those come earlier in ROOMS, so one pass does.
$(foreach r,$(ROOMS) cmd,$(eval needs_$(r) := $(sort $(r) $(foreach u,$(uses_$(r)),$(needs_$(u))))))

.PHONY: rooms
rooms:
	@$(foreach r,$(ROOMS) cmd,echo '$(r): $(uses_$(r))';)

PROGRAMS := epimetheus epitool

# ---------------------------------------------------------------------------------------------------
# Compilers and flags

CC := gcc
CXX := g++
ifeq ($(MODE),fuzz)
CC := clang
CXX := clang++
endif

WARN := -Wall -Wextra -Wshadow -Wpointer-arith -Wcast-qual -Wundef -Wvla -Wwrite-strings \
	-Wno-missing-field-initializers -Wno-unused-parameter
CWARN := $(WARN) -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
# No -fcf-protection: one object without its mark turns it off for the program, and Debian's static libraries have
# none (glibc, OpenSSL, GnuTLS, LevelDB ...; only GCC's own do).
HARDEN := -fPIE -fstack-protector-strong -fstack-clash-protection -ftrivial-auto-var-init=zero -D_FORTIFY_SOURCE=3
# A function of its own section leaves the program that does not call it.
OPT_release := -O2 -ffunction-sections -fdata-sections $(HARDEN)
OPT_debug := -O0 -fPIE
# ASan ends a program that reads at NULL or beyond an object; UBSan's own checks of both take a third of the time to
# compile. MODE=fuzz has them.
OPT_asan := -O1 -Wno-maybe-uninitialized -fsanitize=address,undefined -fno-sanitize=null,object-size \
	-fno-sanitize-recover=undefined -fno-omit-frame-pointer -fPIE
# -O2 runs a fifth faster than -O1.
OPT_tsan := -O2 -Wno-maybe-uninitialized -fsanitize=thread -fno-omit-frame-pointer -fPIE
OPT_fuzz := -O1 -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize=vptr,function \
	-fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer -fPIE -Wno-unknown-warning-option -Wno-gnu-zero-variadic-macro-arguments
OPT := $(OPT_$(MODE))
ifeq ($(OPT),)
$(error MODE is $(MODE); it may be release, debug, asan, tsan or fuzz)
endif

# Locks know their holder in all but release builds (base/thread.h).
CHECK_LOCKS := $(if $(filter release,$(MODE)),,-DEPI_CHECK_LOCKS)
CPPFLAGS := $(CHECK_LOCKS) -I. -I$(BUILD)/gen -D_GNU_SOURCE
# A sanitizer's report needs lines only; -g1 saves a sixth of the time to compile.
DEBUG := $(if $(filter release debug,$(MODE)),-g,-g1)
COMMON := $(DEBUG) -pthread -fno-strict-aliasing -fasynchronous-unwind-tables \
	-ffile-prefix-map='$(CURDIR)/=' -ffile-prefix-map='$(CURDIR)=.' $(OPT) -Werror
CFLAGS := -std=gnu11 $(CWARN) $(COMMON)
CXXFLAGS := -std=gnu++17 -fno-exceptions $(WARN) $(COMMON)
export SOURCE_DATE_EPOCH := 1

# Relative relocations are packed: unpacked they are a twentieth of the program.
STATIC_LDFLAGS := -static-pie -pthread -Wl,-z,relro,-z,now,-z,noexecstack,-z,pack-relative-relocs -Wl,--build-id=sha1 -Wl,--gc-sections
SANITIZE_LDFLAGS := $(filter -fsanitize=%,$(OPT))

LIBS_TLS := -levent -lssl -lcrypto -lcares
LIBS_STORE := -lleveldb -lsnappy -lzstd
LIBS_BASE := $(LIBS_TLS) -lre2 -lyaml -lexpat -lxxhash -ljansson -lcrypt
LIBS_PROTO := -lprotobuf-c -ldeflate -lz -llz4
LIBS_DEBUGINFO := -llzma
LIBS_HTTPD := -lmicrohttpd -lnghttp2 -lgnutls -lhogweed -lnettle -lgmp -ltasn1 -lidn2 -lunistring
SYSLIBS := $(LIBS_HTTPD) $(LIBS_STORE) $(LIBS_BASE) $(LIBS_PROTO) $(LIBS_DEBUGINFO) -lstdc++ -lm

# ---------------------------------------------------------------------------------------------------
# Sources

room_sources = $(wildcard $(1)/*.c $(1)/*.cc)
GEN_proto := $(BUILD)/gen/proto/profile.pb-c.c $(BUILD)/gen/proto/pyroscope.pb-c.c
GEN_promql/syntax := $(BUILD)/gen/promql/syntax/lexer.c $(BUILD)/gen/promql/syntax/grammar.c
GEN_web := $(BUILD)/gen/web/ui_assets.c
GEN_base/self := $(BUILD)/gen/base/self/packages.c
objects = $(patsubst %.cc,$(BUILD)/obj/%.o,$(patsubst %.c,$(BUILD)/obj/%.o,$(1)))
gen_objects = $(patsubst $(BUILD)/gen/%.c,$(BUILD)/obj/gen/%.o,$(1))
room_objects = $(call objects,$(call room_sources,$(1))) $(call gen_objects,$(GEN_$(1)))
room_libs = $(foreach r,$(filter $(ROOMS),$(sort $(foreach r,$(1),$(needs_$(r))))),$(BUILD)/lib/$(r).a)

.PHONY: all
all: $(foreach p,$(PROGRAMS),$(BUILD)/$(p))

define room_rules
$(BUILD)/lib/$(1).a: $$(call room_objects,$(1))
	@mkdir -p $$(@D)
	@rm -f $$@
	@ar rcsD $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call room_rules,$(r))))

# $(DEPS) comes before every compilation (order-only): it installs the packages.
DEPS := $(BUILD)/.deps

$(BUILD)/obj/%.o: %.c | $(DEPS)
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/obj/%.o: %.cc | $(DEPS)
	@mkdir -p $(@D)
	@echo "  CXX   $<"
	@$(CXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ $<
# Code generated by lemon, re2c and protoc-c is compiled without our warnings.
$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c | $(DEPS)
	@mkdir -p $(@D)
	@echo "  CC    $(<:$(BUILD)/%=%)"
	@$(CC) $(CPPFLAGS) -std=gnu11 $(COMMON) -w -MMD -MP -c -o $@ $<

$(BUILD)/gen/proto/%.pb-c.c $(BUILD)/gen/proto/%.pb-c.h &: proto/%.proto | $(DEPS)
	@mkdir -p $(@D)
	@echo "  PROTO $<"
	@protoc-c --proto_path=. --c_out=$(BUILD)/gen $<
$(BUILD)/gen/promql/syntax/lexer.c: promql/syntax/lexer.re $(BUILD)/gen/promql/syntax/grammar.h | $(DEPS)
	@mkdir -p $(@D)
	@echo "  RE2C  $<"
	@re2c -W -Werror --no-generation-date -i -o $@ $<
$(BUILD)/gen/promql/syntax/grammar.c $(BUILD)/gen/promql/syntax/grammar.h &: promql/syntax/grammar.y | $(DEPS)
	@mkdir -p $(@D)
	@echo "  LEMON $<"
	@lemon -q -l -d$(@D) -T$(LEMON_TEMPLATE) $<
	@touch $(@D)/grammar.h # lemon leaves an equal one alone
LEMON_TEMPLATE := $(firstword $(wildcard /usr/share/lemon/lempar.c) /usr/share/lemon/lempar.c)
# The version of all is the file base/VERSION.
$(BUILD)/gen/base/version.h: base/VERSION | $(DEPS)
	@mkdir -p $(@D)
	@printf '#define EPI_VERSION "%s"\n' "$$(cat $<)" >$@
# Generated headers are made before anything is compiled, since any file may include them.
GENERATED := $(BUILD)/gen/base/version.h $(BUILD)/gen/promql/syntax/grammar.h $(BUILD)/gen/proto/profile.pb-c.h $(BUILD)/gen/proto/pyroscope.pb-c.h
$(call objects,$(foreach r,$(ROOMS),$(call room_sources,$(r))) $(wildcard cmd/*/*.c cmd/*/*/*.c)) \
	$(call objects,$(wildcard $(foreach d,* */* */*/* */*/*/*,tests/$(d).c tests/$(d).cc))) \
	$(foreach r,$(ROOMS),$(call gen_objects,$(GEN_$(r)))): | $(GENERATED)

# The commit and the versions of the linked libraries are a source. They are looked at again after packages or apt's lists
# changed, or for another revision; the source is written if it would differ. Libraries that are behind are named then.
LIBRARY_PACKAGES = $(filter %-dev,$(PKGS_build)) libstdc++-$(shell gcc -dumpversion)-dev
PACKAGES_SEEN := $(BUILD)/.packages
PACKAGES_CHANGE := /var/lib/dpkg/status /var/lib/apt/lists
packages_unseen := $(shell seen=$(PACKAGES_SEEN); \
	[ "$$(cat $$seen 2>&1)" = "$(REVISION)" ] || echo FORCE; \
	for f in Makefile base/self/packages.sh $(PACKAGES_CHANGE); do \
		[ ! -e $$f ] || [ $$seen -nt $$f ] || echo FORCE; \
	done)
.PHONY: FORCE
$(GEN_base/self): $(firstword $(packages_unseen)) | $(DEPS)
	@base/self/packages.sh record $@ '$(REVISION)' '$(REVISION_TIME)' $(LIBRARY_PACKAGES)
ifeq ($(MODE),release)
	@base/self/packages.sh behind $(LIBRARY_PACKAGES) | while read -r package old new; do \
		echo "  OLD   $$package $$old is linked, $$new is there: make deps-upgrade"; \
	done
endif
	@echo '$(REVISION)' >$(PACKAGES_SEEN)

# The page: npm and esbuild run in a copy, so that the tree has no node_modules.
UI_SOURCES := $(shell find web/ui -type f -not -path '*/node_modules/*' 2>/dev/null)
UI_DIR := build/ui-src
$(UI_DIR)/.installed: web/ui/package.json web/ui/package-lock.json web/ui/.npmrc | $(DEPS)
	@mkdir -p $(UI_DIR)
	@cp web/ui/package.json web/ui/package-lock.json web/ui/.npmrc $(UI_DIR)/
	@cd $(UI_DIR) && $(CURDIR)/examples/progress.sh "  NPM   web/ui" npm ci --no-audit --no-fund --loglevel=error
	@touch $@
build/gen/web/ui_assets.c: $(UI_SOURCES) $(UI_DIR)/.installed
	@mkdir -p $(@D)
	@rm -rf $(UI_DIR)/src $(UI_DIR)/book
	@cp -r web/ui/. $(UI_DIR)/
	@echo "  UI    web/ui"
	@cd $(UI_DIR) && node build.mjs "$(abspath $(@D))"
# The page is the same in every mode.
ifneq ($(GEN_web),build/gen/web/ui_assets.c)
$(GEN_web): build/gen/web/ui_assets.c
	@mkdir -p $(@D)
	@cp $< $@
endif

# The book: chapters in web/book, files of the tree that are chapters as they are, and parts that cmd/book writes. The server's
# program alone is linked with it: cmd/book is linked with the rooms, so no room may need it.
BOOK_DIR := $(BUILD)/gen/docs
BOOK_SOURCES := $(shell find web/book -type f 2>/dev/null) \
	$(shell grep -oh '"file": *"[^"]*"' web/book/*/chapters.json 2>/dev/null | cut -d '"' -f 4)
BOOK_OBJECT := $(BUILD)/obj/gen/docs/book_assets.o
$(BOOK_DIR)/book_assets.c: $(BOOK_SOURCES) $(BUILD)/gen/book/.done build/gen/web/ui_assets.c
	@mkdir -p $(@D)
	@echo "  BOOK  web/book"
	@cd $(UI_DIR) && node book/build.mjs --tree="$(CURDIR)" --parts="$(abspath $(BUILD)/gen/book)" "$(abspath $(@D))"

# Static HTML for any web server.
.PHONY: book
book: $(BOOK_DIR)/book_assets.c
	@rm -rf $(BUILD)/book
	@cp -r $(BOOK_DIR)/site $(BUILD)/book
	@echo "  $(BUILD)/book/index.html"

# Programs are fully static in release. The linker then warns that getaddrinfo and others need shared libraries; the
# warnings go to a log, since c-ares resolves names and nothing calls these. Other modes link the shared runtime of sanitizers.
# The names of functions stay, for the server's own profile; those of variables are in NAME.debug alone.
program_sources = $(wildcard cmd/$(1)/*.c cmd/$(1)/*/*.c cmd/shared/*.c)
program_objects = $(call objects,$(call program_sources,$(1))) $(if $(filter epimetheus,$(1)),$(BOOK_OBJECT))
define program_rules
$(BUILD)/$(1): $$(call program_objects,$(1)) $$(call room_libs,cmd)
	@echo "  LINK  $$@"
ifeq ($(MODE),release)
	@$(CC) $(OPT) $(STATIC_LDFLAGS) -o $$@.debug $$(call program_objects,$(1)) \
		-Wl,--start-group $$(call room_libs,cmd) $(SYSLIBS) -Wl,--end-group 2>$$@.log || \
		{ cat $$@.log >&2; exit 1; }
	@nm $$@.debug | awk '$$$$2 ~ /^[tTwWiu]$$$$/ { f[$$$$3] = 1 } $$$$2 ~ /^[dDrRbB]$$$$/ { v[$$$$3] = 1 } \
		END { for (name in v) if (!(name in f)) print name }' >$$@.variables
	@objcopy --strip-debug --strip-symbols=$$@.variables $$@.debug $$@
else
	@$(CC) $(OPT) -pthread -o $$@ $$(call program_objects,$(1)) \
		-Wl,--start-group $$(call room_libs,cmd) -Wl,--end-group $(SYSLIBS)
endif
endef
$(foreach p,$(PROGRAMS),$(eval $(call program_rules,$(p))))

# The parts of the book that the programs' own tables say; linked with both programs, never installed.
BOOK_PARTS := $(BUILD)/book_parts
# What packages have beside the programs: manual pages, bills of materials (cmd/dist).
DIST_PARTS := $(BUILD)/dist_parts
parts_objects = $(call objects,$(wildcard cmd/$(1)/*.c) $(sort $(filter-out %/main.c,$(call program_sources,epimetheus) \
	$(call program_sources,epitool))))
define parts_rules
$(BUILD)/$(1)_parts: $$(call parts_objects,$(1)) $$(call room_libs,cmd)
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	@$(CC) $(OPT) -pthread -o $$@ $$(call parts_objects,$(1)) -Wl,--start-group $$(call room_libs,cmd) -Wl,--end-group $(SYSLIBS)
endef
$(foreach p,book dist,$(eval $(call parts_rules,$(p))))
$(BUILD)/gen/book/.done: $(BOOK_PARTS) $(wildcard examples/rules/*.yml)
	@mkdir -p $(@D)
	@rm -f $(@D)/*.md
	@echo "  BOOK  $(@D)"
	@$(BOOK_PARTS) $(@D)
	@touch $@

# What a release has, in $(BUILD)/dist; MINISIGN_KEY=FILE signs it. `make release VERSION=1.2.3` makes it of a new version.
# nfpm makes the package for rpm.
NFPM := $(BUILD)/nfpm
$(NFPM): cmd/dist/nfpm/go.mod cmd/dist/nfpm/go.sum
	@echo "  GO    cmd/dist/nfpm"
	@go=$$(tests/go.sh) && cd cmd/dist/nfpm && GOTOOLCHAIN=local GOFLAGS=-mod=readonly $$go build -trimpath -ldflags='-s -w' \
		-o $(abspath $@) github.com/goreleaser/nfpm/v2/cmd/nfpm
.PHONY: dist release
dist: all $(DIST_PARTS) $(NFPM)
	@cmd/dist/dist.sh $(BUILD) $(BUILD)/dist
release:
	@cmd/dist/release.sh '$(VERSION)'

include tests/tests.mk

# ---------------------------------------------------------------------------------------------------
# Packages. A command counts as installed if it is in PATH, a library if dpkg knows it.

CMDS_build := gcc:gcc g++:g++ ar:binutils protoc-c:protobuf-c-compiler re2c:re2c lemon:lemon node:nodejs npm:npm
PKGS_build := libc6-dev libmicrohttpd-dev libgnutls28-dev libunistring-dev libidn2-dev libtasn1-6-dev nettle-dev \
	libgmp-dev libprotobuf-c-dev zlib1g-dev libdeflate-dev liblzma-dev libyaml-dev libexpat1-dev libleveldb-dev \
	libsnappy-dev libzstd-dev liblz4-dev libevent-dev libssl-dev libc-ares-dev libre2-dev libxxhash-dev libjansson-dev \
	libcrypt-dev libnghttp2-dev ca-certificates
CMDS_run := go:golang-go
PKGS_run :=
# Version 14 names the functions in reports of clang's sanitizers, 16 is an oracle of symbols.
CMDS_test := go:golang-go curl:curl file:file clang:clang openssl:openssl git:git chromium:chromium clang-format:clang-format \
	python3:python3 xz:xz-utils pip3:python3-pip javac:openjdk-17-jdk-headless llvm-symbolizer-16:llvm-16 addr2line:binutils \
	dwz:dwz llvm-bolt-16:bolt-16 rustc:rustc llvm-symbolizer-14:llvm-14
PKGS_test := libclang-rt-14-dev fonts-dejavu-core golang-github-google-pprof-dev libgoogle-perftools-dev libjemalloc-dev

# Only `make test-all` has a second browser, and roots to install packages in.
CMDS_test_all := firefox-esr:firefox-esr debootstrap:debootstrap ip:iproute2
PKGS_test_all :=

SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# $(call install_missing,LIST): installs the packages of CMDS_LIST and PKGS_LIST that are missing.
define install_missing
	missing=""; \
	for pair in $(CMDS_$(1)); do \
		command -v "$${pair%%:*}" >/dev/null || missing="$$missing $${pair##*:}"; \
	done; \
	for p in $(PKGS_$(1)); do \
		dpkg-query -W -f='$${db:Status-Abbrev}' "$$p" 2>/dev/null | grep -q '^ii' || missing="$$missing $$p"; \
	done; \
	if [ -n "$$missing" ]; then \
		examples/progress.sh "  APT   lists of packages" $(SUDO) apt-get update -qq; \
		examples/progress.sh "  APT  $$missing" $(SUDO) env DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends $$missing; \
	fi
endef

.PHONY: deps deps-run deps-test deps-test-all deps-upgrade
deps: $(BUILD)/.deps
$(BUILD)/.deps: Makefile
	@mkdir -p $(@D)
	@$(call install_missing,build)
	@touch $@
# Upgrades the packages of linked libraries that are behind, with what they depend on; then `make` links the new ones.
deps-upgrade: $(BUILD)/.deps
	@examples/progress.sh "  APT   lists of packages" $(SUDO) apt-get update -qq
	@behind=$$(base/self/packages.sh behind $(LIBRARY_PACKAGES) | cut -d' ' -f1 | xargs); \
	if [ -n "$$behind" ]; then \
		examples/progress.sh "  APT   $$behind" $(SUDO) env DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends --only-upgrade $$behind; \
	else \
		echo "  no linked library is behind"; \
	fi
# Only the demo fleet needs Go. Without it the server still runs, and scrapes itself.
deps-run: $(BUILD)/.deps
	@$(call install_missing,run) || echo "  Go cannot be installed here: the demo fleet is left out"
deps-test: $(BUILD)/.deps
	@$(call install_missing,test)
	@tests/go.sh >/dev/null
deps-test-all: deps-test
	@$(call install_missing,test_all)

# ---------------------------------------------------------------------------------------------------
# Targets for people

.PHONY: run install clean help
run: deps-run all
	@exec examples/run.sh $(BUILD)

# Services in several languages, each with its SDK, which send to one server.
.PHONY: demo-senders
demo-senders: deps-run deps-test all
	@exec examples/senders/show.sh $(BUILD)

# Shards and query nodes over an object store of their own, or one that EPI_S3_ENDPOINT names: to kill any of them.
.PHONY: cluster
cluster: deps-run all
	@EPI_BUILD="$(abspath $(BUILD))" exec examples/cluster/run.mjs

PREFIX ?= /usr/local
install: all
	install -D -m 755 $(BUILD)/epimetheus $(DESTDIR)$(PREFIX)/bin/epimetheus
	install -D -m 755 $(BUILD)/epitool $(DESTDIR)$(PREFIX)/bin/epitool

clean:
	rm -rf build
ifneq ($(filter clean,$(MAKECMDGOALS)),)
.NOTPARALLEL: # `make clean all`: nothing is looked at while it goes away
endif

help:
	@echo "make            build/epimetheus and build/epitool, static"
	@echo "make run        build, then a server that scrapes itself and the demo fleet"
	@echo "make book       the documentation as static HTML, in build/book"
	@echo "make dist       the archives, the Debian package and their sums, in build/dist;  make release VERSION=1.2.3"
	@echo "make demo-senders   build, then a server to which services in Go, Java, Node and Python send"
	@echo "make cluster    build, then three shards and two query nodes over a Ceph on this machine, to kill any of them"
	@echo "make test       the tests, a quarter of an hour;  LOAD=30 beside so many busy loops"
	@echo "  STAGE=NAME    one stage: $(STAGES:test-%=%)"
	@echo "  ROOM=ROOM     the unit tests of one room, under ASan: tsdb/head, web/api ... (make rooms)"
	@echo "make test-all   every test there is, each sweep whole; hours"
	@echo "make lint;  make strings;  make bench;  make fuzz;  make torture"
	@echo "make campaign   kills in a cluster on a real object store, KILLS of them drawn by SEED"
	@echo "make verdict-trial   how often verdicts are wrong, of epitool diff and of changed(), on PAIRS made up"
	@echo "make install    to PREFIX ($(PREFIX)), below DESTDIR"
	@echo "make deps       install the packages the build needs;  make clean"
	@echo "make deps-upgrade   upgrade the libraries that are linked, where they are behind"
	@echo "MODE=release|debug|asan|tsan|fuzz"

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
