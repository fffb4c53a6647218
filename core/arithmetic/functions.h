#pragma once

#include <span>

/// Elementary functions whose bits depend on nothing but their argument: not on the processor, the
/// compiler, the optimisation level, the C library, or the place of a value in an array. They are
/// built from IEEE 754 operations and explicit fused multiply-adds alone. Nothing else in this
/// project may call a transcendental function of a library.
namespace ballast::arithmetic {

float exp(float x);
double exp(double x);
float log(float x);
double log(double x);
/// 1 / (1 + e^-x).
float sigmoid(float x);
double sigmoid(double x);
float tanh(float x);
double tanh(double x);

/// The same functions over arrays, `out[i] = f(in[i])` to the bit; `out` may be `in`.
void exp(std::span<const float> in, std::span<float> out);
void exp(std::span<const double> in, std::span<double> out);
void sigmoid(std::span<const float> in, std::span<float> out);
void sigmoid(std::span<const double> in, std::span<double> out);
void tanh(std::span<const float> in, std::span<float> out);
void tanh(std::span<const double> in, std::span<double> out);

}  // namespace ballast::arithmetic
