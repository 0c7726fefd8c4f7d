# Tests: included by the Makefile. `make test` runs all; `make unit`, `make unit-tsdb`, ... parts.

# A unit test tests/<room>/<file>_test.c is linked with the rooms that <room> may use, and with nothing else.
UNIT_SOURCES := $(wildcard $(foreach r,$(ROOMS),tests/$(r)/*_test.c))
UNIT_TESTS := $(UNIT_SOURCES:%.c=$(BUILD)/%)
UNIT_HELPERS = $(filter-out %_test.c,$(wildcard tests/$(1)/*.c))

define unit_rules
$(BUILD)/tests/$(1)/%: $(BUILD)/obj/tests/$(1)/%.o $$(call objects,$$(call UNIT_HELPERS,$(1))) $$(call room_libs,$(1))
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	@$(CC) $(OPT) -pthread -o $$@ $$< $$(call objects,$$(call UNIT_HELPERS,$(1))) \
		-Wl,--start-group $$(call room_libs,$(1)) -Wl,--end-group $(SYSLIBS)
.PHONY: unit-$(1)
unit-$(1): $$(filter $(BUILD)/tests/$(1)/%,$(UNIT_TESTS))
	@tests/run.sh $$^
endef
$(foreach r,$(ROOMS),$(eval $(call unit_rules,$(r))))

.PHONY: unit
unit: $(UNIT_TESTS)
	@tests/run.sh $^

# Fuzz drivers: tests/fuzz/<name>_fuzz.c, each with LLVMFuzzerTestOneInput; its first comment names its room:
# "fuzz: room". Seeds stand in tests/fuzz/<name>/.
FUZZ_SOURCES := $(wildcard tests/fuzz/*_fuzz.c)
FUZZ_TESTS := $(FUZZ_SOURCES:%.c=$(BUILD)/%)
fuzz_room = $(shell sed -n 's/.*fuzz: \([a-z]*\).*/\1/p' $(1) | head -n 1)
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

FUZZ_SECONDS ?= 60
.PHONY: fuzz fuzz-drivers
fuzz-drivers: $(FUZZ_TESTS)
fuzz: deps-test
	@$(MAKE) --no-print-directory MODE=fuzz fuzz-drivers
	@tests/fuzz/run.sh build/fuzz $(FUZZ_SECONDS)

.PHONY: lint
lint:
	@tests/lint/run.sh
