#include "props/cases/case.h"

#include <gtest/gtest.h>

namespace ballast::props {
namespace {

class RefusingSubject final : public Subject {
 public:
  const Hello& hello() override { return hello_; }
  Answer open(const Open&) override { return Refusal{"unsupported", "nothing"}; }
  Answer ask(const Request&) override {
    ++asked;
    return Done{};
  }
  int asked = 0;

 private:
  Hello hello_;
};

TEST(Case, AsksNothingOfASubjectThatRefusesToOpen) {
  RefusingSubject subject;
  const Trace trace = run(subject, {.open = {}, .history = {Step{}, Step{}}});
  EXPECT_TRUE(std::holds_alternative<Refusal>(trace.opened));
  EXPECT_TRUE(trace.answers.empty());
  EXPECT_EQ(subject.asked, 0);
}

}  // namespace
}  // namespace ballast::props
