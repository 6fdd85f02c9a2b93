// Makes calls to the CUDA caching allocator of the release that it is built against.
//
//   calls CAPACITY_BYTES SEED < PROGRAM
//
// A program has a call a line. For each, a line of JSON tells what came of it: the call, what the
// allocator did, its answer, and what a look at it shows. benchmarks/README.md lists the calls.
// RELEASE is major * 100 + minor, since the interface differs between releases.

#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#if RELEASE >= 213
#include <c10/cuda/PeerToPeerAccess.h>
#endif

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*)(c10::DeviceIndex));
}

extern "C" {
using Note = void (*)(const char*, uint64_t, uint64_t);
void stand_in_begin(uint64_t capacity, uint64_t seed, Note note);
void stand_in_catch_up(uint64_t stream);
void stand_in_capture(uint64_t stream, bool on);
}

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
#if RELEASE >= 211
using c10::CachingDeviceAllocator::TraceEntry;
#else
using allocator::TraceEntry;
#endif
using PoolId = std::pair<unsigned long long, unsigned long long>;

// Writes a list of JSON, an item at a time.
class List {
 public:
  List(char open, char close) : text_(1, open), close_(close) {}
  List& add(const std::string& item) {
    if (text_.size() > 1) text_ += ',';
    text_ += item;
    return *this;
  }
  List& add(uint64_t item) { return add(std::to_string(item)); }
  std::string text() const { return text_ + close_; }

 private:
  std::string text_;
  char close_;
};

List array() { return {'[', ']'}; }

std::string quoted(const std::string& text) { return '"' + text + '"'; }

std::string text_of(const PoolId& id) { return array().add(id.first).add(id.second).text(); }

uint64_t number_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

cudaStream_t stream_of(uint64_t number) { return reinterpret_cast<cudaStream_t>(number); }

List done = array();  // what the allocator did since the call began
std::map<long, void*> pointers;

const char* name_of(const TraceEntry& entry) {
  switch (static_cast<int>(entry.action_)) {
    case TraceEntry::ALLOC: return "alloc";
    case TraceEntry::FREE_REQUESTED: return "free_requested";
    case TraceEntry::FREE_COMPLETED: return "free_completed";
    case TraceEntry::SEGMENT_ALLOC: return "segment_alloc";
    case TraceEntry::SEGMENT_FREE: return "segment_free";
    case TraceEntry::SEGMENT_MAP: return "segment_map";
    case TraceEntry::SEGMENT_UNMAP: return "segment_unmap";
    case TraceEntry::OOM: return "oom";
    default: return nullptr;  // a snapshot: it does nothing
  }
}

void note_entry(const TraceEntry& entry) {
  const char* name = name_of(entry);
  if (!name) return;
#if RELEASE >= 208
  const PoolId pool = entry.mempool_;
#else
  const PoolId pool{0, 0};  // not told
#endif
  List event = array();
  event.add(quoted(name)).add(entry.addr_).add(entry.size_).add(number_of(entry.stream_));
  done.add(event.add(text_of(pool)).text());
}

void note_reservation(const char* name, uint64_t address, uint64_t bytes) {
  done.add(array().add(quoted(name)).add(address).add(bytes).text());
}

// Looks.

class Counters {
 public:
  void number(const std::string& name, int64_t value) {
    list_.add(quoted(name) + ':' + std::to_string(value));
  }
  template <class Gauge>
  void gauge(const std::string& name, const Gauge& gauge) {
    List values = array();
    // Signed: what became oversize by a setting lowers a count that it never raised.
    for (const int64_t value : {gauge.current, gauge.peak, gauge.allocated, gauge.freed})
      values.add(std::to_string(value));
    list_.add(quoted(name) + ':' + values.text());
  }
  template <class Gauges>
  void by_pool_size(const std::string& name, const Gauges& gauges) {
    gauge(name + ".all", gauges[0]);
    gauge(name + ".small_pool", gauges[1]);
    gauge(name + ".large_pool", gauges[2]);
  }
  std::string text() const { return list_.text(); }

 private:
  List list_{'{', '}'};
};

std::string counters() {
  const auto stats = allocator::getDeviceStats(0);
  Counters found;
#define BY_POOL_SIZE(name) found.by_pool_size(#name, stats.name)
  BY_POOL_SIZE(allocation);
  BY_POOL_SIZE(segment);
  BY_POOL_SIZE(active);
  BY_POOL_SIZE(inactive_split);
  BY_POOL_SIZE(allocated_bytes);
  BY_POOL_SIZE(reserved_bytes);
  BY_POOL_SIZE(active_bytes);
  BY_POOL_SIZE(inactive_split_bytes);
  BY_POOL_SIZE(requested_bytes);
  found.gauge("oversize_allocations", stats.oversize_allocations);
  found.gauge("oversize_segments", stats.oversize_segments);
#define NUMBER(name) found.number(#name, stats.name)
  NUMBER(num_alloc_retries);
  NUMBER(num_ooms);
  NUMBER(num_sync_all_streams);
  NUMBER(num_device_alloc);
  NUMBER(num_device_free);
  NUMBER(max_split_size);
#if RELEASE >= 212
  NUMBER(num_oom_rejections);
#endif
#if RELEASE >= 213
  for (const auto& [id, gauges] : stats.reserved_bytes_by_private_pools)
    found.by_pool_size("reserved_bytes_by_private_pools." + std::to_string(id.first) + '_' +
                           std::to_string(id.second),
                       gauges);
#endif
  return found.text();
}

std::string segments() {
  List all = array();
  for (const auto& segment : allocator::snapshot().segments) {
    List blocks = array();
    for (const auto& block : segment.blocks)
      blocks.add(array()
                     .add(block.size)
                     .add(block.requested_size)
                     .add(uint64_t{block.allocated})
                     .add(uint64_t{block.active})
                     .text());
    List one = array();
    one.add(segment.address).add(number_of(segment.stream));
    one.add(quoted(segment.is_large ? "large" : "small"));
    one.add(segment.is_expandable ? "true" : "false");
    one.add(text_of(segment.owner_private_pool_id)).add(blocks.text());
    all.add(one.text());
  }
  return all.text();
}

// Calls.

template <class Value>
Value next(std::istream& words) {
  Value value{};
  words >> value;
  return value;
}

PoolId next_pool(std::istream& words) {
  const auto first = next<unsigned long long>(words);
  return {first, next<unsigned long long>(words)};
}

std::string allocate(std::istream& words) {
  const auto name = next<long>(words);
  const auto bytes = next<size_t>(words);
  void* pointer = allocator::raw_alloc_with_stream(bytes, stream_of(next<uint64_t>(words)));
  pointers[name] = pointer;
  return std::to_string(number_of(pointer));
}

void free_block(std::istream& words) {
  const auto found = pointers.find(next<long>(words));
  if (found == pointers.end()) return;  // it was never handed out
  allocator::raw_delete(found->second);
  pointers.erase(found);
}

void record_stream(std::istream& words) {
  const auto found = pointers.find(next<long>(words));
  if (found == pointers.end()) return;
  void* pointer = found->second;
  c10::DataPtr owner(pointer, pointer, allocator::get()->raw_deleter(), {c10::DeviceType::CUDA, 0});
  const auto stream = stream_of(next<uint64_t>(words));
  allocator::recordStream(owner, c10::cuda::getStreamFromExternal(stream, 0));
  owner.release_context();  // not freed by leaving
}

void empty_cache([[maybe_unused]] const PoolId& pool) {
#if RELEASE >= 208
  allocator::emptyCache(pool);
#else
  allocator::emptyCache();
#endif
}

void create_pool(std::istream& words) {
  const PoolId pool = next_pool(words);
  [[maybe_unused]] const bool use_on_oom = next<bool>(words), no_split = next<bool>(words);
#if RELEASE >= 208
  allocator::createOrIncrefPool(0, pool);
#elif RELEASE >= 206
  allocator::ensureExistsAndIncrefPool(0, pool);
#endif
#if RELEASE >= 211
  if (use_on_oom) allocator::setUseOnOOM(0, pool, true);
#elif RELEASE >= 208
  if (use_on_oom) allocator::setUseOnOOM(0, pool);
#endif
#if RELEASE >= 210
  if (no_split) allocator::setNoSplit(0, pool);
#endif
}

void begin_scope(std::istream& words) {
  const PoolId pool = next_pool(words);
  std::vector<cudaStream_t> streams;
  for (uint64_t stream = 0; words >> stream;) streams.push_back(stream_of(stream));
  allocator::get()->beginAllocateToPool(0, pool, [streams](cudaStream_t stream) {
    for (const auto given : streams)
      if (given == stream) return true;
    return streams.empty();
  });
}

void mark_capture([[maybe_unused]] bool on) {
#if RELEASE >= 213
  if (on) allocator::get()->markCaptureBegin(0);
  else allocator::get()->markCaptureEnd(0);
#endif
}

void switch_capture(std::istream& words) {
  const auto stream = next<uint64_t>(words);
  stand_in_capture(stream, next<bool>(words));
}

using Effect = std::function<void(std::istream&)>;
const std::map<std::string, Effect> effects = {
    {"f", free_block},
    {"r", record_stream},
    {"sync", [](std::istream& words) { stand_in_catch_up(next<uint64_t>(words)); }},
    {"e", [](std::istream& words) { empty_cache(next_pool(words)); }},
    {"create", create_pool},
    {"begin", begin_scope},
    {"end", [](std::istream& words) { allocator::get()->endAllocateToPool(0, next_pool(words)); }},
    {"release", [](std::istream& words) { allocator::releasePool(0, next_pool(words)); }},
    {"capture", switch_capture},
    {"mark", [](std::istream& words) { mark_capture(next<bool>(words)); }},
    {"set", [](std::istream& words) { allocator::setAllocatorSettings(next<std::string>(words)); }},
    {"frac", [](std::istream& words) { allocator::setMemoryFraction(next<double>(words), 0); }},
    {"peaks", [](std::istream&) { allocator::resetPeakStats(0); }},
    {"accum", [](std::istream&) { allocator::resetAccumulatedStats(0); }},
};

const std::map<std::string, std::string (*)()> looks = {{"stats", counters}, {"snap", segments}};

std::string answer_to(const std::string& call) {
  std::istringstream words(call);
  const auto name = next<std::string>(words);
  try {
    if (name == "m") return allocate(words);
    if (looks.count(name)) return quoted("ok") + ',' + looks.at(name)();
    effects.at(name)(words);
    return quoted("ok");
  } catch (const c10::OutOfMemoryError&) {
    return quoted("oom");
  } catch (const std::exception& error) {
    std::cerr << call << ": " << error.what() << '\n';
    return quoted("refused");
  }
}

void begin_device(uint64_t capacity_bytes, uint64_t seed) {
  // Handles that other processes could open need a driver that the stand-in is none of.
  setenv("TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC", "0", 1);
  stand_in_begin(capacity_bytes, seed, note_reservation);
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
  allocator::init(1);
#if RELEASE >= 213
  c10::cuda::detail::init_p2p_access_cache(1);
#endif
  allocator::attachAllocatorTraceTracker(note_entry);
}

}  // namespace

int main(int, char** arguments) {
  begin_device(std::strtoull(arguments[1], nullptr, 10), std::strtoull(arguments[2], nullptr, 10));
  for (std::string call; std::getline(std::cin, call);) {
    done = array();
    const std::string answer = answer_to(call);
    std::cout << '[' << quoted(call) << ',' << done.text() << ',' << answer << "]\n";
  }
  std::cout.flush();
  // Tearing down would free what the program left behind, on a device that is gone by then.
  _exit(0);
}
