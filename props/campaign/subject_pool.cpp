#include "props/campaign/subject_pool.h"

#include <utility>

namespace ballast::props {

NumberedSubject SubjectPool::take() {
  std::size_t number = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (!free_.empty()) {
      NumberedSubject last = std::move(free_.back());
      free_.pop_back();
      return last;
    }
    number = made_++;
  }
  return {.subject = factory_(), .number = number};
}

std::size_t SubjectPool::made() {
  const std::scoped_lock lock(mutex_);
  return made_;
}

void SubjectPool::give_back(NumberedSubject subject) {
  const std::scoped_lock lock(mutex_);
  free_.push_back(std::move(subject));
}

}  // namespace ballast::props
