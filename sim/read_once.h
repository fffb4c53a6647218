#pragma once

#include <map>
#include <mutex>

namespace ballast::sim {

/// What files hold, read once for each key, for runs side by side that need the same. Safe on
/// several threads at once; references stay valid.
template <class Key, class Value>
class ReadOnce {
 public:
  /// The value of the key, by `read` if it is asked for the first time; what that throws leaves
  /// nothing behind.
  template <class Read>
  const Value& get(const Key& key, Read read) {
    const std::scoped_lock lock(mutex_);
    const auto found = values_.find(key);
    return found != values_.end() ? found->second : values_.emplace(key, read()).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<Key, Value> values_;
};

}  // namespace ballast::sim
