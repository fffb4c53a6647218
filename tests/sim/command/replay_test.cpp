#include "sim/command/replay.h"

#include "sim/replay/recording_file.h"
#include "sim/text/printable.h"
#include "tests/sim/command/run_command.h"

namespace ballast::sim {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

class Replay : public RunCommandTest {
 protected:
  static RunOutcome replay_outcome(const Names& arguments) {
    return command({"replay", "", replay}, arguments);
  }

  /// Records the scenario and returns the recording's bytes.
  std::string record(const json& scenario) const {
    write("recorded.json", scenario.dump());
    std::filesystem::remove(root_ / "a.recording");
    run_command({path("recorded.json"), "--record", path("a.recording")});
    return read("a.recording");
  }

  /// The recording a.recording with one of its frames changed, as b.recording.
  void change(std::size_t frame, const std::function<void(Frame&)>& how) const {
    RecordingReader reader(path("a.recording"));
    std::filesystem::remove(root_ / "b.recording");
    RecordingWriter writer(path("b.recording"), reader.scenario());
    for (std::size_t i = 0; auto next = reader.next(); ++i) {
      if (i == frame) how(*next);
      writer.write({&*next, 1});
    }
    writer.commit();
  }

  void expect_refused(const std::string& bytes, const std::string& part) const {
    write("bad.recording", bytes);
    const RunOutcome outcome = replay_outcome({path("bad.recording")});
    EXPECT_EQ(outcome.code, ExitCode::bad_input) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }
};

TEST_F(Replay, RecordingChangesNothing) {
  const RunOutcome plain = run_command({path("tiny.json")});
  const RunOutcome recorded = run_command({path("tiny.json"), "--record", path("a.recording")});
  EXPECT_EQ(recorded.out, plain.out);
  EXPECT_EQ(recorded.code, plain.code);
}

TEST_F(Replay, ARecordedRunIsTheSameAgainOnAnyNumberOfThreads) {
  for (const json& scenario : {tiny(), tiny_variants()}) {
    const std::string bytes = record(scenario);
    for (const char* threads : {"1", "2", "3"}) {
      const RunOutcome outcome = replay_outcome({path("a.recording"), "--threads", threads});
      EXPECT_EQ(outcome.code, ExitCode::pass) << outcome.out << outcome.err;
      std::filesystem::remove(root_ / "c.recording");
      run_command({path("recorded.json"), "--threads", threads, "--record", path("c.recording")});
      EXPECT_EQ(read("c.recording"), bytes);
    }
  }
}

TEST_F(Replay, SaysWhichDigestItCameTo) {
  record(tiny());
  const json outcome = replay_outcome({path("a.recording"), "--json"}).json();
  EXPECT_EQ(outcome.at("verdict"), "same");
  EXPECT_EQ(outcome.at("digest"), run_command({path("tiny.json"), "--json"}).json().at("digest"));
}

TEST_F(Replay, NamesStepLayerTokenAndExpertOfTheFirstDifference) {
  record(tiny());
  // Frame 0 is the evaluation of the initial model, frame 2 the second step.
  change(2, [](Frame& frame) {
    const std::size_t layer = frame.layers.size() / 2;
    char& choice = frame.layers[layer + 32 + 4 + 6 * 4 + 5 * 2];
    choice = static_cast<char>((choice + 1) % 6);
  });
  const RunOutcome outcome = replay_outcome({path("b.recording"), "--json"});
  EXPECT_EQ(outcome.code, ExitCode::diverged);
  const json found = outcome.json();
  EXPECT_EQ(found.at("verdict"), "diverged");
  EXPECT_EQ(found.at("what"), "choice");
  EXPECT_EQ(found.at("step"), 2);
  EXPECT_EQ(found.at("layer"), 1);
  EXPECT_EQ(found.at("token"), 5);
  EXPECT_EQ(found.at("recorded_expert"), (found.at("expert").get<int>() + 1) % 6);
  EXPECT_EQ(found.at("place").at("position"), 5);
  const RunOutcome words = replay_outcome({path("b.recording")});
  EXPECT_EQ(words.code, ExitCode::diverged);
  EXPECT_EQ(words.out.rfind("tiny: the replay diverges at step 2, layer 1, token 5 (rank 0,", 0),
            0u)
      << words.out;
}

TEST_F(Replay, NamesTheVariantThatDiffers) {
  record(tiny_variants());
  // An evaluation and then each step of both variants, run by run.
  change(3, [](Frame& frame) { frame.digest[3] ^= 1; });
  const json found = replay_outcome({path("b.recording"), "--json"}).json();
  EXPECT_EQ(found.at("run"), "quantile");
  EXPECT_EQ(found.at("step"), 1);
  EXPECT_EQ(found.at("what"), "step");
}

TEST_F(Replay, AnotherSeedDivergesAtOnce) {
  const std::string bytes = record(tiny());
  const std::string seed = "\"seed\":1,";
  std::string other = bytes;
  other.replace(other.find(seed), seed.size(), "\"seed\":2,");
  write("b.recording", other);
  const RunOutcome outcome = replay_outcome({path("b.recording")});
  EXPECT_EQ(outcome.code, ExitCode::diverged);
  EXPECT_NE(outcome.out.find("the evaluation after step 0"), std::string::npos) << outcome.out;
}

TEST_F(Replay, RefusesAnotherVersionAndOtherNumericsAndSaysWhy) {
  const std::string bytes = record(tiny());
  const auto with = [&](const std::string& key, const std::string& value) {
    std::string other = bytes;
    const std::size_t at = other.find("\"" + key + "\":\"") + key.size() + 4;
    return other.replace(at, other.find('"', at) - at, value);
  };
  expect_refused(with("version", "9.9.9"), "it was made by ballast 9.9.9, and this is ballast");
  expect_refused(with("numerics", "ffff"), "it was made with other numerics (ffff)");
  std::string other = bytes;
  const std::string format = "\"ballast_recording\":2";
  expect_refused(other.replace(other.find(format), format.size(), "\"ballast_recording\":3"),
                 "it is of format 3");
}

TEST_F(Replay, TellsDamageFromDivergence) {
  const std::string bytes = record(tiny());
  const std::size_t frames = bytes.find('\n') + 1;
  for (const std::size_t at : {frames + 30, frames + 200, bytes.size() - 3}) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    expect_refused(damaged, "it is damaged");
  }
  for (std::size_t length = frames; length < bytes.size(); length += 511) {
    write("bad.recording", bytes.substr(0, length));
    EXPECT_EQ(replay_outcome({path("bad.recording")}).code, ExitCode::bad_input) << length;
  }
  expect_refused(bytes + bytes.substr(frames), "it goes on after the end of its runs");
}

TEST_F(Replay, RefusesWhatIsNoRecording) {
  expect_refused("", "the file is no recording");
  expect_refused(tiny().dump(), "the file is no recording");
  expect_refused(std::string(100, '\0'), "the file is no recording");
  EXPECT_EQ(replay_outcome({path("none")}).code, ExitCode::bad_input);
  EXPECT_EQ(replay_outcome({root_.string()}).code, ExitCode::bad_input);
  EXPECT_EQ(replay_outcome({}).code, ExitCode::usage);
}

TEST_F(Replay, ARecordingTakesNoNameThatIsTakenAndComesWholeOrNotAtAll) {
  for (const Names& arguments : {Names{path("tiny.json"), "--record", path("tiny.json")},
                                 Names{path("tiny.json"), "--record", path("no/where")},
                                 Names{path("tiny.json"), "--record", path("new"), "--dry-run"}}) {
    const RunOutcome outcome = run_command(arguments);
    EXPECT_EQ(outcome.code, ExitCode::usage) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_EQ(shell("cd '" + root_.string() +
                  "' && timeout -s KILL 0.3 \"$ballast\" run tiny.json "
                  "--set training.steps=1000000 --record new >/dev/null 2>&1"),
            137);
  EXPECT_EQ(entries(), (Names{"tiny.json"}));
}

TEST_F(Replay, HelpFitsTheScreen) {
  const RunOutcome help = replay_outcome({"--help"});
  EXPECT_EQ(help.code, ExitCode::pass);
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80u) << line;
}

}  // namespace
}  // namespace ballast::sim
