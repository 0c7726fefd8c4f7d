# Tests: included by the Makefile. `make test` runs all; `make unit`, `make unit-tsdb`, ... parts.

# A unit test tests/<room>/<file>_test.c is linked with the needs of <room> and with nothing else. UNIT_WITH_<room>
# names other rooms: their tests' helpers (tests/<other room>/*.c but the tests) and their needs are linked too. The tests
# of cmd also use the parts of epitool that are not commands.
UNIT_ROOMS ?= $(ROOMS) cmd
UNIT_WITH_discovery/sources := base/net discovery
UNIT_WITH_discovery/kubernetes := base/net
UNIT_WITH_discovery/apis := base/net
UNIT_WITH_discovery := discovery/sources base/net
$(foreach r,symbols columns rollup series block lists catalog head compact read,$(eval UNIT_WITH_tsdb/$(r) := tsdb proto))
UNIT_WITH_tsdb/bucket := base/net
UNIT_WITH_tsdb/cluster := tsdb/cluster/inspect tsdb/bucket tsdb/remote base/net tsdb proto
UNIT_WITH_tsdb/cluster/assignment := tsdb/bucket base/net
UNIT_WITH_tsdb/cluster/inspect := tsdb/cluster tsdb/bucket tsdb/remote base/net tsdb proto
UNIT_WITH_tsdb/debuginfo/shared := tsdb/bucket base/net
UNIT_WITH_tsdb/remote := tsdb/bucket base/net tsdb proto
UNIT_WITH_proto/legacy := proto
UNIT_WITH_proto/folded := proto
UNIT_WITH_tsdb := proto base/self
UNIT_WITH_promql := promql/engine promql/pprof
UNIT_WITH_promql/profiles := promql promql/engine promql/pprof
UNIT_WITH_promql/rules/notify := base/net
UNIT_WITH_scrape/debuginfod := base/net
UNIT_WITH_scrape/forward := proto proto/otlp proto/jfr proto/any base/net
UNIT_WITH_web/http := base/gzip
UNIT_WITH_web/grpc := web/http
UNIT_WITH_web/render := promql/engine
UNIT_WITH_web/pyroscope := web/http web
UNIT_WITH_web/push := web/http web/grpc web
UNIT_WITH_web/profefe := web/http web
UNIT_WITH_web/debuginfo := web/http web
UNIT_WITH_web/files := web/http web tsdb/bucket base/net
UNIT_WITH_web/api := web/http web
UNIT_WITH_web/annotations := web/http web
UNIT_WITH_web/mcp := web/http web
UNIT_WITH_web := web/http
UNIT_WITH_cmd := tsdb/cluster tsdb/bucket tsdb/remote base/net tsdb proto
UNIT_PARTS_promql := tests/promql/levels/model.c
UNIT_PARTS_tsdb := $(filter-out tests/fleet/main.c,$(wildcard tests/fleet/*.c))
UNIT_PARTS_tsdb/debuginfo/dwarf := tests/tsdb/debuginfo/oracle/compare.c tests/tsdb/debuginfo/oracle/bundles.c
UNIT_PARTS_tsdb/debuginfo/extract := tests/tsdb/debuginfo/oracle/compare.c tests/tsdb/debuginfo/oracle/bundles.c
UNIT_PARTS_cmd := $(addprefix cmd/epitool/,$(addprefix debuginfo/,bundle_body.c debug_files.c native_file.c) progress.c copiers.c bucket/place.c $(addprefix backup/backup_,manifest.c store.c source.c save.c restore.c) run_labels.c table.c times.c show.c $(addprefix compare/,costs.c names.c verdict.c) $(addprefix convert/,alloy_lexer.c alloy_parser.c) $(addprefix flame/,color.c layout.c view.c) $(addprefix test_rules/,file.c notation.c print.c)) \
	$(addprefix cmd/epimetheus/,cluster_view.c lease_gate.c limits.c modes.c options.c rules/rules_state.c) $(wildcard cmd/shared/*.c) \
	$(addprefix cmd/book/,api_part.c config_part.c config_walk.c markdown.c) cmd/dist/roff.c
UNIT_SOURCES := $(filter-out $(UNIT_LEAVES),$(wildcard $(foreach r,$(UNIT_ROOMS),tests/$(r)/*_test.c)))
# The longest tests begin first, so that none of them runs alone at the end.
UNIT_LONGEST := tsdb/cluster/shard scrape/two_servers tsdb/debuginfo/dwarf/oracle scrape/symbolize promql/parallel promql/by_name promql/union \
	tsdb/catalog/blocks tsdb/head/head_damage tsdb/power tsdb/columns/chunk_damage tsdb/stress tsdb/sweep \
	tsdb/compact/sweep_blocks tsdb/debuginfo/pclntab/pclntab promql/profiles/filter_oracle tsdb/crash tsdb/full \
	tsdb/damage tsdb/remote/cache tsdb/cluster/lease scrape/manager discovery/sources/dns_sd discovery/sources/http_sd \
	promql/rates promql/levels promql/profiles/flat promql/script promql/series_memory promql/rules/notify/notifier
UNIT_SOURCES := $(foreach t,$(UNIT_LONGEST:%=tests/%_test.c),$(filter $(t),$(UNIT_SOURCES))) \
	$(filter-out $(UNIT_LONGEST:%=tests/%_test.c),$(UNIT_SOURCES))
UNIT_TESTS := $(UNIT_SOURCES:%.c=$(BUILD)/%)
# The linker that takes half the time, where there is one. The tests of base/self read the tables of their own program, as
# the linker of the server lays them out.
TEST_LINKER := $(if $(shell command -v ld.gold),-fuse-ld=gold)
unit_linker = $(if $(filter base/self,$(1)),,$(TEST_LINKER))
unit_helpers = $(foreach r,$(1) $(UNIT_WITH_$(1)),$(filter-out %_test.c,$(wildcard tests/$(r)/*.c tests/$(r)/*.cc))) \
	$(UNIT_PARTS_$(1))
unit_needs = $(foreach r,$(filter $(ROOMS),$(sort $(foreach u,$(1) $(UNIT_WITH_$(1)),$(needs_$(u))))),$(BUILD)/lib/$(r).a)
# These put functions of their own in the place of the tree's, so each is a program of its own.
UNIT_ALONE := $(patsubst %,$(BUILD)/tests/%_test,discovery/sources/dns_sd discovery/kubernetes/sd \
	promql/rules/catchup promql/rules/leftover promql/rules/manager promql/rules/scale)
unit_files = $(filter $(foreach t,$(wildcard tests/$(1)/*_test.c),$(t:%.c=$(BUILD)/%)),$(UNIT_TESTS))

# The tests of a room are linked once, since hundreds of links take minutes. Each of its files is a name of that program
# (a hard link, so that /proc/self/exe has it too), and runs the tests of that file: tests/check.c.
define unit_rules
$(BUILD)/lib/tests/$(1).a: $(call objects,tests/check.c $(call unit_helpers,$(1))) tests/tests.mk
	@mkdir -p $$(@D)
	@rm -f $$@
	@ar rcsD $$@ $$(filter %.o,$$^)
$(BUILD)/tests/$(1)/room: $(patsubst $(BUILD)/%,$(BUILD)/obj/%.o,$(filter-out $(UNIT_ALONE),$(call unit_files,$(1))))
$(filter $(UNIT_ALONE),$(call unit_files,$(1))): $(BUILD)/%: $(BUILD)/obj/%.o
$(BUILD)/tests/$(1)/room $(filter $(UNIT_ALONE),$(call unit_files,$(1))): $(BUILD)/lib/tests/$(1).a $(call unit_needs,$(1))
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	@$(CC) $(OPT) $(call unit_linker,$(1)) -pthread -o $$@ $$(filter %.o,$$^) -Wl,--start-group $(BUILD)/lib/tests/$(1).a \
		$(call unit_needs,$(1)) -Wl,--end-group $(SYSLIBS)
$(filter-out $(UNIT_ALONE),$(call unit_files,$(1))): $(BUILD)/%: $(BUILD)/tests/$(1)/room
	@ln -f $$< $$@
.PHONY: unit-$(1)
unit-$(1): $(call unit_files,$(1))
	@tests/run.sh $$^
endef
$(foreach r,$(ROOMS) cmd,$(if $(call unit_files,$(r)),$(eval $(call unit_rules,$(r)))))

# The tests themselves compute little, and compile in half the time so.
ifeq ($(MODE),asan)
$(BUILD)/obj/tests/%.o: private CFLAGS += -O0 -Wno-format-truncation
endif

.PHONY: unit unit-programs
unit-programs: $(UNIT_TESTS)
unit: $(UNIT_TESTS)
	@tests/run.sh $^

# The unit tests under a heavy load, and right before midnights and the like (tests/unsteady.sh).
.PHONY: test-load
test-load: $(UNIT_TESTS) $(BUILD)/tests/clock.so
	@tests/unsteady.sh $(BUILD)/tests/clock.so $(UNIT_TESTS)
$(BUILD)/tests/clock.so: tests/clock.c
	@mkdir -p $(@D)
	@$(CC) -std=gnu11 -D_GNU_SOURCE $(CWARN) -Werror -O2 -fPIC -shared -o $@ $<

# Programs for benches: the generator of fleet-like profiles, a library and a command (tests/fleet/README.md).
FLEET := $(BUILD)/tests/fleet/fleet
FLEET_LIB := $(BUILD)/tests/fleet/fleet.a
.PHONY: fleet
fleet: $(FLEET)
$(FLEET_LIB): $(call objects,$(filter-out tests/fleet/main.c,$(wildcard tests/fleet/*.c)))
	@mkdir -p $(@D)
	@rm -f $@
	@ar rcsD $@ $^
$(FLEET): $(call objects,tests/fleet/main.c) $(FLEET_LIB) $(call room_libs,tsdb base/self)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -pthread -o $@ $(call objects,tests/fleet/main.c) \
		-Wl,--start-group $(FLEET_LIB) $(call room_libs,tsdb base/self) -Wl,--end-group $(SYSLIBS)
# Thousands of targets in one program, for measurements of scraping (tests/load/README.md).
LOAD := $(BUILD)/tests/load/load
LOAD_OBJECTS := $(call objects,$(wildcard tests/load/*.c))
.PHONY: load
load: $(LOAD)
$(LOAD): $(LOAD_OBJECTS) $(FLEET_LIB) $(call room_libs,tsdb base/self)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -pthread -o $@ $(LOAD_OBJECTS) \
		-Wl,--start-group $(FLEET_LIB) $(call room_libs,tsdb base/self) -Wl,--end-group $(SYSLIBS)

# How far each rule for levels over windows is off (tests/promql/levels/README.md).
LEVELS := $(BUILD)/tests/promql/levels/table
.PHONY: levels
levels: $(LEVELS)
	@$(LEVELS)
$(LEVELS): $(call objects,$(wildcard tests/promql/levels/*.c)) $(call room_libs,proto)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -pthread -o $@ $(call objects,$(wildcard tests/promql/levels/*.c)) \
		-Wl,--start-group $(call room_libs,proto) -Wl,--end-group $(SYSLIBS)

# Runs a program as in a container that lets no program limit itself.
$(BUILD)/tests/e2e/refuse_limits: $(call objects,tests/e2e/refuse_limits.c)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -o $@ $<

# The server, with a clock that a test moves.
STEPPED := $(BUILD)/tests/e2e/stepped_epimetheus
$(STEPPED): $(call objects,tests/e2e/stepped_clock.c) $(call program_objects,epimetheus) $(call room_libs,cmd)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -pthread -o $@ $(call objects,tests/e2e/stepped_clock.c) $(call program_objects,epimetheus) \
		-Wl,--start-group $(call room_libs,cmd) -Wl,--end-group $(SYSLIBS)

# How often verdicts are wrong, by simulation: PAIRS of each kind of repeated runs (promql/runs/RUNS.md), then as many evaluations
# of changed() on each kind of service (promql/changed/CHANGED.md). SEED is another sequence.
TRIALS := $(addprefix $(BUILD)/tests/promql/,runs/trial_test changed/changed_sim_test changed/seen_sim_test)
.PHONY: verdict-trial
verdict-trial: $(TRIALS)
	@for t in $(TRIALS); do EPI_VERDICT_PAIRS=$(or $(PAIRS),1000) EPI_VERDICT_SEED=$(or $(SEED),1) $$t || exit; done

# Damaged data directories (tests/damage/README.md): with the server's handlers and epitool's commands.
DAMAGE := $(BUILD)/tests/damage/damage
DAMAGE_OBJECTS := $(call objects,$(wildcard tests/damage/*.c) tests/tsdb/fixture.c tests/tsdb/fixture_read.c \
	$(filter-out cmd/epitool/main.c,$(call program_sources,epitool)))
$(DAMAGE): $(DAMAGE_OBJECTS) $(FLEET_LIB) $(call room_libs,cmd)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -pthread -o $@ $(DAMAGE_OBJECTS) \
		-Wl,--start-group $(FLEET_LIB) $(call room_libs,cmd) -Wl,--end-group $(SYSLIBS)

# `make damage DAMAGE_TRIALS=100000 DAMAGE_FIRST=7 DAMAGE_ONLY=head/`; the stage of `make test` is short, under ASan, and has no
# pairs of files.
DAMAGE_TRIALS ?= 10000
DAMAGE_FIRST ?= 1
DAMAGE_ONLY ?=
DAMAGE_TEST_TRIALS ?= 60
.PHONY: damage damage-program test-damage
damage-program: $(DAMAGE)
damage: $(DAMAGE)
	@$(DAMAGE) --trials=$(DAMAGE_TRIALS) --first=$(DAMAGE_FIRST) --only='$(DAMAGE_ONLY)' --jobs=$$(nproc) \
		$(if $(EPI_SHORT)$(DAMAGE_ONLY),,--pairs)
test-damage:
	@$(MAKE) --no-print-directory MODE=asan BUILD=$(BUILD)/asan DAMAGE_TRIALS=$(DAMAGE_TEST_TRIALS) damage

# Many rounds of crashes and disk faults, checked against a state kept outside; unit tests run the same with few rounds.
CRASH_ROUNDS ?= 5000
CRASH_SEED ?= 1
CLOCK_KILLS ?= 300
CRASH_TESTS := $(patsubst %,$(BUILD)/tests/tsdb/%_test,stress crash power sweep full)
.PHONY: crash
crash: $(CRASH_TESTS) $(STEPPED)
	@EPI_CRASH_ROUNDS=$(CRASH_ROUNDS) EPI_CRASH_SEED=$(CRASH_SEED) TEST_TIMEOUT=86400 tests/run.sh $(CRASH_TESTS)
	@EPI_CLOCK_KILLS=$(CLOCK_KILLS) EPI_CRASH_SEED=$(CRASH_SEED) EPI_BUILD="$(abspath $(BUILD))" FILE_TIMEOUT=86400 \
		tests/node.sh tests/tap.sh 1 tests/e2e/clock_kills.test.mjs

# Members of a cluster, their disks, the object store and the ways to it are killed at random; everything is checked
# meanwhile (tests/e2e/campaign.mjs). An end-to-end test does the same with few kills.
KILLS ?= 300
SEED ?= 1
CAMPAIGN_TEST_KILLS ?= 100
.PHONY: campaign test-campaign
campaign: all
	@EPI_BUILD="$(abspath $(BUILD))" node tests/e2e/campaign.mjs --kills=$(KILLS) --seed=$(SEED)
test-campaign:
	@$(MAKE) --no-print-directory campaign KILLS=$(CAMPAIGN_TEST_KILLS) && echo "1 passed, 0 failed, 0 skipped"

# Fuzz drivers: tests/fuzz/<name>_fuzz.c, each with LLVMFuzzerTestOneInput; its first comment names its room:
# "fuzz: room". Seeds are in tests/fuzz/<name>/.
FUZZ_SOURCES := $(wildcard tests/fuzz/*_fuzz.c)
FUZZ_TESTS := $(FUZZ_SOURCES:%.c=$(BUILD)/%)
fuzz_room = $(shell sed -n 's/.*fuzz: \([a-z/]*\).*/\1/p' $(1) | head -n 1)
define fuzz_rules
$(BUILD)/$(1): $(BUILD)/obj/$(1).o $$(call room_libs,$(call fuzz_room,$(1).c))
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	@$(CC) $(OPT) -fsanitize=fuzzer -pthread -o $$@ $$< \
		-Wl,--start-group $$(call room_libs,$(call fuzz_room,$(1).c)) -Wl,--end-group $(SYSLIBS)
endef
ifeq ($(MODE),fuzz)
$(foreach f,$(FUZZ_SOURCES:%.c=%),$(eval $(call fuzz_rules,$(f))))
endif

# All drivers in one program that runs their seeds (tests/fuzz/seeds.c): what was once a fault stays mended. Several drivers
# include the same sources, so each keeps all its names but two to itself.
SEEDS := $(FUZZ_SOURCES:tests/fuzz/%_fuzz.c=%)
SEEDS_TESTS := $(SEEDS:%=$(BUILD)/tests/fuzz/%_seeds)
$(BUILD)/obj/seeds/%.o: tests/fuzz/%_fuzz.c | $(DEPS) $(GENERATED)
	@mkdir -p $(@D)
	@echo "  CC    $< (seeds)"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -DLLVMFuzzerTestOneInput=seeds_one_$* -DLLVMFuzzerInitialize=seeds_init_$* \
		-MMD -MP -c -o $@ $<
	@objcopy --keep-global-symbol=seeds_one_$* --keep-global-symbol=seeds_init_$* $@
$(BUILD)/obj/tests/fuzz/seeds.o: CPPFLAGS += '-DSEEDS=$(foreach s,$(SEEDS),X($(s)))'
$(BUILD)/tests/fuzz/seeds: $(BUILD)/obj/tests/fuzz/seeds.o $(SEEDS:%=$(BUILD)/obj/seeds/%.o) $(call room_libs,cmd)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) $(TEST_LINKER) -pthread -o $@ $(filter %.o,$^) -Wl,--start-group $(call room_libs,cmd) -Wl,--end-group $(SYSLIBS)
$(SEEDS_TESTS): $(BUILD)/tests/fuzz/seeds
	@ln -f $< $@
.PHONY: seeds test-seeds
seeds: $(SEEDS_TESTS)
	@tests/run.sh $^
test-seeds:
	@$(MAKE) --no-print-directory MODE=asan BUILD=$(BUILD)/asan seeds

FUZZ_SECONDS ?= 60
.PHONY: fuzz fuzz-drivers
fuzz-drivers: $(FUZZ_TESTS)
fuzz: deps-test
	@$(MAKE) --no-print-directory MODE=fuzz BUILD=$(BUILD)/fuzz fuzz-drivers
	@tests/fuzz/run.sh $(BUILD)/fuzz $(FUZZ_SECONDS)

.PHONY: lint strings
# Texts that users read: of the page, and errors, warnings and help of the C sources.
strings: $(UI_DIR)/.installed
	@node tests/lint/strings.mjs . $(UI_DIR)/node_modules
lint: build/gen/book/.done $(UI_DIR)/.installed
	@tests/lint/run.sh

# Tests under node's runner: the page's modules, the server end to end, the page in a browser. The page's are
# bundled first; the others need programs, and playwright-core from npm.
NODE_DIR := build/node-tests
$(NODE_DIR)/.installed: tests/browser/package.json tests/browser/package-lock.json | $(DEPS)
	@mkdir -p $(NODE_DIR)
	@cp tests/browser/package.json tests/browser/package-lock.json tests/browser/.npmrc $(NODE_DIR)/
	@cd $(NODE_DIR) && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

# Discovery against a real Kubernetes API server and a real Consul agent, and Prometheus's discovery beside it. All are built from
# their modules, so they are a part of `make test-all` alone.
.PHONY: test-kubernetes test-consul test-charts
test-kubernetes: all
	@EPI_BUILD="$(abspath $(BUILD))" tests/node.sh tests/tap.sh 1 tests/kubernetes/*.test.mjs
# The chart and the kustomizations by helm and kustomize, each object against its schema, and the programs as they are started.
test-charts: all
	@EPI_BUILD="$(abspath $(BUILD))" tests/node.sh tests/tap.sh 1 tests/charts/charts.test.mjs
test-consul: all
	@EPI_BUILD="$(abspath $(BUILD))" tests/node.sh tests/tap.sh 1 tests/consul/agent.test.mjs

.PHONY: test-ui test-e2e test-e2e-long test-browser test-browser-long test-tools test-bench test-repro test-demo
test-ui: all $(NODE_DIR)/.installed
	@EPI_BUILD="$(abspath $(BUILD))" EPI_NODE_DIR="$(abspath $(NODE_DIR))" tests/node.sh node $(UI_DIR)/test.mjs $(BUILD)/ui-test
test-e2e: all $(LOAD) $(BUILD)/tests/e2e/refuse_limits $(STEPPED) $(BOOK_PARTS)
	@EPI_BUILD="$(abspath $(BUILD))" tests/node.sh tests/e2e/run.sh short
test-e2e-long: all $(LOAD) $(BUILD)/tests/e2e/refuse_limits
	@EPI_BUILD="$(abspath $(BUILD))" tests/node.sh tests/e2e/run.sh long
test-browser: all $(NODE_DIR)/.installed $(STEPPED)
	@EPI_BUILD="$(abspath $(BUILD))" tests/browser/run.sh $(NODE_DIR) short
test-browser-long: all $(NODE_DIR)/.installed
	@EPI_BUILD="$(abspath $(BUILD))" tests/browser/run.sh $(NODE_DIR) long
test-tools: all build/gen/book/.done
	@tests/lint/selftest.sh $(BUILD)
test-bench:
	@tests/node.sh node --test $(wildcard tests/bench/*.test.mjs)
test-demo:
	@tests/demo.sh
test-repro: all
	@tests/repro.sh $(BUILD)

# What `make dist` makes: twice, checked, signed, and installed in an empty root. What `make release` does and refuses.
.PHONY: test-packages test-release
test-packages: all $(DIST_PARTS) $(NFPM)
	@tests/packages/run.sh $(BUILD)
test-release:
	@tests/packages/release.sh

ifeq ($(MODE),tsan)
export TSAN_OPTIONS := suppressions=$(CURDIR)/tests/tsan.supp $(TSAN_OPTIONS)
endif

# The same unit tests under sanitizers: undefined behaviour, stray memory, leaks and races end the program.
.PHONY: test-asan test-tsan test-fuzz
test-asan:
	@$(MAKE) --no-print-directory MODE=asan BUILD=$(BUILD)/asan unit
# TSan leaves out what no thread has a part in: rooms of formats, arithmetic and text, and tests that start none. Where an
# engine or a database is behind a test that compares many answers, its threads are those of the tests that are left.
TSAN_LEAVES := $(patsubst %,tests/%_test.c,$(addprefix tsdb/,block/block block/block_damage block/block_swap \
	lists/losses cluster/manifest compact/compact_chunks compact/sweep_blocks head/head_damage head/head_names \
	head/left_window model read/sum read/sum_names debuginfo/store/paths debuginfo/store/store) \
	$(addprefix promql/,by_name functions_oracle levels levels_promises names script rates series_memory rules/alerts rules/rules) \
	$(addprefix base/,array clock hidden json labels quote regex str net/aws_profile net/http_client_parse net/percent self/elf_symbols \
	self/flags self/unwind) discovery/relabel web/push/multipart web/api/many_values)
TSAN_ROOMS := $(filter-out proto proto/% cmd discovery/apis scrape/config web/router web/render base/gzip base/yaml base/xml base/demangle \
	$(addprefix promql/,syntax changed costs profiles rules/template) $(addprefix tsdb/,columns rollup segments series store \
	symbols) $(addprefix tsdb/debuginfo/,dwarf elf pclntab extract index names),$(ROOMS))
TSAN := MODE=tsan BUILD=$(BUILD)/tsan UNIT_ROOMS="$(TSAN_ROOMS)" UNIT_LEAVES="$(TSAN_LEAVES)"
test-tsan:
	@$(MAKE) --no-print-directory $(TSAN) unit
test-fuzz:
	@$(MAKE) --no-print-directory MODE=fuzz BUILD=$(BUILD)/fuzz fuzz-drivers
	@tests/fuzz/run.sh $(BUILD)/fuzz $(FUZZ_TEST_SECONDS) 1 # what fails fails again
FUZZ_TEST_SECONDS ?= 3

# Failing allocations and system calls of our own code, one after the other (tests/torture).
# `make torture` tries each, `make test` some of them.
TORTURE_WRAPPED := malloc calloc realloc reallocarray aligned_alloc strdup strndup asprintf \
	arena_alloc arena_calloc arena_alloc_raw arena_strndup arena_printf \
	open read pread write fsync fdatasync rename link unlink mkdir rmdir stat lstat fstat statvfs ftruncate lseek \
	opendir fopen socket connect close eventfd inotify_init1 inotify_add_watch getrandom mmap pthread_create
TORTURE_HELPERS := $(call objects,tests/check.c $(filter-out %_torture.c,$(wildcard tests/torture/*.c)) \
	$(filter-out cmd/epimetheus/main.c,$(wildcard cmd/epimetheus/*.c cmd/epimetheus/*/*.c cmd/shared/*.c)) \
	tests/web/grpc/h2_client.c) $(BOOK_OBJECT)
TORTURE_TESTS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/torture/*_torture.c))
$(BUILD)/tests/torture/%: $(BUILD)/obj/tests/torture/%.o $(TORTURE_HELPERS) $(call room_libs,cmd)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -pthread -rdynamic -o $@ $< $(TORTURE_HELPERS) $(TORTURE_WRAPPED:%=-Wl,--wrap=%) \
		-Wl,--start-group $(call room_libs,cmd) -Wl,--end-group $(SYSLIBS)

.PHONY: test-torture torture torture-programs
torture-programs: $(TORTURE_TESTS)
test-torture:
	@$(MAKE) --no-print-directory MODE=asan BUILD=$(BUILD)/asan torture-programs
	@tests/run.sh $(TORTURE_TESTS:$(BUILD)/%=$(BUILD)/asan/%)
torture: deps-test
	@EPI_TORTURE_POINTS=0 TEST_TIMEOUT=14400 $(MAKE) --no-print-directory test-torture

# Stages in two lanes, which run at the same time: one computes, the other waits most of the time (tests/all.sh). `make test`
# takes a quarter of an hour on two processors; `make test-all` runs everything, and each sweep whole. tests/README.md says
# what each stage has, and how long it takes.
STAGES_COMPUTE := test-asan test-seeds test-torture test-damage
STAGES_WAIT := test-tools test-bench test-ui test-demo test-browser test-e2e
LONG_COMPUTE := unit test-asan test-seeds test-tsan test-torture test-damage test-fuzz test-repro
LONG_WAIT := test-tools test-bench test-release test-packages test-ui test-demo test-browser test-e2e test-e2e-long test-campaign test-consul test-charts test-kubernetes
LONG_ALONE := test-browser-long
STAGES := $(sort $(STAGES_COMPUTE) $(STAGES_WAIT) $(LONG_COMPUTE) $(LONG_WAIT) $(LONG_ALONE))
# `make test STAGE=e2e` runs one of them, `make test ROOM=tsdb/head` the unit tests of a room.
STAGE ?=
ROOM ?=
$(foreach r,$(ROOMS) cmd,$(eval .PHONY: asan-unit-$(r))$(eval asan-unit-$(r): ; \
	@$$(MAKE) --no-print-directory MODE=asan BUILD=$(BUILD)/asan unit-$(r)))
test_stages := $(if $(STAGE)$(ROOM),,$(STAGES_COMPUTE) -- $(STAGES_WAIT))
test_stages += $(foreach s,$(STAGE),$(or $(filter $(s) test-$(s),$(STAGES)),$(error \
	STAGE is $(s); it may be $(STAGES:test-%=%))))
test_stages += $(foreach r,$(ROOM),$(if $(filter $(r),$(ROOMS) cmd),asan-unit-$(r),$(error \
	ROOM is $(r); it may be $(ROOMS) cmd)))
.PHONY: test test-all
test: deps-test $(if $(ROOM),,all)
	@EPI_SHORT=1 tests/all.sh $(test_stages)
test-all: deps-test deps-test-all all
	@tests/all.sh $(if $(STAGE),$(test_stages),$(LONG_COMPUTE) -- $(LONG_WAIT) + $(LONG_ALONE))

# Ratios to google/pprof in one run on the same profiles; tests/bench says what is measured.
# `make bench BENCH=bytes` measures a part of it.
TSDB_BENCH := $(BUILD)/tests/bench/tsdb/tsdb_bench
TSDB_BENCH_OBJECTS := $(call objects,$(wildcard tests/bench/tsdb/*.c))
$(TSDB_BENCH): $(TSDB_BENCH_OBJECTS) $(FLEET_LIB) $(call room_libs,promql/rules)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -pthread -o $@ $(TSDB_BENCH_OBJECTS) \
		-Wl,--start-group $(FLEET_LIB) $(call room_libs,promql/rules) -Wl,--end-group $(SYSLIBS)
RULES_BENCH := $(BUILD)/tests/bench/rules/rules_bench
RULES_BENCH_OBJECTS := $(call objects,$(wildcard tests/bench/rules/*.c))
$(RULES_BENCH): $(RULES_BENCH_OBJECTS) $(FLEET_LIB) $(call room_libs,promql/rules)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -pthread -o $@ $(RULES_BENCH_OBJECTS) \
		-Wl,--start-group $(FLEET_LIB) $(call room_libs,promql/rules) -Wl,--end-group $(SYSLIBS)
SYMBOLS_BENCH := $(BUILD)/tests/bench/symbols/symbols_bench
SYMBOLS_BENCH_OBJECTS := $(call objects,tests/bench/symbols/symbols_bench.c)
$(SYMBOLS_BENCH): $(SYMBOLS_BENCH_OBJECTS) $(call room_libs,tsdb/debuginfo/extract)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -pthread -o $@ $(SYMBOLS_BENCH_OBJECTS) \
		-Wl,--start-group $(call room_libs,tsdb/debuginfo/extract) -Wl,--end-group $(SYSLIBS)
.PHONY: bench
bench: deps-test all $(FLEET) $(TSDB_BENCH) $(RULES_BENCH) $(SYMBOLS_BENCH) $(LOAD)
	@EPI_BUILD="$(abspath $(BUILD))" node tests/bench/bench.mjs $(BENCH)
