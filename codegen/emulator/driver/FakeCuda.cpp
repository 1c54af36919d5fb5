#include "codegen/emulator/driver/FakeCuda.h"

#include "codegen/emulator/driver/State.h"

using namespace normc::cuda;

namespace {

/// Locks the state for one statement.
struct Locked {
  std::lock_guard<std::mutex> lock{fake::fake().mutex};
  fake::State* operator->() const { return fake::fake().state.get(); }
};

}  // namespace

extern "C" {

void fake_cuda_reset(void) {
  fake::Fake& fake = fake::fake();
  const std::lock_guard lock(fake.mutex);
  fake.state = std::make_unique<fake::State>();
  fake.recording = true;
  ++fake.generation;
}

void fake_cuda_set_devices(int count, const fake_cuda_device* devices) {
  const Locked state;
  state->devices.clear();
  for (int i = 0; i < count; ++i) state->addDevice(devices[i]);
}

void fake_cuda_set_driver_version(int version) { Locked()->driverVersion = version; }

size_t fake_cuda_live_objects(void) {
  const Locked state;
  size_t count = state->contexts.size() + state->modules.size() + state->streams.size() +
                 state->events.size() + state->graphs.size() + state->graphExecs.size();
  for (const fake::Device& device : state->devices) count += device.retained > 0;
  return count;
}

void fake_cuda_set_launcher(fake_cuda_launcher launcher, void* user) {
  const Locked state;
  state->launcher = launcher;
  state->launcherUser = user;
}

void fake_cuda_set_recording(int on) { fake::fake().recording = on != 0; }

size_t fake_cuda_call_count(const char* function) {
  const Locked state;
  if (!function) return state->calls.size();
  size_t count = 0;
  for (const char* const call : state->calls) count += std::string_view(call) == function;
  return count;
}

const char* fake_cuda_call_at(size_t index) {
  const Locked state;
  return index < state->calls.size() ? state->calls[index] : nullptr;
}

size_t fake_cuda_launch_count(void) { return Locked()->launches.size(); }

int fake_cuda_launch_at(size_t index, fake_cuda_launch* launch) {
  const Locked state;
  if (index >= state->launches.size()) return 0;
  const fake::RecordedLaunch& recorded = state->launches[index];
  *launch = recorded.launch;
  launch->function = recorded.function.c_str();
  launch->image = recorded.image->c_str();
  launch->parameters = recorded.parameters.data();
  return 1;
}

void fake_cuda_clear_record(void) {
  const Locked state;
  state->calls.clear();
  state->launches.clear();
}

void fake_cuda_fail(const char* function, int nth, int result, fake_cuda_scope scope) {
  Locked()->faults.push_back({function, nth, CUresult(result), scope == FAKE_CUDA_STICKY});
}

void fake_cuda_set_jit_log(const char* text) { Locked()->jitLog = text; }

void fake_cuda_set_max_threads_per_block(int threads) { Locked()->maxThreadsPerBlock = threads; }

void fake_cuda_set_largest_cluster(int blocks) { Locked()->largestCluster = blocks; }

}  // extern "C"
