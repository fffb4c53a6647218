#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "props/subjects/subject.h"

namespace ballast::props {

/// A subject that nobody else uses at the same time, with the number it has for as long as it lives.
struct NumberedSubject {
  std::unique_ptr<Subject> subject;
  std::size_t number = 0;
};

/// Subjects of one kind for threads that need one each; they are made when they are first needed.
class SubjectPool {
 public:
  using Factory = std::function<std::unique_ptr<Subject>()>;

  /// A subject on loan; it goes back at the end of its life. The pool outlives it.
  class Loan {
   public:
    explicit Loan(SubjectPool& pool) : pool_(pool), held_(pool.take()) {}
    ~Loan() { pool_.give_back(std::move(held_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    Subject& subject() const { return *held_.subject; }
    std::size_t number() const { return held_.number; }

   private:
    SubjectPool& pool_;
    NumberedSubject held_;
  };

  explicit SubjectPool(Factory factory) : factory_(std::move(factory)) {}

  /// How many subjects it has made so far, numbered from 0.
  std::size_t made();

 private:
  NumberedSubject take();
  void give_back(NumberedSubject subject);

  Factory factory_;
  std::mutex mutex_;
  std::vector<NumberedSubject> free_;
  std::size_t made_ = 0;
};

}  // namespace ballast::props
