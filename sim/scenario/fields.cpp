#include "sim/scenario/fields.h"

#include "sim/scenario/balancer_fields.h"
#include "sim/scenario/scenario_field.h"
#include "sim/scenario/score_fields.h"

namespace ballast::sim {
namespace {

constexpr const char* source = "tokens.source";

using Fields = std::vector<Field<Scenario>>;

Fields general_fields() {
  return {
      field(
          "name", [](auto& s) -> auto& { return s.name; }, TextType{TextForm::not_empty},
          "What the scenario is called."),
      field(
          "description", [](auto& s) -> auto& { return s.description; }, TextType{},
          "What it shows, and where it comes from."),
      field(
          "seed", [](auto& s) -> auto& { return s.seed; }, IntegerType{},
          "Every random number of the run comes from it."),
      field(
          "mode", [](auto& s) -> auto& { return s.mode; },
          "Whether a model is trained, or routers alone are shown drawn scores (`scores`)."),
  };
}

Fields model_fields() {
  return {
      field(
          "model.layers", [](auto& s) -> auto& { return s.model.layers; },
          IntegerType{.at_least = 1, .at_most = 100'000}, "Blocks of x + MoE(RMSNorm(x))."),
      field(
          "model.hidden", [](auto& s) -> auto& { return s.model.moe.router.hidden; },
          range::positive_count, "Width of a token, which the router reads in full.")
          .when("mode", {"train"}),
      field(
          "model.latent", [](auto& s) -> auto& { return s.model.moe.latent; },
          range::positive_count, "Width inside which the routed experts work.")
          .when("mode", {"train"}),
      field(
          "model.routed_experts",
          [](auto& s) -> auto& { return s.model.moe.router.routed_experts; }, range::positive_count,
          "Routed experts of a layer, E."),
      field(
          "model.top_k", [](auto& s) -> auto& { return s.model.moe.router.top_k; },
          range::positive_count, "Routed experts of a token, k; at most `model.routed_experts`."),
      field(
          "model.expert_inner", [](auto& s) -> auto& { return s.model.moe.expert_inner; },
          range::positive_count, "Inner width of a routed expert.")
          .when("mode", {"train"}),
      field(
          "model.shared_experts", [](auto& s) -> auto& { return s.model.moe.shared_experts; },
          range::count, "Experts that every token passes through; they are never counted.")
          .when("mode", {"train"}),
      field(
          "model.shared_inner", [](auto& s) -> auto& { return s.model.moe.shared_inner; },
          range::positive_count, "Inner width of a shared expert.")
          .when("mode", {"train"}),
      field(
          "model.score", [](auto& s) -> auto& { return s.model.moe.router.score; },
          "How router logits become scores."),
      field(
          "model.renormalize", [](auto& s) -> auto& { return s.model.moe.router.renormalize; },
          BooleanType{}, "Whether the weights of the chosen experts are divided by their sum."),
      field(
          "model.routed_scale", [](auto& s) -> auto& { return s.model.moe.router.routed_scale; },
          range::positive, "Factor on all weights, applied last."),
      field(
          "model.groups.count", [](auto& s) -> auto& { return s.model.moe.router.groups.count; },
          range::positive_count,
          "Groups of routed experts; with more than one, a token's experts are of the best."),
      field(
          "model.groups.chosen", [](auto& s) -> auto& { return s.model.moe.router.groups.chosen; },
          range::positive_count,
          "Groups that a token chooses its experts from; at most `model.groups.count`."),
      field(
          "model.groups.score", [](auto& s) -> auto& { return s.model.moe.router.groups.score; },
          "A group's score: the sum of its 2 best biased scores, or of its top_k / chosen best."),
      field(
          "model.activation", [](auto& s) -> auto& { return s.model.moe.activation; },
          "The gate of the experts' gated linear unit.")
          .when("mode", {"train"}),
      field(
          "model.aggregate_norm", [](auto& s) -> auto& { return s.model.moe.aggregate_norm; },
          BooleanType{}, "Whether the weighted sum of expert outputs is normalised (RMSNorm).")
          .when("mode", {"train"}),
      field(
          "model.norm_eps", [](auto& s) -> auto& { return s.model.moe.norm_eps; }, range::positive,
          "Added to the mean square in every RMSNorm.")
          .when("mode", {"train"}),
      field(
          "model.embedding_offset", [](auto& s) -> auto& { return s.model.embedding_offset; },
          range::moderate,
          "Added to every coordinate of the embedding: a common component of all tokens.")
          .when("mode", {"train"}),
  };
}

Fields token_fields() {
  return {
      field(
          source, [](auto& s) -> auto& { return s.tokens.source; }, "Where tokens come from."),
      field(
          "tokens.sequence_length", [](auto& s) -> auto& { return s.tokens.sequence_length; },
          range::positive_count, "Positions of a sequence."),
      field(
          "tokens.padding", [](auto& s) -> auto& { return s.tokens.padding; },
          NumberType{.at_least = 0.0, .at_most = 0.9}, "Expected share of padded positions."),
      field(
          "tokens.vocabulary", [](auto& s) -> auto& { return s.tokens.vocabulary; },
          range::positive_count, "Different tokens there are.")
          .when(source, {"mixture", "constant"}),
      field(
          "tokens.frequency", [](auto& s) -> auto& { return s.tokens.frequency; },
          "Law of the token frequencies inside a topic.")
          .when(source, {"mixture"}),
      field(
          "tokens.sigma", [](auto& s) -> auto& { return s.tokens.sigma; },
          NumberType{.at_least = 0.0, .at_most = 20.0}, "Standard deviation of ln(frequency).")
          .when("tokens.frequency", {"log_normal"}),
      field(
          "tokens.exponent", [](auto& s) -> auto& { return s.tokens.exponent; },
          NumberType{.at_least = 0.0, .at_most = 20.0}, "Exponent of Zipf's law.")
          .when("tokens.frequency", {"zipf"}),
      field(
          "tokens.topics", [](auto& s) -> auto& { return s.tokens.topics; }, range::positive_count,
          "Topics; each ranks the vocabulary in an order of its own.")
          .when(source, {"mixture"}),
      field(
          "tokens.topic_persistence", [](auto& s) -> auto& { return s.tokens.topic_persistence; },
          range::probability, "Probability that the next token stays in the topic.")
          .when(source, {"mixture"}),
      field(
          "tokens.file", [](auto& s) -> auto& { return s.tokens.file; }, TextType{TextForm::file},
          "File whose bytes (`text`), or whose token ids (`recorded`), are the tokens; the last "
          "tenth is kept for evaluation.")
          .when(source, {"text", "recorded"}),
      field(
          "tokens.token", [](auto& s) -> auto& { return s.tokens.token; }, range::count,
          "The token at every position; below `tokens.vocabulary`.")
          .when(source, {"constant"}),
      field(
          "tokens.shift", [](auto& s) -> auto& { return s.tokens.shift; }, range::probability,
          "Domain shift: share of sequences that come from as many topics of another set.")
          .when(source, {"mixture"}),
      field(
          "tokens.rank_skew", [](auto& s) -> auto& { return s.tokens.rank_skew; },
          range::probability, "Share of sequences that keep to one topic, which goes by the rank.")
          .when(source, {"mixture"}),
      field(
          "tokens.burst_share", [](auto& s) -> auto& { return s.tokens.burst_share; },
          range::probability,
          "Share of blocks of `tokens.burst_length` positions that hold one token throughout."),
      field(
          "tokens.burst_length", [](auto& s) -> auto& { return s.tokens.burst_length; },
          range::positive_count, "Positions of such a block."),
      field(
          "tokens.repeat_period", [](auto& s) -> auto& { return s.tokens.repeat_period; },
          range::count, "Positions after which a sequence repeats itself; 0 is never."),
      field(
          "tokens.synchronised_steps", [](auto& s) -> auto& { return s.tokens.synchronised_steps; },
          range::count, "So many steps at the start, all sequences of a step are the same one."),
  };
}

Fields training_fields() {
  return {
      field(
          "training.steps", [](auto& s) -> auto& { return s.training.steps; },
          range::positive_count, "Optimizer steps."),
      field(
          "training.ranks", [](auto& s) -> auto& { return s.training.ranks; },
          IntegerType{.at_least = 1, .at_most = 1'000'000}, "Simulated data-parallel ranks."),
      field(
          "training.micro_batches", [](auto& s) -> auto& { return s.training.micro_batches; },
          IntegerType{.at_least = 1, .at_most = 1'000'000}, "Micro-batches of a rank in a step."),
      field(
          "training.sequences", [](auto& s) -> auto& { return s.training.sequences; },
          range::positive_count, "Sequences of a micro-batch."),
      field(
          "training.optimizer.learning_rate",
          [](auto& s) -> auto& { return s.training.optimizer.learning_rate; }, range::not_negative,
          "Learning rate of AdamW.")
          .when("mode", {"train"}),
      field(
          "training.optimizer.beta1", [](auto& s) -> auto& { return s.training.optimizer.beta1; },
          range::below_one, "Decay of the first moment.")
          .when("mode", {"train"}),
      field(
          "training.optimizer.beta2", [](auto& s) -> auto& { return s.training.optimizer.beta2; },
          range::below_one, "Decay of the second moment.")
          .when("mode", {"train"}),
      field(
          "training.optimizer.eps", [](auto& s) -> auto& { return s.training.optimizer.eps; },
          range::positive, "Added to the root of the second moment.")
          .when("mode", {"train"}),
      field(
          "training.optimizer.weight_decay",
          [](auto& s) -> auto& { return s.training.optimizer.weight_decay; }, range::not_negative,
          "Decoupled weight decay.")
          .when("mode", {"train"}),
      field(
          "training.loss_scale.initial",
          [](auto& s) -> auto& { return s.training.loss_scale.initial; },
          NumberType{.above = 0.0, .at_most = 0x1p64, .power_of_two = true},
          "Loss scale of the first step.")
          .when("mode", {"train"}),
      field(
          "training.loss_scale.growth_interval",
          [](auto& s) -> auto& { return s.training.loss_scale.growth_interval; },
          range::positive_count, "Steps without overflow after which the loss scale doubles.")
          .when("mode", {"train"}),
      field(
          "training.evaluate_every", [](auto& s) -> auto& { return s.training.evaluate_every; },
          range::count, "Steps from one evaluation to the next; 0 is never."),
      field(
          "training.evaluate_sequences",
          [](auto& s) -> auto& { return s.training.evaluate_sequences; }, range::positive_count,
          "Sequences of an evaluation."),
      field(
          "training.log_every", [](auto& s) -> auto& { return s.training.log_every; }, range::count,
          "Steps of a diagnostics window; 0 is never."),
      field(
          "training.checkpoint_every", [](auto& s) -> auto& { return s.training.checkpoint_every; },
          range::count, "Steps from one checkpoint to the next; 0 keeps only the initial state."),
      field(
          "training.overflow_steps", [](auto& s) -> auto& { return s.training.overflow_steps; },
          StepsType{}, "Steps whose gradient gets a nonfinite value."),
      field(
          "training.restart_after", [](auto& s) -> auto& { return s.training.restart_after; },
          StepsType{}, "Steps after which the run dies once and goes on from the last checkpoint."),
  };
}

Fields fault_fields() {
  return {
      field(
          "fault", [](auto& s) -> auto& { return s.fault; },
          "A mistake of real training code, put into the balancer."),
  };
}

Fields diagnostics_fields() {
  return {
      field(
          "diagnostics", [](auto& s) -> auto& { return s.diagnostics; }, BooleanType{},
          "Whether the load collector is on; it changes nothing else."),
  };
}

}  // namespace

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names = {"loss",
                                                 "eval_loss",
                                                 "e_frac_with_tokens:mean",
                                                 "e_frac_oversubscribed:mean",
                                                 "e_max_violation:mean",
                                                 "e_max_violation:max",
                                                 "e_min_violation:mean",
                                                 "dead_experts",
                                                 "load_cv",
                                                 "entropy",
                                                 "gini",
                                                 "balancedness",
                                                 "drop_rate",
                                                 "unserved_tokens",
                                                 "aux_loss",
                                                 "z_loss",
                                                 "bias_range",
                                                 "bias_mean",
                                                 "router_gradient"};
  return names;
}

const std::vector<Field<Scenario>>& scenario_fields() {
  static const Fields all = [] {
    Fields fields;
    for (Fields part :
         {general_fields(), model_fields(), token_fields(), score_fields(), balancer_fields(),
          fault_fields(), training_fields(), diagnostics_fields()}) {
      fields.insert(fields.end(), std::make_move_iterator(part.begin()),
                    std::make_move_iterator(part.end()));
    }
    return fields;
  }();
  return all;
}

const std::vector<Field<Expectation>>& expectation_fields() {
  static const std::vector<Field<Expectation>> fields = {
      bind_field<Expectation>(
          "metric", [](auto& e) -> auto& { return e.metric; }, WordType{metric_names()},
          "What is judged; this or `collapse` is required."),
      bind_field<Expectation>(
          "collapse", [](auto& e) -> auto& { return e.collapse; },
          WordType{{words_of<ExpectedCollapse>.begin(), words_of<ExpectedCollapse>.end()}},
          "The kind of collapse whose onset has to lie within the steps; `none`: no kind may."),
      bind_field<Expectation>(
          "aggregate", [](auto& e) -> auto& { return e.aggregate; },
          "How the values over the chosen steps become the one that is judged."),
      bind_field<Expectation>(
          "from", [](auto& e) -> auto& { return e.from; }, range::positive_count,
          "First step that counts."),
      bind_field<Expectation>(
          "until", [](auto& e) -> auto& { return e.until; }, range::positive_count,
          "Last step that counts; without it, the last of the run."),
      bind_field<Expectation>(
          "at_most", [](auto& e) -> auto& { return e.at_most; }, range::finite,
          "Upper bound; a metric needs at least one bound."),
      bind_field<Expectation>(
          "at_least", [](auto& e) -> auto& { return e.at_least; }, range::finite, "Lower bound."),
  };
  return fields;
}

const std::vector<Field<VariantHeading>>& variant_fields() {
  static const std::vector<Field<VariantHeading>> fields = {
      bind_field<VariantHeading>(
          "name", [](auto& v) -> auto& { return v.name; }, TextType{TextForm::name},
          "What the variant is called; required."),
      bind_field<VariantHeading>(
          "description", [](auto& v) -> auto& { return v.description; }, TextType{},
          "What it shows; without it, that of the scenario."),
  };
  return fields;
}

}  // namespace ballast::sim
