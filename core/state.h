#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace ballast {

/// What a model, its balancers and its optimizer have to remember, by dotted name: a `state_dict`.
/// Values are kept as they are, so saving and loading is the identity on every bit.
///
/// Errors: `get` throws std::out_of_range for a name that is missing, and std::invalid_argument when the
/// entry has another type; `from_bytes` throws std::invalid_argument for anything `to_bytes` did not write.
class StateDict {
 public:
  using Values = std::variant<std::vector<float>, std::vector<double>, std::vector<std::int64_t>,
                              std::vector<std::uint8_t>>;

  template <class T>
  void put(const std::string& name, std::span<const T> values) {
    entries_[name] = std::vector<T>(values.begin(), values.end());
  }
  template <class T>
  void put(const std::string& name, const std::vector<T>& values) {
    entries_[name] = values;
  }
  template <class T>
  void put_scalar(const std::string& name, T value) {
    entries_[name] = std::vector<T>{value};
  }

  bool contains(const std::string& name) const { return entries_.contains(name); }
  const std::map<std::string, Values>& entries() const& { return entries_; }
  void entries() && = delete;  // what it returns would not outlive the dictionary

  template <class T>
  const std::vector<T>& get(const std::string& name) const {
    const auto* values = std::get_if<std::vector<T>>(&find(name));
    if (values == nullptr) throw_wrong_type(name);
    return *values;
  }
  /// The entry, which must hold exactly `count` values.
  template <class T>
  const std::vector<T>& get(const std::string& name, std::size_t count) const {
    const auto& values = get<T>(name);
    if (values.size() != count) throw_wrong_size(name, values.size(), count);
    return values;
  }
  template <class T>
  T get_scalar(const std::string& name) const {
    return get<T>(name, 1)[0];
  }

  /// Little-endian, self-delimiting, versioned; equal dictionaries give equal bytes.
  std::vector<std::uint8_t> to_bytes() const;
  static StateDict from_bytes(std::span<const std::uint8_t> bytes);

  /// Equal to the bit: NaNs with equal bits are equal, zeros of different sign are not.
  friend bool operator==(const StateDict& a, const StateDict& b) { return a.to_bytes() == b.to_bytes(); }

 private:
  const Values& find(const std::string& name) const;
  [[noreturn]] static void throw_wrong_type(const std::string& name);
  [[noreturn]] static void throw_wrong_size(const std::string& name, std::size_t is, std::size_t should);

  std::map<std::string, Values> entries_;
};

}  // namespace ballast
