// execute allocates nothing, and what does has a status where memory is out. This program's own malloc
// counts, and refuses, for the thread that asks.
#if !defined(NORMC_SANITIZED)

#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "runtime/threads/Pool.h"
#include "tests/runtime/CudaSupport.h"

namespace {
thread_local bool counting = false;
thread_local int allocations = 0;
thread_local int firstRefused = INT_MAX, lastRefused = INT_MAX;

/// Counts an allocation. True if it may succeed.
bool count() {
  if (!counting || ++allocations < firstRefused || allocations > lastRefused) return true;
  errno = ENOMEM;
  return false;
}
}  // namespace

#pragma GCC visibility push(default)  // or the library would not find them
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) { return count() ? __libc_malloc(bytes) : nullptr; }
void* calloc(size_t items, size_t bytes) { return count() ? __libc_calloc(items, bytes) : nullptr; }
void* realloc(void* memory, size_t bytes) { return count() ? __libc_realloc(memory, bytes) : nullptr; }
void* aligned_alloc(size_t alignment, size_t bytes) {
  return count() ? __libc_memalign(alignment, bytes) : nullptr;
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  if (!count()) return ENOMEM;
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
}
#pragma GCC visibility pop

namespace normc::test {
namespace {

/// Returns the number of allocations of `action` on this thread.
template <typename Action>
int allocationsOf(Action&& action) {
  allocations = 0;
  counting = true;
  action();
  counting = false;
  return allocations;
}

/// Asks `action` for its status while one of its allocations fails, or that and all that follow, for each in
/// turn.
template <typename Action, typename Undo>
void refuseEach(Action&& action, Undo&& undo) {
  for (const bool onlyOne : {false, true}) {
    int allowed = 0;
    for (bool refused = true; refused; ++allowed) {
      normc_status status = NORMC_OK;
      firstRefused = allowed + 1, lastRefused = onlyOne ? firstRefused : INT_MAX;
      refused = allocationsOf([&] { status = action(); }) > allowed;
      firstRefused = lastRefused = INT_MAX;
      if (status == NORMC_OK)
        undo();
      else
        EXPECT_EQ(status, NORMC_RESOURCE_EXHAUSTED) << "after " << allowed << ": " << normc_last_error();
      EXPECT_TRUE(refused || status == NORMC_OK);
    }
    EXPECT_GT(allowed, 1) << "something was refused";
  }
}

TEST(Allocation, IsCounted) {
  EXPECT_EQ(allocationsOf([] {}), 0);
  EXPECT_GT(allocationsOf([] { Plan(standard(), "layer_norm:forward@f32[*x*]"); }), 0)
      << "the library's malloc is this one";
}

TEST(Allocation, DoesNotHappenInExecute) {
  LayerNorm layer(129, 33);
  PowerNorm power(129, 33);
  const Call layerForward = layer.forward(), layerBackward = layer.backward();
  const Call powerForward = power.forward(), powerBackward = power.backward();
  Call leftOut = layer.backward();
  leftOut.dx = leftOut.dbias = {};
  std::vector<float> mean(129), rstd(129);
  Call fields = layer.forward();
  fields.saved = {}, fields.savedFields = {Tensor(mean.data(), {129}), Tensor(rstd.data(), {129})};
  EXPECT_EQ(allocationsOf([&] {
              for (int i = 0; i < 10; ++i) {
                layer.forwardPlan(layerForward);
                layer.forwardPlan(fields);
                layer.backwardPlan(layerBackward);
                layer.backwardPlan(leftOut);
                power.forwardPlan(powerForward);
                power.backwardPlan(powerBackward);
                power.forwardPlan.part(powerForward, 0, 1);
                power.backwardPlan.part(powerBackward, 0, 1);
              }
            }),
            0);
}

TEST(Allocation, DoesNotHappenInARefusal) {
  LayerNorm norm;
  normc_args args = {};
  args.struct_size = sizeof args;
  normc_execute(norm.forwardPlan.get(), &args);  // the thread's message exists from its first failure on
  EXPECT_EQ(allocationsOf([&] { normc_execute(norm.forwardPlan.get(), &args); }), 0);
}

TEST(Allocation, ThatFailsWhileAPackageIsOpened) {
  const std::string bytes = packageOf(layerNorm("forward")).bytes();
  normc_package* package = nullptr;
  refuseEach([&] { return normc_package_open_memory(context().get(), bytes.data(), bytes.size(), &package); },
             [&] { normc_package_destroy(package); });
}

int openFiles() {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) count += file.exists();
  return count;
}

TEST(Allocation, ThatFailsWhileAFileIsOpenedLeavesNoDescriptor) {
  const std::string path = testing::TempDir() + "normc-allocation-" + std::to_string(getpid()) + ".npk";
  ASSERT_TRUE(packageOf(layerNorm("forward")).write(path));
  const int before = openFiles();
  normc_package* package = nullptr;
  refuseEach([&] { return normc_package_open(context().get(), path.c_str(), &package); },
             [&] { normc_package_destroy(package); });
  EXPECT_EQ(openFiles(), before);
  std::filesystem::remove(path);
}

TEST(Allocation, ThatFailsInAQuestionIsAStatus) {
  PowerNorm norm;
  const normc_plan* const plan = norm.forwardPlan.get();
  normc_state* const state = norm.state.get();
  const normc_sizes sizes = norm.sizes();
  std::vector<char> memory(norm.state.buffer().bytes);
  std::vector<float> psi2(norm.features);
  void* data;
  const char* text;
  size_t bytes;
  int32_t count;
  double value;
  normc_field field = {};
  normc_number_info number = {};
  normc_tensor_info tensor = {};
  normc_cuda_device device = {};
  field.struct_size = sizeof field, number.struct_size = sizeof number, tensor.struct_size = sizeof tensor;
  device.struct_size = sizeof device;
  // A name that is too long for a string without an allocation, too.
  const std::string longName(100, 'n');
  const std::vector<std::function<normc_status()>> questions = {
      [&] { return normc_package_manifest(standard().get(), &text); },
      [&] { return normc_package_verify(standard().get()); },
      [&] { return normc_plan_describe(plan, &text); },
      [&] { return normc_plan_number(plan, "epsilon", &value); },
      [&] { return normc_plan_number(plan, longName.c_str(), &value); },
      [&] { return normc_plan_number_info(plan, 0, &number); },
      [&] { return normc_plan_tensor_info(plan, 0, &tensor); },
      [&] { return normc_plan_kernel(plan, &sizes, &bytes); },
      [&] { return normc_plan_state_bytes(plan, &sizes, &bytes); },
      [&] { return normc_plan_state_field(plan, &sizes, 0, &field); },
      [&] { return normc_plan_state_init(plan, &sizes, memory.data(), memory.size()); },
      [&] { return normc_plan_saved_bytes(plan, &sizes, &bytes); },
      [&] { return normc_plan_saved_field(plan, &sizes, 0, &field); },
      [&] { return normc_plan_partial_bytes(plan, &sizes, &bytes); },
      [&] { return normc_plan_partial_field(plan, &sizes, 0, &field); },
      [&] { return normc_plan_workspace_bytes(plan, &sizes, &bytes); },
      [&] { return normc_plan_barriers(plan, &sizes, &count); },
      [&] { return normc_state_init(state); },
      [&] { return normc_state_data(state, &data, &bytes); },
      [&] { return normc_state_field(state, 0, &field); },
      [&] { return normc_state_get(state, "psi2", psi2.data(), psi2.size() * sizeof(float)); },
      [&] { return normc_state_set(state, "psi2", psi2.data(), psi2.size() * sizeof(float)); },
      [&] { return normc_state_get(state, longName.c_str(), psi2.data(), 4); },
      [&] { return normc_state_set(state, longName.c_str(), psi2.data(), 4); },
      [&] { return normc_state_copy(state, state); },
      [&] { return normc_cuda_device_info(context().get(), 0, &device); },
      [&] { return normc_cuda_device_count(context().get(), &count); },
  };
  for (size_t i = 0; i < questions.size(); ++i) {
    const normc_status usual = questions[i]();
    const int all = allocationsOf([&] { (void)questions[i](); });
    for (const bool onlyOne : {false, true}) {
      for (int failing = 1; failing <= all; ++failing) {
        firstRefused = failing, lastRefused = onlyOne ? failing : INT_MAX;
        normc_status status = NORMC_OK;
        allocationsOf([&] { status = questions[i](); });
        firstRefused = lastRefused = INT_MAX;
        EXPECT_TRUE(status == NORMC_RESOURCE_EXHAUSTED || status == usual)
            << "question " << i << ", allocation " << failing << ": " << normc_last_error();
      }
    }
    EXPECT_EQ(questions[i](), usual) << "question " << i;
  }
}

TEST(Allocation, OfALibraryEndsWithIt) {
  // A copy, since this program holds the library itself.
  const std::string copy = testing::TempDir() + "normc-library-" + std::to_string(getpid()) + ".so";
  std::filesystem::copy_file(NORMC_RUNTIME_LIBRARY, copy, std::filesystem::copy_options::overwrite_existing);
  const auto openAndClose = [&] {
    void* const library = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << dlerror();
    const auto create =
        reinterpret_cast<decltype(&normc_context_create)>(dlsym(library, "normc_context_create"));
    const auto destroy =
        reinterpret_cast<decltype(&normc_context_destroy)>(dlsym(library, "normc_context_destroy"));
    normc_context* context = nullptr;
    EXPECT_EQ(create(nullptr, &context), NORMC_OK);
    destroy(context);
    EXPECT_EQ(create(nullptr, nullptr), NORMC_INVALID_ARGUMENT);
    EXPECT_EQ(dlclose(library), 0);
    EXPECT_FALSE(dlopen(copy.c_str(), RTLD_NOW | RTLD_NOLOAD)) << "it is unloaded";
  };
  for (int i = 0; i < 5; ++i) openAndClose();
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 10; ++i) openAndClose();
  EXPECT_LE(mallinfo2().uordblks, before + 10 * 256);
  std::filesystem::remove(copy);
}

TEST(Allocation, ThatFailsWhileAPlanIsMade) {
  const std::string bytes = packageOf(layerNorm("forward")).bytes();
  const auto openAgain = [&] {
    return std::make_unique<host::Package>(context(), bytes.data(), bytes.size());
  };
  std::unique_ptr<host::Package> package = openAgain();
  normc_request request = {};
  request.struct_size = sizeof request;
  request.problem = "layer_norm:forward@f32[*x*]";
  normc_plan* plan = nullptr;
  refuseEach([&] { return normc_plan_create(package->get(), &request, &plan); },
             [&] {
               normc_plan_destroy(plan);
               package = openAgain();  // a package without loaded code
             });
}

TEST(Allocation, ThatFailsWhileAPoolIsMade) {
  using runtime::Pool;
  std::unique_ptr<Pool> pool;
  for (int allowed = 1, workers = 0; workers < 3; ++allowed) {  // the first is the pool itself
    firstRefused = allowed + 1;
    allocationsOf([&] { pool = std::make_unique<Pool>(3); });
    firstRefused = INT_MAX;
    EXPECT_GE(pool->workers(), workers) << "after " << allowed;
    workers = pool->workers();
    pool->run(8, 4, [](void*, int64_t) {}, nullptr);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    EXPECT_FALSE(sigismember(&blocked, SIGINT)) << "after " << allowed;
  }
}

TEST(Allocation, ThatFailsWhileAStateIsMade) {
  const Plan plan(standard(), "power_norm:forward@f32[*x*]");
  normc_state* state = nullptr;
  refuseEach([&] { return normc_state_create(plan.get(), 64, &state); }, [&] { normc_state_destroy(state); });
}

TEST(Allocation, DoesNotHappenInExecuteOnCuda) {
  fake_cuda_reset();
  const host::Package package =
      openInMemory(cudaPackage({forCuda(powerNorm("forward"))}), host::Context(fakeDriver()));
  const Plan plan(package, "power_norm:forward@f32[*x*]", host::onCuda());
  const CudaLayerNorm norm(33, 8);
  State state(plan, 8);
  Call call = norm.forward();
  call.saved = {}, call.workspace = norm.workspace.buffer(), call.state = &state;
  const Stream stream;
  call.stream = stream.get();
  const Current current;
  fake_cuda_set_recording(0);  // the fake driver's own memory does not count
  EXPECT_EQ(allocationsOf([&] { plan(call); }), 0);
  fake_cuda_set_recording(1);
}

TEST(Allocation, DoesNotHappenWithAHostsThreads) {
  normc_context_options options = {};
  options.parallel_for = [](void*, int64_t tasks, normc_task task, void* data) {
    for (int64_t i = 0; i < tasks; ++i) task(data, i);
    return 0;
  };
  const host::Package package = openInMemory(standardPackage(), host::Context(options));
  LayerNorm norm(129, 33, package);
  norm.forwardPlan(norm.forward());
  const Call call = norm.backward();
  EXPECT_EQ(allocationsOf([&] { norm.backwardPlan(call); }), 0);
}

}  // namespace
}  // namespace normc::test

#endif
