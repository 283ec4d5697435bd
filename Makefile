# syncopate's one Makefile. `make help` lists what it can do; V=1 shows the commands.
MODE   ?= release
BUILD  ?= build
OUT    := $(BUILD)/$(MODE)
PREFIX ?= /usr/local
CC     ?= cc
MPICC  ?= mpicc
SHELL  := /bin/bash
comma  := ,

# The layers, lowest first. DEPS.<folder> is both the include law (make lint) and the link order.
FOLDERS           := base strategy interop featurize simulator dataset trial-runner tuner report service cli
DEPS.base         :=
DEPS.strategy     := base
DEPS.interop      := strategy base
DEPS.featurize    := strategy base
DEPS.simulator    := featurize strategy base
DEPS.dataset      := strategy base
DEPS.trial-runner := interop strategy base
DEPS.tuner        := trial-runner dataset simulator featurize interop strategy base
DEPS.report       := tuner $(DEPS.tuner)
DEPS.service      := report $(DEPS.report)
DEPS.cli          := service $(DEPS.service)
LIBS.base         := -lcjson -lcrypto -lm
# Linked only into programs that use it, so that workers run on machines without libyaml.
LIBS.interop      := -Wl,--push-state,--as-needed -lyaml -Wl,--pop-state
LIBS.simulator    := -lopenblas -lxgboost
LIBS.dataset      := -lsqlite3 $(shell pkg-config --libs libpq 2>/dev/null)
LIBS.tuner        := -llapacke -lnlopt -lopenblas -pthread
LIBS.service      := -lmicrohttpd -lgnutls -pthread
LIBS.cli          := -lcurl -pthread
# Programs of trial-runner/worker/ are linked by mpicc and never by the tuner.

PQ_INCLUDE    := $(patsubst -I%,-isystem %,$(shell pkg-config --cflags-only-I libpq 2>/dev/null))
WARN          := -std=c17 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Wconversion -Wvla -Wmissing-prototypes -Wstrict-prototypes
FLAGS.release := -O2 -g -DNDEBUG
FLAGS.debug   := -O0 -g
# Reports name functions and lines alone; the rest of the debugging information would add a tenth to the build.
FLAGS.asan    := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
FLAGS.tsan    := -O1 -g1 -fsanitize=thread
FLAGS.coverage := -O0 -g --coverage
FLAGS.fuzz    := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
CFLAGS_ALL    := $(WARN) $(FLAGS.$(MODE)) -ffunction-sections -I. $(PQ_INCLUDE) $(if $(WERROR),-Werror) $(CPPFLAGS) $(CFLAGS)
LDFLAGS_ALL   := $(FLAGS.$(MODE)) -Wl,--gc-sections $(LDFLAGS)

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2))

sources  = $(filter-out trial-runner/worker/% %/plugin.c,$(wildcard $(1)/*.c $(1)/*/*.c $(1)/*/*/*.c))
lib      = $(OUT)/lib/lib$(1).a
objects  = $(patsubst %.c,$(OUT)/obj/%.o,$(call sources,$(1)))
# Every folder that $(1) may use, itself first, and the libraries that those need.
closure  = $(1) $(DEPS.$(1))
link     = $(foreach f,$(call closure,$(1)),$(call lib,$(f))) $(foreach f,$(call closure,$(1)),$(LIBS.$(f)))

WORKER_COMMON  := $(wildcard trial-runner/worker/*.c)
WORKER_SOURCES := $(WORKER_COMMON) $(wildcard trial-runner/worker/mpi/*.c)
# Of trial-runner the workers use what trains.
WORKER_LIBS := $(call lib,trial-runner) $(call lib,strategy) $(call lib,base)
WORKER_LINK := $(WORKER_LIBS) $(LIBS.strategy) $(LIBS.base)
# The NCCL worker is built where nvcc, the CUDA runtime and NCCL are; elsewhere the build goes on without it. NCCL may also lie
# in build/nccl, where .ci/nccl puts it. The code for compute_75 runs on every later GPU as well; for an older one: NVCC_ARCH='-gencode arch=compute_70,code=compute_70'.
CUDA_HOME ?= /usr/local/cuda
NCCL_HOME ?= $(firstword $(foreach h,$(CUDA_HOME) /usr $(abspath build/nccl),$(if $(wildcard $(h)/include/nccl.h),$(h))) $(CUDA_HOME))
NVCC_ARCH ?= $(foreach a,80 90,-gencode arch=compute_$(a)$(comma)code=sm_$(a)) -gencode arch=compute_75$(comma)code=compute_75
library_in = $(firstword $(wildcard $(foreach f,lib64 lib lib/x86_64-linux-gnu lib/aarch64-linux-gnu,$(1)/$(f)/lib$(2).so)))
CUDART := $(call library_in,$(CUDA_HOME),cudart)
NCCL   := $(call library_in,$(NCCL_HOME),nccl)
CUDA_INCLUDE := $(addprefix -isystem ,$(filter-out /usr/include,$(sort $(CUDA_HOME)/include $(NCCL_HOME)/include)))
NCCL_SOURCES := $(if $(and $(CUDART),$(NCCL),$(wildcard $(CUDA_HOME)/bin/nvcc),$(wildcard $(NCCL_HOME)/include/nccl.h)),\
                  $(wildcard trial-runner/worker/nccl/*.c))
NCCL_TUNER := $(OUT)/lib/libnccl-tuner-syncopate.so
PROGRAMS := $(if $(call sources,cli),$(OUT)/bin/syncopate) $(if $(WORKER_SOURCES),$(OUT)/bin/syncopate-worker-mpi) \
            $(if $(NCCL_SOURCES),$(OUT)/bin/syncopate-worker-nccl)
# The long ones first, so that the last to end is a short one.
UNIT_SOURCES := $(wildcard tests/property/*/test_*.c) $(wildcard tests/unit/*/test_*_torture.c) \
    $(filter-out %_torture.c,$(wildcard tests/unit/*/test_*.c))
# Sessions for minutes under a sanitizer, which sees those of the command line and of the smaller tests; ALL=1 has it see
# these too.
LONG := $(if $(ALL),,$(if $(filter asan tsan,$(MODE)),test_session test_session_in_weather test_session_bayes))
UNIT := $(filter-out $(addprefix %/,$(LONG)),$(patsubst tests/%.c,$(OUT)/tests/%,$(UNIT_SOURCES)))
# These call what only the MPI worker has.
UNIT_WORKER := $(filter $(OUT)/tests/property/worker/%,$(UNIT))
FUZZ := $(patsubst tests/fuzz/%.c,$(OUT)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAY := $(patsubst tests/fuzz/fuzz_%.c,$(OUT)/tests/fuzz/replay_%,$(wildcard tests/fuzz/fuzz_*.c))
ALL_C := $(wildcard $(foreach f,$(FOLDERS) tests,$(f)/*.[ch] $(f)/*/*.[ch] $(f)/*/*/*.[ch]))

.PHONY: all demo demo-pytorch demo-fsdp test bench bench-service accuracy accuracy-sharded accuracy-nccl accuracy-pytorch accuracy-split accuracy-encoders accuracy-weather convergence failover curves evaluate evaluate-live asan tsan tsan-postgresql coverage fuzz lint format tidy man install \
        uninstall deb test-deb test-postgresql clean deps help quick $(FOLDERS) tests docs examples
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:

all: $(PROGRAMS) $(NCCL_TUNER)  ## build the programs into build/release/bin

.SECONDEXPANSION:
$(FOLDERS): $$(call lib,$$@)
$(foreach f,$(FOLDERS),$(eval $(call lib,$(f)): $(call objects,$(f))))
$(OUT)/lib/lib%.a:
	$(call say,AR,$@)
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)ar rcs $@ $^

$(OUT)/obj/trial-runner/worker/%.o: trial-runner/worker/%.c
	$(call say,MPICC,$<)
	@mkdir -p $(@D)
	$(Q)OMPI_CC="$(CC)" $(MPICC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@
$(OUT)/obj/trial-runner/worker/nccl/%.o $(OUT)/obj/tests/support/nccl/%.o $(OUT)/obj/tests/cli/nccl_order.o: CFLAGS_ALL += $(CUDA_INCLUDE)
$(OUT)/obj/trial-runner/worker/nccl/kernels.o: trial-runner/worker/nccl/kernels.cu $(wildcard trial-runner/worker/nccl/kernel*.h) \
                                             trial-runner/worker/elements.h trial-runner/worker/block_codes.h \
                                             trial-runner/worker/largest_search.h trial-runner/worker/low_rank_rules.h
	$(call say,NVCC,$<)
	@mkdir -p $(@D)
	$(Q)$(CUDA_HOME)/bin/nvcc -std=c++17 -O2 -I. $(NVCC_ARCH) -Xcompiler -Wall,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics -c $< -o $@
# Unit tests call and compare, and targets of fuzzing read small inputs: that the compiler takes half as long for them is
# worth more than their speed, but where a fuzzer searches.
$(OUT)/obj/tests/unit/%.o $(if $(filter-out fuzz,$(MODE)),$(OUT)/obj/tests/fuzz/%.o): CFLAGS_ALL += -O0
# Simulations are most of what tests compute: under sanitizers these cost a second more to compile, and an eighth less to run.
ifeq ($(MODE),asan)
$(addprefix $(OUT)/obj/simulator/,flows.o network.o timeline.o): CFLAGS_ALL += -O2
# What reads and prints takes a third of the time to compile so, and computes nothing for long.
$(foreach f,cli report service,$(OUT)/obj/$(f)/%.o): CFLAGS_ALL += -O0
endif
$(OUT)/obj/service/http/pages/assets.o: $(wildcard service/http/pages/assets/*)
$(OUT)/obj/cli/completion.o: $(wildcard cli/completion/*)
$(OUT)/obj/%.o: %.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(OUT)/bin/syncopate: $$(foreach f,$$(call closure,cli),$$(call lib,$$(f)))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ -Wl,--whole-archive $(call lib,cli) -Wl,--no-whole-archive $(call link,cli)
$(OUT)/bin/syncopate-worker-mpi: $(patsubst %.c,$(OUT)/obj/%.o,$(WORKER_SOURCES)) $(WORKER_LIBS)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)OMPI_CC="$(CC)" $(MPICC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(WORKER_LINK)

NCCL_OBJECTS := $(patsubst %.c,$(OUT)/obj/%.o,$(WORKER_COMMON) $(NCCL_SOURCES))
$(OUT)/bin/syncopate-worker-nccl: $(NCCL_OBJECTS) $(OUT)/obj/trial-runner/worker/nccl/kernels.o $(WORKER_LIBS)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)OMPI_CC="$(CC)" $(MPICC) $(LDFLAGS_ALL) -Wl,--no-undefined -o $@ $(filter %.o,$^) $(WORKER_LINK) $(CUDART) $(NCCL) \
	    $(addprefix -Wl$(comma)-rpath$(comma),$(sort $(dir $(CUDART) $(NCCL))))
# The same worker on stand-ins for CUDA and NCCL (tests/support/nccl/double.h), for tests where there is no GPU.
NCCL_DOUBLE := $(if $(NCCL_SOURCES),$(addprefix $(OUT)/tests/support/,syncopate-worker-nccl nccl-order))
NCCL_DOUBLES := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard tests/support/nccl/*.c))
$(OUT)/tests/support/nccl-order: $(OUT)/obj/tests/cli/nccl_order.o $(NCCL_DOUBLES) $(call lib,base)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS.base) -pthread
$(OUT)/tests/support/syncopate-worker-nccl: $(NCCL_OBJECTS) $(NCCL_DOUBLES) $(WORKER_LIBS)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)OMPI_CC="$(CC)" $(MPICC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(WORKER_LINK) -pthread

# NCCL loads this into training processes: the C library and what is listed here, no symbols but NCCL's two.
NCCL_TUNER_OBJECTS := $(patsubst %.c,$(OUT)/pic/%.o,$(wildcard interop/export/nccl/*.c) base/error.c)
$(OUT)/pic/%.o: %.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -fPIC -fvisibility=hidden -MMD -MP -c $< -o $@
$(NCCL_TUNER): $(NCCL_TUNER_OBJECTS)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -shared -o $@ $^
$(OUT)/tests/unit/interop/test_export_nccl_plugin: $(NCCL_TUNER)
-include $(NCCL_TUNER_OBJECTS:.o=.d)

# Tests are many programs: the fastest linker that is there halves the time of building them.
TEST_LINK := $(firstword $(foreach l,mold lld gold,$(if $(shell command -v ld.$(l)),-fuse-ld=$(l))))
# A unit test links its own folder and what that folder may use, nothing else: the linker proves the layering.
# tests/support/strategy/ needs strategy, so only folders that may use it get it; tests/support/tuner/ likewise.
SUPPORT := $(patsubst %.c,$(OUT)/obj/%.o,$(filter-out tests/support/torture.c,$(wildcard tests/support/*.c)))
# Allocation torture replaces the allocator of the tests whose names end in _torture.
TORTURE := $(OUT)/obj/tests/support/torture.o
torture = $(if $(filter %_torture,$(1)),$(TORTURE) $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc strdup strndup free))
SUPPORT_STRATEGY := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard tests/support/strategy/*.c))
SUPPORT_TUNER := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard tests/support/tuner/*.c))
support = $(SUPPORT) $(if $(filter strategy,$(call closure,$(1))),$(SUPPORT_STRATEGY)) \
          $(if $(filter tuner,$(call closure,$(1))),$(SUPPORT_TUNER))
folder_of = $(word 2,$(subst /, ,$(patsubst $(OUT)/tests/%,%,$(1))))
$(filter-out $(UNIT_WORKER),$(UNIT)): $(OUT)/tests/%: $(OUT)/obj/tests/%.o $(TORTURE) $$(call support,$$(call folder_of,$$@)) \
        $$(foreach f,$$(call closure,$$(call folder_of,$$@)),$$(call lib,$$(f)))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $(TEST_LINK) -o $@ $< $(call torture,$@) $(call support,$(call folder_of,$@)) $(call link,$(call folder_of,$@)) -lcmocka
# Tests of the MPI worker's parts run without ranks: they have a stand-in for each function of MPI that moves bytes.
$(OUT)/obj/tests/property/worker/%.o: tests/property/worker/%.c
	$(call say,MPICC,$<)
	@mkdir -p $(@D)
	$(Q)OMPI_CC="$(CC)" $(MPICC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@
WORKER_PARTS := $(filter-out %/main.o,$(patsubst %.c,$(OUT)/obj/%.o,$(WORKER_SOURCES)))
$(UNIT_WORKER): $(OUT)/tests/%: $(OUT)/obj/tests/%.o $(SUPPORT) $(WORKER_PARTS) $(WORKER_LIBS)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)OMPI_CC="$(CC)" $(MPICC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(WORKER_LINK) -lcmocka

-include $(wildcard $(OUT)/obj/*/*.d $(OUT)/obj/*/*/*.d $(OUT)/obj/*/*/*/*.d $(OUT)/obj/*/*/*/*/*.d)

deps:  ## install what is missing (Debian packages, needs root)
	@.ci/deps

demo: deps  ## the whole loop in a few minutes: a real tuning session on an emulated 4-node cluster
	@$(MAKE) --no-print-directory all
	@examples/demo $(OUT)/bin
demo-pytorch: deps  ## real PyTorch on 4 emulated nodes, with emulated devices and without: import, bench, tune, hook, compare; ten minutes, and root
	@$(MAKE) --no-print-directory all
	@examples/pytorch/demo $(OUT)/bin
demo-fsdp: deps  ## FSDP2 of PyTorch 2.13 on 4 emulated nodes: as it comes, and wrapped for two memories, beside predictions; five minutes, and root
	@$(MAKE) --no-print-directory all
	@examples/pytorch/demo-fsdp $(OUT)/bin

test: deps  ## every test; ends with "N passed, N failed, N skipped"
	@$(MAKE) --no-print-directory quick
quick: all $(UNIT) $(REPLAY) $(NCCL_DOUBLE)  ## every test, without installing anything first
	@OUT=$(OUT) tests/run.sh $(UNIT) $(REPLAY)

# Those of tuner/ that have datasets.
POSTGRESQL := $(filter-out %_torture,$(filter $(foreach t,unit/dataset/% property/dataset/% unit/service/% \
    $(addprefix unit/tuner/test_,asking collection examples outcome rankers session%),$(OUT)/tests/$(t)),$(UNIT)))
test-postgresql: $(POSTGRESQL)  ## the tests of datasets, sessions and the service, with datasets in a PostgreSQL of their own
	@OUT=$(OUT) tests/postgresql.sh $(POSTGRESQL)
asan:  ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer, without scripts that say "Once"; ALL=1 for the longest too
	@$(MAKE) --no-print-directory MODE=asan quick
tsan:  ## the same under ThreadSanitizer; TEST_SCRIPTS=0 leaves all scripts out
	@$(MAKE) --no-print-directory MODE=tsan quick
TSAN_POSTGRESQL := $(addprefix $(BUILD)/tsan/tests/unit/service/test_,hub http_bench http_concurrent)
tsan-postgresql:  ## the service's tests with many threads under ThreadSanitizer, with datasets in a PostgreSQL of their own
	@$(MAKE) --no-print-directory MODE=tsan POSTGRESQL='$(TSAN_POSTGRESQL)' test-postgresql
coverage:  ## line coverage of the test run, by folder
	@$(MAKE) --no-print-directory MODE=coverage quick
	@tests/coverage.sh $(BUILD)/coverage

bench: all  ## measure our speed: medians and ratios
	@OUT=$(OUT) tests/bench.sh
LOAD := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard tests/load/*.c))
bench-service: all $(OUT)/tests/load/load  ## the service under load over a file and over PostgreSQL, TRIALS (1000000) trials in each, then SOAK (60) seconds of all; ONLY=WORD
	@OUT=$(OUT) tests/load/run.sh $(BUILD)/load $(or $(TRIALS),1000000) $(or $(SOAK),60) $(ONLY)
$(OUT)/tests/load/load: $(LOAD) $$(foreach f,$$(call closure,dataset),$$(call lib,$$(f)))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(LOAD) $(call link,dataset)
accuracy: all $(OUT)/tests/accuracy/accuracy  ## predicted against measured over real trials in five lab clusters
	@OUT=$(OUT) tests/accuracy.sh
$(OUT)/tests/accuracy/accuracy: $(OUT)/obj/tests/accuracy/accuracy.o $$(foreach f,$$(call closure,cli),$$(call lib,$$(f)))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< $(call link,cli)
accuracy-sharded: all $(OUT)/tests/accuracy/accuracy  ## the same of all-reduces in halves, sharded parameters, replicas and micro-batches: 17 minutes
	@OUT=$(OUT) tests/accuracy.sh --sharded
accuracy-nccl: all  ## sums of the NCCL worker, predicted against measured, and PyTorch by strategies, on one GPU: ten minutes, and root
	@OUT=$(OUT) tests/accuracy-nccl.sh
accuracy-split: all  ## the best all-reduces against the best in halves (DeAR), on three lab networks: 12 minutes, and root
	@OUT=$(OUT) tests/accuracy/split.py
accuracy-encoders: all $(OUT)/tests/encoders/errors  ## what encoders lose of real gradients, and what they take in the lab: ten minutes, PyTorch, and root
	@OUT=$(OUT) tests/accuracy/encoders.py
accuracy-weather: all  ## predicted against measured while NICs and workers vary, in the lab: a quarter of an hour, and root
	@OUT=$(OUT) tests/accuracy/weather.py
accuracy-pytorch: all  ## predicted against measured with real PyTorch on emulated devices, in the lab: 40 minutes, and root
	@OUT=$(OUT) tests/accuracy/pytorch.py

convergence: all  ## time and updates to a target loss, ring all-reduce against workers that may drift apart, in the lab: an hour, and root
	@OUT=$(OUT) tests/convergence/convergence.py
$(OUT)/tests/convergence/settings: $(OUT)/obj/tests/convergence/settings.o $$(foreach f,$$(call closure,trial-runner),$$(call lib,$$(f)))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< $(call link,trial-runner)
failover: all  ## kill the server of updates 20 times, and see its replica go on, in the lab: two minutes, and root
	@OUT=$(OUT) tests/failover/failover.py

CURVES := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard tests/curves/*.c)) $(SUPPORT_STRATEGY)
curves: $(OUT)/tests/curves/curves  ## cost curves: every measured size predicted from the others, on public tables and the corpus
	@OUT=$(OUT) tests/curves.sh
$(OUT)/tests/curves/curves: $(CURVES) $$(foreach f,$$(call closure,cli),$$(call lib,$$(f)))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(CURVES) $(call link,cli)
$(OUT)/tests/encoders/errors: $(OUT)/obj/tests/encoders/errors.o $$(foreach f,$$(call closure,cli),$$(call lib,$$(f)))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< $(call link,cli)
EVALUATE := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard tests/evaluate/*.c)) $(SUPPORT_STRATEGY) $(SUPPORT_TUNER)
evaluate: all $(OUT)/tests/evaluate/evaluate  ## learned rankers against recorded trials: accuracy, transfer, features, search, ablation, bayes, bound
	@OUT=$(OUT) tests/evaluate.sh
$(OUT)/tests/evaluate/evaluate: $(EVALUATE) $$(foreach f,$$(call closure,cli),$$(call lib,$$(f)))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(EVALUATE) $(call link,cli)

# The live comparison uses these files of evaluate/; the others make tables.
EVALUATE_LIVE := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard tests/evaluate/live/*.c) \
                   tests/evaluate/corpus.c tests/evaluate/optuna_functions.c tests/evaluate/quantile.c) $(SUPPORT_STRATEGY) $(SUPPORT_TUNER)
evaluate-live: all $(OUT)/tests/evaluate/live  ## search methods against each other, live in the lab: an hour, and root
	@OUT=$(OUT) tests/evaluate-live.sh
$(OUT)/tests/evaluate/live: $(EVALUATE_LIVE) $$(foreach f,$$(call closure,cli),$$(call lib,$$(f)))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(EVALUATE_LIVE) $(call link,cli)

# Programs that measure. No test runs them, so CI at least builds them.
.PHONY: tools
tools: $(OUT)/tests/load/load $(foreach t,accuracy/accuracy convergence/settings curves/curves encoders/errors evaluate/evaluate evaluate/live,$(OUT)/tests/$(t))  ## build the programs of bench-service, accuracy, convergence, curves, evaluate and encoders

$(OUT)/fuzz/%: $(OUT)/obj/tests/fuzz/%.o $$(foreach f,$$(call closure,cli),$$(call lib,$$(f)))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(subst fuzzer-no-link,fuzzer,$(LDFLAGS_ALL)) -o $@ $< $(call link,cli)
# The same targets without libFuzzer: each input of their corpus once, with any compiler.
$(OUT)/tests/fuzz/replay_%: $(OUT)/obj/tests/fuzz/fuzz_%.o $(OUT)/obj/tests/fuzz/replay.o \
                            $$(foreach f,$$(call closure,cli),$$(call lib,$$(f)))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $(TEST_LINK) -o $@ $(filter %.o,$^) $(call link,cli)
FUZZ_SECONDS ?= 60
fuzz:  ## every parser, each for FUZZ_SECONDS (60), under libFuzzer
	@$(MAKE) --no-print-directory MODE=fuzz CC=clang fuzz-run
.PHONY: fuzz-run fuzz-http schemathesis faults attack mutants
fuzz-http:  ## REQUESTS (100000) requests after /openapi.json to a service under AddressSanitizer
	@$(MAKE) --no-print-directory MODE=asan all
	@OUT=$(BUILD)/asan REQUESTS=$(or $(REQUESTS),100000) SECONDS=0 tests/http/fuzz.sh
schemathesis: all  ## what another's tool, schemathesis from PyPI, makes from /openapi.json, for SECONDS (60)
	@.ci/schemathesis
	@OUT=$(OUT) SECONDS_OF_IT=$(or $(SECONDS),60) tests/schemathesis.sh
faults: all  ## SIGKILL at KILLS (50) random moments among CLIENTS (8) clients, of one service and of three on PostgreSQL (SERVICES=3: these alone), then the other faults
	@OUT=$(OUT) KILLS=$(or $(KILLS),50) CLIENTS=$(or $(CLIENTS),8) SERVICES='$(SERVICES)' tests/http/kill.sh
	@OUT=$(OUT) tests/http/faults.sh
attack: all  ## the service under attack for SECONDS (600): does each limit hold, how long another team waits, how much memory (tests/http/attack.py)
	@OUT=$(OUT) SHORT=0 SECONDS=$(or $(SECONDS),600) tests/http/attack.sh
fuzz-run: $(FUZZ)
	@OUT=$(OUT) tests/fuzz/run.sh $(FUZZ_SECONDS) $(FUZZ)

mutants:  ## do TESTS (unit/base/test_units ...) notice changes of FILE? of LINE alone, or MOST (30) at random; prints the unnoticed ones
	@tests/mutants.py $(FILE) $(TESTS) $(if $(LINE),--line $(LINE)) --most $(or $(MOST),30) --out $(OUT)

lint:  ## the folder law, headers that compile alone, house rules
	@FOLDERS="$(FOLDERS)" DEPS='$(foreach f,$(FOLDERS),$(f):$(subst $() ,$(comma),$(strip $(DEPS.$(f)))))' CC='$(CC)' \
	    NCCL_HOME='$(NCCL_HOME)' tests/lint/lint.sh
format:  ## clang-format in place (CHECK=1 only checks)
	$(Q)clang-format $(if $(CHECK),--dry-run -Werror,-i) $(ALL_C)
tidy:  ## clang-tidy, one file a process
	$(Q)for f in $(filter %.c,$(ALL_C)); do clang-tidy --quiet $$f -- $(WARN) -I. $(CUDA_INCLUDE) $$(mpicc --showme:compile) || exit 1; done

MAN := $(OUT)/share/man/man1
COMPLETION := $(OUT)/share/completion
man: $(MAN)/syncopate.1  ## the manual pages, into build/release/share/man
$(MAN)/syncopate.1: $(OUT)/bin/syncopate
	$(call say,MAN,$(MAN))
	@rm -rf $(MAN)
	@mkdir -p $(MAN)
	$(Q)$< manual --out $(MAN)
$(COMPLETION)/%: $(OUT)/bin/syncopate $(wildcard examples/models examples/clusters)
	$(call say,SHELL,$@)
	@mkdir -p $(@D)
	$(Q)$< completion $* >$@

TO      := $(DESTDIR)$(PREFIX)
SHARE   := $(TO)/share/syncopate
GUIDES  := $(TO)/share/doc/syncopate
UNIT_IN := $(TO)/lib/systemd/system
install: all man $(COMPLETION)/bash $(COMPLETION)/zsh  ## install into PREFIX (/usr/local): programs, examples, pages, completion, guides, unit
	@install -d $(TO)/bin $(SHARE)/models $(SHARE)/clusters $(SHARE)/python/syncopate_torch $(TO)/share/man/man1 $(GUIDES) $(UNIT_IN) \
	    $(TO)/share/bash-completion/completions $(TO)/share/zsh/site-functions
	$(call say,INSTALL,$(TO))
	$(Q)install -m 755 $(PROGRAMS) $(TO)/bin/
	$(Q)$(if $(NCCL_TUNER),install -m 644 $(NCCL_TUNER) $(TO)/lib/)
	$(Q)install -m 644 examples/models/*.json $(SHARE)/models/
	$(Q)install -m 644 examples/clusters/*.json $(SHARE)/clusters/
	$(Q)install -m 644 examples/launchers.json $(SHARE)/
	$(Q)install -m 644 interop/pytorch/syncopate_torch/*.py $(SHARE)/python/syncopate_torch/
	$(Q)install -m 644 interop/client/*.py $(SHARE)/python/
	$(Q)install -m 644 $(MAN)/*.1 $(TO)/share/man/man1/
	$(Q)install -m 644 $(COMPLETION)/bash $(TO)/share/bash-completion/completions/syncopate
	$(Q)install -m 644 $(COMPLETION)/zsh $(TO)/share/zsh/site-functions/_syncopate
	$(Q)install -m 644 $(wildcard docs/*.md docs/alerts.yml) $(GUIDES)/
	$(Q)for unit in $(wildcard docs/*.service); do \
	    sed -E 's,/[^ ]*/bin/syncopate( |$$),$(PREFIX)/bin/syncopate\1,' $$unit >$(UNIT_IN)/$${unit##*/} && \
	    chmod 644 $(UNIT_IN)/$${unit##*/} || exit 1; done
uninstall:  ## remove what install put there
	rm -f $(addprefix $(TO)/bin/,$(notdir $(PROGRAMS))) $(addprefix $(TO)/lib/,$(notdir $(NCCL_TUNER))) \
	    $(TO)/share/man/man1/syncopate.1 $(TO)/share/man/man1/syncopate-*.1 \
	    $(TO)/share/bash-completion/completions/syncopate $(TO)/share/zsh/site-functions/_syncopate $(UNIT_IN)/syncopate.service
	rm -rf $(SHARE) $(GUIDES)
deb:  ## Debian packages, into build/deb: program, service, worker, PyTorch module (docs/operations.md)
	@debian/build $(BUILD)/deb
test-deb:  ## build these, and install, upgrade, remove and purge them in a new Debian; ten minutes, root and the net
	@TEST_SCRIPTS=0 TEST_SCRIPT_TIMEOUT=1800 tests/run.sh tests/deb.sh
clean:  ## remove build/
	rm -rf $(BUILD)

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' Makefile | expand -t 12
