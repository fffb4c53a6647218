#include "tests/props/oracles/balanced_optimum.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/successive_shortest_path_nonnegative_weights.hpp>
#include <boost/range/iterator_range.hpp>

namespace ballast::props::oracle {

namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Edge = Traits::edge_descriptor;
using Network = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<
        boost::edge_capacity_t, std::int64_t,
        boost::property<boost::edge_residual_capacity_t, std::int64_t,
                        boost::property<boost::edge_reverse_t, Edge,
                                        boost::property<boost::edge_weight_t, std::int64_t>>>>>;

constexpr std::int64_t score_max = 1000;

void connect(Network& network, std::size_t from, std::size_t to, std::int64_t capacity,
             std::int64_t cost) {
  const Edge edge = boost::add_edge(from, to, network).first;
  const Edge back = boost::add_edge(to, from, network).first;
  boost::put(boost::edge_capacity, network, edge, capacity);
  boost::put(boost::edge_capacity, network, back, 0);
  boost::put(boost::edge_weight, network, edge, cost);
  boost::put(boost::edge_weight, network, back, -cost);
  boost::put(boost::edge_reverse, network, edge, back);
  boost::put(boost::edge_reverse, network, back, edge);
}

std::int64_t cost_of_flow(const Network& network) {
  std::int64_t cost = 0;
  for (const Edge& edge : boost::make_iterator_range(boost::edges(network))) {
    const std::int64_t capacity = boost::get(boost::edge_capacity, network, edge);
    if (capacity == 0) continue;  // the way back
    const std::int64_t flow = capacity - boost::get(boost::edge_residual_capacity, network, edge);
    cost += flow * boost::get(boost::edge_weight, network, edge);
  }
  return cost;
}

}  // namespace

std::int64_t balanced_optimum(const std::vector<std::vector<int>>& scores, int top_k) {
  const std::size_t tokens = scores.size();
  const std::size_t experts = scores[0].size();
  const auto parts = static_cast<std::int64_t>(experts);  // of an assignment
  const std::size_t source = tokens + experts;
  const std::size_t sink = source + 1;
  Network network(sink + 1);
  for (std::size_t t = 0; t < tokens; ++t) {
    connect(network, source, t, top_k * parts, 0);
    for (std::size_t j = 0; j < experts; ++j) {
      connect(network, t, tokens + j, parts, score_max - scores[t][j]);
    }
  }
  const auto assignments = static_cast<std::int64_t>(tokens) * top_k;
  for (std::size_t j = 0; j < experts; ++j) connect(network, tokens + j, sink, assignments, 0);
  boost::successive_shortest_path_nonnegative_weights(network, source, sink);
  return assignments * parts * score_max - cost_of_flow(network);
}

}  // namespace ballast::props::oracle
