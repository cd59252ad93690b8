# GPU code: the program's object, the same code emulated on the CPU for tests, the checks that need nvcc, and those that need a device.
.PHONY: gpu-compile gpu-report gpu-predict stage-launches gpu-choose test-gpu first-gpu first-gpu-pack

comma := ,
# one fat object: machine code for A100, H100/H200 (with wgmma and TMA, which only sm_90a has) and B200, and PTX for later GPUs; linking it needs no C++ runtime
NVCC_FLAGS = -std=c++17 -O3 --threads 0 -DVLMPROF_SM_90A $(INCLUDES) -Xcompiler -fno-threadsafe-statics,-fno-exceptions,-Wall,-Wextra
NVCC_ARCHS := -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a $(if $(NVCC_LACKS), \
    -gencode arch=compute_90$(comma)code=compute_90,-gencode arch=compute_100$(comma)code=[sm_100$(comma)compute_100])
NVCC_SAYS = $(if $(filter all,$(NVCC_LACKS)),echo "$(NVCC): too old for the GPU code: CUDA Toolkit 12.0 or later" >&2; exit 1,$(if $(NVCC_LACKS), \
    echo "$(NVCC) is older than 12.8: no machine code for compute capability 10.0 and later; PTX of 9.0 is used there"))
CUDA_TOOLKIT = $(dir $(realpath $(shell command -v $(NVCC))))..
CUDA_LIBRARIES = $(foreach place,lib64 lib targets/x86_64-linux/lib,-L$(CUDA_TOOLKIT)/$(place)) -lcudart_static -ldl -lrt -lpthread

$(B)/vlmprof_cuda.o: vlmprof_kernels.cu
	@echo "nvcc $<"; $(NVCC_SAYS)
	@mkdir -p $(B)
	@$(NVCC) $(NVCC_FLAGS) $(NVCC_ARCHS) -MMD -MP -MF $(B)/vlmprof_cuda.od -c $< -o $@
# Compiled where there is an NVIDIA driver, or with GPU=1 (for another machine); GPU=0: not at all. The program is linked again when this changes.
GPU_DRIVER := $(wildcard /dev/nvidia* /dev/dxg /dev/nvhost*)
GPU_OBJECT := $(if $(NVCC),$(if $(filter 1,$(if $(filter 0 1,$(GPU)),$(GPU),$(if $(GPU_DRIVER),1))),$(B)/vlmprof_cuda.o))
$(if $(filter 1,$(GPU)),$(if $(NVCC),,$(error GPU=1 needs nvcc (CUDA Toolkit 12.0 or later): put it on the PATH, or name it by NVCC=path)))
LINKED := $(B)/linked-with$(if $(GPU_OBJECT),,out)-gpu
$(LINKED):
	@mkdir -p $(B) && rm -f $(B)/linked-with*-gpu && touch $@

# ---- the same with the GPU emulated (tests/emulator/cuda_on_cpu.h): the whole command, and the tests that run on any device
EMULATED_FLAGS = -x c++ -std=c++17 -DVLMPROF_SM_90A -Wno-psabi $(WARN) $(INCLUDES) $(CFLAGS) -O1 $(SANITIZE) -include tests/emulator/cuda_on_cpu.h
$(E)/vlmprof_emulated.o: vlmprof_kernels.cu | $(PROBED_EMULATOR)
	@echo "c++ $< (GPU code, emulated)"
	@mkdir -p $(E)
	@$(CXX) $(EMULATED_FLAGS) $(DEPENDENCIES) -c $< -o $@
$(E)/vlmprof: $(HOOKED_OBJECTS) $(B)/cli.o $(E)/vlmprof_emulated.o $(LIBRARIES)
	@$(CXX) -fopenmp $(SANITIZE) $(LDFLAGS) $^ -o $@ $(SYSTEM)
$(E)/emulator: tests/emulator/emulator.cpp tests/emulator/cuda_on_cpu.h tests/emulator/cupti_on_cpu.h tests/emulator/dependent_on_cpu.h \
    tests/emulator/butterflies_on_cpu.h | $(PROBED_EMULATOR)
	@echo "c++ $<"
	@mkdir -p $(E)
	@$(CXX) -std=c++17 $(WARN) $(CFLAGS) -O0 $(SANITIZE) -I. $< -o $@ -ldl -lm
$(E)/test_%.o: test_%.c | $(PROBED)
	@mkdir -p $(E)
	@$(CC) $(HEADER_FLAGS) -O1 -fopenmp -DTEST_EMULATED -DTEST_CUDA -DTEST_DEVICE='"cuda"' $(DEPENDENCIES) -c $< -o $@
$(E)/test_several: $(ROOMS) # makes its prompts and pixels as the program does
$(E)/test_%: $(E)/test_%.o $(E)/vlmprof_emulated.o $(LIBRARY)
	@$(CXX) -fopenmp $(SANITIZE) $(LDFLAGS) -Wl,--start-group $^ -Wl,--end-group -o $@ $(SYSTEM)
EMULATED_TESTS := $(E)/emulator $(E)/test_kernels $(E)/test_model $(E)/test_othermodels $(E)/test_several $(E)/test_prune $(E)/test_faults $(E)/test_trace
.PRECIOUS: $(E)/test_%.o

# ---- GPU: the kernels must compile for each of these architectures without a warning or a register spill
gpu-compile: $(GPU_ARCHS:%=$(B)/gpu/vlmprof_kernels.%.o)
	@$(MAKE) GPU=1 B=$(B) PROGRAM=$(PROGRAM) $(PROGRAM)
	@if readelf -d $(PROGRAM) | grep -E 'NEEDED.*(cuda|cudart|cublas|nvidia|stdc\+\+)'; then echo "$(PROGRAM) needs a library that machines without a GPU lack" >&2; exit 1; fi
	@echo "gpu-compile: $(words $(GPU_ARCHS)) objects, no warnings, no spills, no local memory; $(PROGRAM) needs no CUDA library to start"
$(B)/gpu/vlmprof_kernels.%.o: vlmprof_kernels.cu
	@if [ -z "$(NVCC)" ]; then echo "gpu-compile needs nvcc (CUDA Toolkit 12.8 or later), or NVCC=path" >&2; exit 1; fi
	@mkdir -p $(@D)
	@echo "nvcc $* $<"
	@$(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(B)/gpu-$*.od -arch=$* -Xptxas -v -c $< -o $@ >$@.log 2>&1 || { cat $@.log; exit 1; }
	@if grep -v '^ptxas info\|bytes stack frame' $@.log | grep .; then echo "$*: nvcc warns" >&2; rm $@; exit 1; fi
	@if grep 'stack frame' $@.log | grep -v ' 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads'; then \
	    echo "$*: registers spill, or an array is in local memory" >&2; rm $@; exit 1; fi

# compares each compiled kernel with the limits in tests/bench/gpu/gates.txt (KEEP_GATES=1 rewrites them); needs no GPU
$(E)/launches.o: tests/bench/gpu/launches.c | $(PROBED)
	@mkdir -p $(E)
	@$(CC) $(HEADER_FLAGS) -fopenmp $(DEPENDENCIES) -c $< -o $@
$(E)/launches: $(E)/launches.o $(E)/vlmprof_emulated.o $(LIBRARY)
	@$(CXX) -fopenmp $(SANITIZE) $(LDFLAGS) $^ -o $@ $(SYSTEM)
$(E)/gpu_report: tests/bench/gpu/gpu_report.c | $(PROBED)
	@mkdir -p $(E)
	@$(CC) $(HEADER_FLAGS) $(DEPENDENCIES) $< -o $@ $(LDFLAGS)
gpu-report: $(GPU_ARCHS:%=$(B)/gpu/vlmprof_kernels.%.o) $(E)/launches $(E)/gpu_report
	@B=$(B) tests/bench/gpu/gpu_report.sh $(E)/gpu_report $(E)/launches $(NVCC) $(GPU_ARCHS)

# predicts each kernel's time on Hopper from counts: tests/bench/results/gpu-predictions.md
STAGES = $(B)/gpu/stages.txt tests/bench/gpu/gates.txt $(foreach kind,int8 int4 wgmma,$(B)/gpu/stages$(kind).txt)
stage-launches: $(E)/launches
	@mkdir -p $(B)/gpu
	@for kind in '' int8 int4 wgmma; do CUDA_ON_CPU_CAPABILITY=9.0 CUDA_ON_CPU_MULTIPROCESSORS=132 $(E)/launches stages $$kind >$(B)/gpu/stages$$kind.txt || exit 1; done
gpu-predict: stage-launches
	@python3 tests/bench/gpu/predict.py $(STAGES) >tests/bench/results/gpu-predictions.md
	@echo "written: tests/bench/results/gpu-predictions.md"

# ---- on a machine with a GPU: the same sources as the emulated tests, on the device itself
G := $(B)/gpu
$(G)/test_%.o: test_%.c | $(PROBED)
	@mkdir -p $(G)
	@$(CC) $(HEADER_FLAGS) -fopenmp -DTEST_CUDA -DTEST_DEVICE='"cuda"' $(DEPENDENCIES) -c $< -o $@
$(G)/test_%: $(G)/test_%.o $(B)/vlmprof_cuda.o $(LIBRARY)
	@$(CC) -fopenmp $(LDFLAGS) $^ -o $@ $(CUDA_LIBRARIES) $(SYSTEM)
.PRECIOUS: $(G)/test_%.o
test-gpu: $(PROBED)
	@if [ -z "$(NVCC)" ]; then echo "test-gpu needs nvcc (CUDA Toolkit 12.8 or later), or NVCC=path" >&2; exit 1; fi
	@$(MAKE) GPU=1 $(PROGRAM) $(G)/test_kernels $(G)/test_model
	@$(PROGRAM) selftest --device cuda
	@B=$(B) PROGRAM=$(PROGRAM) CC="$(CC)" TEST_JOBS=1 TEST_TIMEOUT_S=$(TEST_TIMEOUT_S) tests/run.sh $(G)/test_kernels $(G)/test_model | tee $(G)/test.log; \
	    tail -n 1 $(G)/test.log | grep -q ' 0 failed, 0 skipped$$'
# ---- the first run on a GPU: tests/bench/gpu/first_run.sh, as a folder for a machine that needs no more than a driver, cuBLAS and bash. The kernels are
# compiled again there, with waits that end after 2 s (VK_SPIN_LIMIT)
FIRST_FILES = tests/bench/gpu/first_run.sh tests/bench/gpu/first_report.py tests/bench/gpu/predict.py tests/bench/gpu/gates.txt tests/bench/gpu/yardstick.py
# machine code only for this machine's GPU, which compiles four times as fast; without a GPU, for all
FIRST_CHIP = $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
FIRST_ARCHS = $(if $(FIRST_CHIP),-arch=sm_$(FIRST_CHIP:90=90a),$(NVCC_ARCHS))
$(E)/first_gpu.o: tests/bench/gpu/first_gpu.cu | $(PROBED_EMULATOR)
	@echo "c++ $< (emulated)"
	@mkdir -p $(E)
	@$(CXX) $(EMULATED_FLAGS) $(DEPENDENCIES) -c $< -o $@
$(E)/first_gpu: $(E)/first_gpu.o $(LIBRARY)
	@$(CXX) -fopenmp $(SANITIZE) $(LDFLAGS) $^ -o $@ $(SYSTEM)
$(G)/first_gpu.o: tests/bench/gpu/first_gpu.cu
	@echo "nvcc $<"; $(NVCC_SAYS)
	@mkdir -p $(G)
	@$(NVCC) $(NVCC_FLAGS) -DVK_SPIN_LIMIT=2 $(NVCC_ARCHS) -MMD -MP -MF $(G)-first_gpu.d -c $< -o $@
$(G)/first_gpu: $(G)/first_gpu.o $(LIBRARY)
	@$(CC) -fopenmp $(LDFLAGS) $^ -o $@ $(CUDA_LIBRARIES) $(SYSTEM)
PACK := $(B)/first-gpu-pack
PACK_PROGRAMS = $(B)/pack/vlmprof $(B)/pack/gpu/first_gpu
PACK_MOST_MB := 64
first-gpu: # both on one machine
	@$(MAKE) first-gpu-pack NVCC_ARCHS="$(FIRST_ARCHS)"
	@FIRST_GPU_OUT=$(B)/first-gpu $(PACK)/first_run.sh
first-gpu-pack:
	@if [ -z "$(NVCC)" ]; then echo "first-gpu-pack needs nvcc (CUDA Toolkit 12.0 or later), or NVCC=path" >&2; exit 1; fi
	@$(MAKE) B=$(B)/pack PROGRAM=$(B)/pack/vlmprof GPU=1 PACK=$(PACK) PACK_PROGRAMS="$(PACK_PROGRAMS)" $(PACK)/commit
$(PACK)/commit: $(FIRST_FILES) $(PACK_PROGRAMS)
	@rm -rf $(PACK) && mkdir -p $(PACK)/lib && cp $^ $(PACK)
	@strip $(addprefix $(PACK)/,$(notdir $(PACK_PROGRAMS)))
	@cp $$(ldd $(PACK_PROGRAMS) | awk '/gomp|stdc/ && !seen[$$1]++ { print $$3 }') $(PACK)/lib
	@git rev-parse --short HEAD >$@ 2>/dev/null || echo unknown >$@
	@du -sm $(PACK) | awk '{ print "first-gpu-pack: " $$2 ", " $$1 " MB of $(PACK_MOST_MB); on a machine with a GPU: ./first_run.sh"; exit $$1 > $(PACK_MOST_MB) }'
# shows which switch of --gpu should become the default, and which code can be removed, from the file of a first run: make gpu-choose FILE=first-gpu.jsonl
gpu-choose: stage-launches
	@if [ ! -f "$(FILE)" ]; then echo "gpu-choose needs FILE=first-gpu.jsonl, of a first run" >&2; exit 2; fi
	@python3 tests/bench/gpu/predict.py --constants "$(FILE)" --choose "$(FILE)" $(STAGES)
