// A CUDA runtime and driver without a device: they only keep accounts.
//
// libc10_cuda binds to it in place of libcudart and libcuda. It hands out addresses that nothing
// lies behind (the allocator never touches the memory), refuses once the device is full, and lets
// the program say which streams have caught up. The addresses follow from the seed alone.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <random>
#include <set>

using Status = int;  // of both interfaces: zero is success

namespace {

constexpr Status kSuccess = 0;
constexpr Status kOutOfMemory = 2;
constexpr Status kNotReady = 600;

// Segments lie in slots of 4 GiB, reserved ranges in slots of 1 TiB: far more than either takes.
constexpr uint64_t kSegmentBase = 1ull << 44, kSegmentSlots = 1 << 16, kSegmentSlotBits = 32;
constexpr uint64_t kRangeBase = 1ull << 46, kRangeSlots = 64, kRangeSlotBits = 40;
constexpr uint64_t kPageBytes = 2ull << 20;

// Where the runtime's structure of device properties has the size of the memory.
constexpr size_t kTotalMemoryOffset = 288, kPropertiesBytes = 720;

struct Event {
  uint64_t stream = 0;
  uint64_t moment = 0;
};

uint64_t capacity_bytes = 0, used_bytes = 0;
std::mt19937_64 random_numbers;
std::map<uint64_t, size_t> segments, handles;
std::set<uint64_t> segment_slots, range_slots;
uint64_t next_handle = 1;

uint64_t now = 0;                         // counts the events recorded
std::map<uint64_t, uint64_t> caught_up;   // by stream: the moment up to which its work is done
std::map<uint64_t, bool> is_capturing;    // by stream

// Told of the memory and the addresses that are handed out: what, where, how many bytes.
using Note = void (*)(const char*, uint64_t, uint64_t);
Note note_reservation = [](const char*, uint64_t, uint64_t) {};

uint64_t take_slot(std::set<uint64_t>& slots, uint64_t count) {
  // Neither ascending nor descending: the allocator's order of blocks must not come from ours.
  for (;;) {
    const uint64_t slot = random_numbers() % count;
    if (slots.insert(slot).second) return slot;
  }
}

bool take_memory(size_t bytes) {
  if (used_bytes + bytes > capacity_bytes) return false;
  used_bytes += bytes;
  return true;
}

void give_back_memory(std::map<uint64_t, size_t>& owners, uint64_t owner) {
  const auto found = owners.find(owner);
  if (found == owners.end()) {
    std::fprintf(stderr, "stand-in: memory released that was never handed out\n");
    std::abort();
  }
  used_bytes -= found->second;
  owners.erase(found);
}

Status fill_properties(void* properties) {
  std::memset(properties, 0, kPropertiesBytes);
  std::memcpy(static_cast<char*>(properties) + kTotalMemoryOffset, &capacity_bytes, 8);
  return kSuccess;
}

Status tell_capture(void* stream, int* status, unsigned long long* id) {
  *status = is_capturing[reinterpret_cast<uint64_t>(stream)] ? 1 : 0;
  if (id) *id = 1;
  return kSuccess;
}

Status find_driver_function(const char* name, void** function, int* result);

}  // namespace

extern "C" {

// For the program that makes the calls.

void stand_in_begin(uint64_t capacity, uint64_t seed, Note note) {
  capacity_bytes = capacity;
  random_numbers.seed(seed);
  note_reservation = note;
}
void stand_in_catch_up(uint64_t stream) { caught_up[stream] = now; }
void stand_in_capture(uint64_t stream, bool on) { is_capturing[stream] = on; }

// Memory of the runtime.

Status cudaMalloc(void** pointer, size_t bytes) {
  if (!take_memory(bytes)) return kOutOfMemory;
  const uint64_t slot = take_slot(segment_slots, kSegmentSlots);
  const uint64_t address =
      kSegmentBase + (slot << kSegmentSlotBits) + random_numbers() % 64 * kPageBytes;
  segments[address] = bytes;
  note_reservation("reserve", address, bytes);
  *pointer = reinterpret_cast<void*>(address);
  return kSuccess;
}
Status cudaFree(void* pointer) {
  if (!pointer) return kSuccess;
  const auto address = reinterpret_cast<uint64_t>(pointer);
  give_back_memory(segments, address);
  segment_slots.erase((address - kSegmentBase) >> kSegmentSlotBits);
  return kSuccess;
}
Status cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *free_bytes = capacity_bytes - used_bytes;
  *total_bytes = capacity_bytes;
  return kSuccess;
}

// Memory of the driver: ranges of addresses, and what is mapped into them.

Status cuMemGetAllocationGranularity(size_t* bytes, void*, int) {
  *bytes = kPageBytes;
  return kSuccess;
}
Status cuMemAddressReserve(uint64_t* address, size_t bytes, size_t, uint64_t, uint64_t) {
  *address = kRangeBase + (take_slot(range_slots, kRangeSlots) << kRangeSlotBits);
  note_reservation("reserve_range", *address, bytes);
  return kSuccess;
}
Status cuMemAddressFree(uint64_t address, size_t) {
  range_slots.erase((address - kRangeBase) >> kRangeSlotBits);
  return kSuccess;
}
Status cuMemCreate(uint64_t* handle, size_t bytes, void*, unsigned long long) {
  if (!take_memory(bytes)) return kOutOfMemory;
  *handle = next_handle++;
  handles[*handle] = bytes;
  return kSuccess;
}
Status cuMemRelease(uint64_t handle) {
  give_back_memory(handles, handle);
  return kSuccess;
}

// Events: recorded at a moment, over when their stream has caught up with it.

Status cudaEventCreateWithFlags(void** event, unsigned) {
  *event = new Event;
  return kSuccess;
}
Status cudaEventDestroy(void* event) {
  delete static_cast<Event*>(event);
  return kSuccess;
}
Status cudaEventRecord(void* event, void* stream) {
  *static_cast<Event*>(event) = {reinterpret_cast<uint64_t>(stream), ++now};
  return kSuccess;
}
Status cudaEventQuery(void* event) {
  const auto* recorded = static_cast<Event*>(event);
  return caught_up[recorded->stream] >= recorded->moment ? kSuccess : kNotReady;
}
Status cudaEventSynchronize(void* event) {
  const auto* recorded = static_cast<Event*>(event);
  uint64_t& moment = caught_up[recorded->stream];
  if (moment < recorded->moment) moment = recorded->moment;
  return kSuccess;
}

// Captures. The arguments after the third are not asked for by the allocator.

Status cudaStreamIsCapturing(void* stream, int* status) {
  return tell_capture(stream, status, nullptr);
}
Status cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id) {
  return tell_capture(stream, status, id);
}
Status cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id) {
  return tell_capture(stream, status, id);
}

// The one device.

Status cudaGetDeviceCount(int* count) {
  *count = 1;
  return kSuccess;
}
Status cudaGetDevice(int* device) {
  *device = 0;
  return kSuccess;
}
Status cuDeviceGet(int* device, int) { return cudaGetDevice(device); }
Status cuDeviceGetAttribute(int* value, int, int) {
  *value = 0;
  return kSuccess;
}
Status cudaGetDeviceProperties(void* properties, int) { return fill_properties(properties); }
Status cudaGetDeviceProperties_v2(void* properties, int) { return fill_properties(properties); }
Status cudaDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
Status cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
const char* cudaGetErrorString(Status) { return "refused by the stand-in"; }
const char* cudaGetErrorName(Status) { return "refused by the stand-in"; }
Status cuGetErrorString(Status, const char** text) {
  *text = "refused by the stand-in";
  return kSuccess;
}
Status cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long, int* result) {
  return find_driver_function(name, function, result);
}
Status cudaGetDriverEntryPointByVersion(
    const char* name, void** function, unsigned, unsigned long long, int* result) {
  return find_driver_function(name, function, result);
}

// What is bound, but has nothing to do here.
#define SUCCEEDS(name) \
  Status name() { return kSuccess; }
SUCCEEDS(cuInit) SUCCEEDS(cuMemExportToShareableHandle) SUCCEEDS(cuMemGetAddressRange)
SUCCEEDS(cuMemGetAllocationPropertiesFromHandle) SUCCEEDS(cuMemImportFromShareableHandle)
SUCCEEDS(cuMemMap) SUCCEEDS(cuMemRetainAllocationHandle) SUCCEEDS(cuMemSetAccess)
SUCCEEDS(cuMemUnmap) SUCCEEDS(cuMemsetD32Async) SUCCEEDS(cuMulticastAddDevice)
SUCCEEDS(cuMulticastBindMem) SUCCEEDS(cuMulticastCreate) SUCCEEDS(cuMulticastUnbind)
SUCCEEDS(cuStreamWriteValue32)
SUCCEEDS(cudaDeviceCanAccessPeer) SUCCEEDS(cudaDeviceEnablePeerAccess)
SUCCEEDS(cudaDeviceGetDefaultMemPool) SUCCEEDS(cudaDeviceGetGraphMemAttribute)
SUCCEEDS(cudaDeviceGetStreamPriorityRange) SUCCEEDS(cudaDeviceSetGraphMemAttribute)
SUCCEEDS(cudaDeviceSynchronize) SUCCEEDS(cudaEventElapsedTime) SUCCEEDS(cudaFreeAsync)
SUCCEEDS(cudaGetLastError) SUCCEEDS(cudaGraphNodeGetDependencies) SUCCEEDS(cudaIpcCloseMemHandle)
SUCCEEDS(cudaIpcGetMemHandle) SUCCEEDS(cudaIpcOpenMemHandle) SUCCEEDS(cudaMallocAsync)
SUCCEEDS(cudaMemPoolGetAttribute) SUCCEEDS(cudaMemPoolSetAccess) SUCCEEDS(cudaMemPoolSetAttribute)
SUCCEEDS(cudaMemPoolTrimTo) SUCCEEDS(cudaMemcpy) SUCCEEDS(cudaMemcpyAsync)
SUCCEEDS(cudaMemcpyPeerAsync) SUCCEEDS(cudaPeekAtLastError) SUCCEEDS(cudaSetDevice)
SUCCEEDS(cudaStreamCreateWithPriority) SUCCEEDS(cudaStreamQuery) SUCCEEDS(cudaStreamSynchronize)
SUCCEEDS(cudaStreamWaitEvent) SUCCEEDS(cudaThreadExchangeStreamCaptureMode)

}  // extern "C"

namespace {

Status find_driver_function(const char* name, void** function, int* result) {
  void* found = dlsym(RTLD_DEFAULT, name);
  // One that is missing is never called by what is recorded, but it must be found.
  *function = found ? found : reinterpret_cast<void*>(&cuInit);
  if (result) *result = 0;
  return kSuccess;
}

}  // namespace
