#include "props/subjects/process_subject.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

namespace ballast::props {
namespace {

using namespace std::chrono_literals;

/// A shell script that greets, opens, and then does `deed` for the next request (id 3).
std::string script(const std::string& deed) {
  return "read l; echo '{\"id\":1,\"ok\":true,\"name\":\"sh\",\"supports\":[\"route\"]}';"
         "read l; echo '{\"id\":2,\"ok\":true}'; read l; " +
         deed;
}

ProcessSettings settings(const std::string& deed) {
  return {.command = script(deed), .answer_time = 5s, .line_bytes_max = 4096};
}

const std::string good_answer = R"(echo '{"id":3,"ok":true,"indices":[[0]],"weights":[[1]]}')";

/// How the subject fails at its first forward.
SubjectFailure failure_at_forward(const ProcessSettings& given) {
  ProcessSubject subject(given);
  EXPECT_TRUE(std::holds_alternative<Done>(subject.open({})));
  try {
    subject.ask(Forward{.logits = Matrix<float>(1, 4), .mask = {}});
  } catch (const SubjectFailure& failure) {
    return failure;
  }
  return SubjectFailure("none");
}

std::string line_at_forward(const std::string& deed) {
  return failure_at_forward(settings(deed)).what();
}

void expect_no_children() {
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

class ProcessSubjectTest : public testing::Test {
 protected:
  void TearDown() override { expect_no_children(); }
};

TEST_F(ProcessSubjectTest, AnswersOfTheCommandAreTheSubjects) {
  ProcessSubject subject(settings(good_answer));
  EXPECT_EQ(subject.hello().name, "sh");
  subject.open({});
  const Answer answer = subject.ask(Forward{.logits = Matrix<float>(1, 4), .mask = {}});
  EXPECT_EQ(std::get<Routed>(answer).indices[0][0], 0);
}

TEST_F(ProcessSubjectTest, ASubjectThatDoesNotAnswerInTimeIsEnded) {
  for (const char* deed : {"sleep 30", "trap '' TERM; sleep 30; sleep 30", "sleep 30 & wait", "printf half; sleep 30"}) {
    auto given = settings(deed);
    given.answer_time = 200ms;
    const auto begin = std::chrono::steady_clock::now();
    const SubjectFailure failure = failure_at_forward(given);
    EXPECT_STREQ(failure.what(),
                 "the subject gave no answer within 0.2 s, asked for request 0 (forward, train, layer 0)");
    EXPECT_TRUE(failure.timed_out);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  }
}

TEST_F(ProcessSubjectTest, ASubjectThatEndsSaysHow) {
  EXPECT_EQ(line_at_forward("exit 3"),
            "the subject exited with status 3, asked for request 0 (forward, train, layer 0)");
  EXPECT_NE(line_at_forward("kill -SEGV $$").find("was ended by signal 11"), std::string::npos);
  EXPECT_NE(line_at_forward("printf '{\"id\":3'").find("exited with status 0 in the middle of a line"),
            std::string::npos);
  EXPECT_NE(line_at_forward("exec >&-; sleep 30").find("closed its stdout"), std::string::npos);
}

TEST_F(ProcessSubjectTest, WhatIsNoValidAnswerIsNamed) {
  EXPECT_EQ(line_at_forward("echo hello"),
            "the subject gave no valid answer to request 0 (forward, train, layer 0): it is no JSON: hello");
  EXPECT_NE(line_at_forward("echo").find("it is no JSON"), std::string::npos);
  EXPECT_NE(line_at_forward(R"(echo '{"id":3,"ok":true,"indices":[[0]],"weights":[[NaN]]}')").find("it is no JSON"),
            std::string::npos);
  EXPECT_NE(line_at_forward(R"(printf '\377\000\n')").find("it is no JSON"), std::string::npos);
  EXPECT_NE(line_at_forward(R"(echo '{"id":4,"ok":true}')").find("/id: is 4, should be 3"), std::string::npos);
  EXPECT_NE(line_at_forward(R"(echo '{"id":3,"ok":true,"indices":7}')").find("/indices: is 7, should be an array"),
            std::string::npos);
}

TEST_F(ProcessSubjectTest, LinesThatAreTooLongOrTooManyBreakTheDiscipline) {
  EXPECT_NE(line_at_forward("head -c 100000 /dev/zero | tr '\\0' x; sleep 30").find("a line longer than 4096 bytes"),
            std::string::npos);
  EXPECT_NE(line_at_forward("yes").find("wrote more than the one line"), std::string::npos);
  EXPECT_NE(line_at_forward("printf '{}\\n{}\\n'; sleep 30").find("wrote more than the one line"), std::string::npos);
}

std::string bytes_on_stderr(std::size_t count) {
  return "head -c " + std::to_string(count) + " /dev/zero | tr '\\0' x >&2; ";
}

TEST_F(ProcessSubjectTest, MuchOnStderrBlocksNothingAndItsEndIsKept) {
  const std::string much = bytes_on_stderr(ChildProcess::flood_bytes - 100) + "echo the end >&2; ";
  ProcessSubject subject(settings(much + good_answer + "; read l"));
  subject.open({});
  EXPECT_TRUE(std::holds_alternative<Routed>(subject.ask(Forward{.logits = Matrix<float>(1, 4), .mask = {}})));
  const std::string tail = subject.last_lines();
  EXPECT_LE(tail.size(), ChildProcess::stderr_bytes_max);
  EXPECT_TRUE(tail.ends_with("xthe end\n")) << tail.substr(tail.size() - 20);
}

TEST_F(ProcessSubjectTest, AFloodOnStderrIsAFailureWhetherItEndsOrNot) {
  const std::string ends = bytes_on_stderr(3'000'000) + good_answer;
  for (const std::string& flood : {ends, std::string("yes flood >&2")}) {
    const SubjectFailure failure = failure_at_forward(settings(flood));
    EXPECT_STREQ(failure.what(), "the subject flooded stderr, with more than 256 KiB for one answer, "
                                 "asked for request 0 (forward, train, layer 0)");
    EXPECT_FALSE(failure.timed_out);
    EXPECT_GT(failure.stderr_tail.size(), 1000u);
  }
}

TEST_F(ProcessSubjectTest, TheLastLinesOnStderrComeWithTheFailure) {
  const SubjectFailure failure = failure_at_forward(settings("echo Traceback >&2; exit 1"));
  EXPECT_EQ(failure.stderr_tail, "Traceback\n");
}

TEST_F(ProcessSubjectTest, ASubjectThatReadsNothingRaisesNoSignal) {
  const std::string deaf =
      "read l; echo '{\"id\":1,\"ok\":true,\"name\":\"sh\",\"supports\":[]}'; exec <&-; exit 4";
  ProcessSubject subject({.command = deaf, .answer_time = 5s});
  subject.hello();
  Open big;
  big.biases = Biases(400, std::vector<float>(400, 0.125f));  // more than a pipe holds
  try {
    subject.open(big);
    FAIL();
  } catch (const SubjectFailure& failure) {
    EXPECT_STREQ(failure.what(), "the subject exited with status 4, asked for open");
  }
}

TEST_F(ProcessSubjectTest, ACommandThatDoesNotExistFailsAtHello) {
  ProcessSubject subject({.command = "/nonexistent/router", .answer_time = 5s});
  try {
    subject.hello();
    FAIL();
  } catch (const SubjectFailure& failure) {
    EXPECT_STREQ(failure.what(), "the subject exited with status 127, asked for hello");
    EXPECT_NE(failure.stderr_tail.find("/nonexistent/router"), std::string::npos);
  }
}

TEST_F(ProcessSubjectTest, AfterAFailureTheNextOpenStartsItAnew) {
  // Ids go on, so the script takes them from the requests.
  const std::string echoing =
      "while read l; do id=${l#*:}; id=${id%%,*}; case $l in "
      "*hello*) echo \"{\\\"id\\\":$id,\\\"ok\\\":true,\\\"name\\\":\\\"sh\\\",\\\"supports\\\":[]}\";; "
      "*open*) echo \"{\\\"id\\\":$id,\\\"ok\\\":true}\";; *) exit 9;; esac; done";
  ProcessSubject subject({.command = echoing, .answer_time = 5s});
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(std::holds_alternative<Done>(subject.open({})));
    EXPECT_THROW(subject.ask(Step{}), SubjectFailure);
    EXPECT_THROW(subject.ask(Step{}), SubjectFailure) << "nothing is open any more";
  }
}

TEST_F(ProcessSubjectTest, StatesComeBackAsTheyWere) {
  const std::string deed =
      R"(echo '{"id":3,"ok":true,"state":{"n": 123456789012345678901234567890}}'; read l; echo "$l" >&2; )"
      R"(echo '{"id":4,"ok":true}'; read l)";
  ProcessSubject subject(settings(deed));
  subject.open({});
  EXPECT_TRUE(std::holds_alternative<Done>(subject.ask(Save{})));
  EXPECT_TRUE(std::holds_alternative<Refusal>(subject.ask(Load{.slot = 1}))) << "there is no second save";
  EXPECT_TRUE(std::holds_alternative<Done>(subject.ask(Load{.slot = 0})));
  EXPECT_EQ(subject.last_lines(), R"({"id":4,"op":"load","state":{"n": 123456789012345678901234567890}})" "\n");
}

/// Whether a process runs, rather than being gone or not yet waited for by its new parent.
bool runs(const std::string& pid) {
  std::ifstream stat("/proc/" + pid + "/stat");
  std::string number, name, state = "gone";
  stat >> number >> name >> state;
  return state != "gone" && state != "Z" && state != "X";
}

TEST_F(ProcessSubjectTest, WhatTheCommandStartedEndsWithIt) {
  const SubjectFailure failure = failure_at_forward(settings("sleep 60 & echo $! >&2; exit 1"));
  EXPECT_STREQ(failure.what(),
               "the subject exited with status 1, asked for request 0 (forward, train, layer 0)");
  const std::string pid = std::to_string(std::stoi(failure.stderr_tail));
  for (int wait = 0; wait < 500 && runs(pid); ++wait) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(runs(pid));
}

TEST_F(ProcessSubjectTest, ASignalThatEndsUsEndsTheChildrenFirst) {
  const std::string note = testing::TempDir() + "/ballast_child_" + std::to_string(getpid());
  const pid_t us = fork();
  if (us == 0) {
    signal(SIGINT, SIG_DFL);  // whoever started the tests may have it ignored
    end_children_on_signals();
    // It ignores what a child may ignore, and that its stdin closes.
    const ChildProcess stubborn("trap '' INT TERM HUP; echo $$ > '" + note + "'; while :; do sleep 1; done", 4096);
    while (true) pause();
  }
  std::string pid;
  for (int wait = 0; wait < 1000 && pid.empty(); ++wait) {
    std::this_thread::sleep_for(10ms);
    std::getline(std::ifstream(note) >> std::ws, pid);
  }
  ASSERT_TRUE(runs(pid)) << pid;
  kill(us, SIGINT);
  int status = 0;
  waitpid(us, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  for (int wait = 0; wait < 500 && runs(pid); ++wait) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(runs(pid));
  std::remove(note.c_str());
}

}  // namespace
}  // namespace ballast::props
