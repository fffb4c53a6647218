#pragma once

#include <span>

/// Elementary functions whose bits depend on nothing but their argument: not on the processor, the
/// compiler, the optimisation level, the C library, or the place of a value in an array. They are
/// built from IEEE 754 operations and explicit fused multiply-adds alone. Nothing else in this
/// project may call a transcendental function of a library.
///
/// Error bounds are in units in the last place of the exact value, for every finite argument in
/// both formats; results overflow to infinity, underflow gradually, and keep the sign of zeros.
/// Every NaN gives the one quiet NaN of std::numeric_limits. All but log never fall from one float
/// to the next. Nothing throws.
namespace ballast::arithmetic {

/// e^x, within 1 ulp.
float exp(float x);
double exp(double x);
/// The natural logarithm, within 1 ulp: -inf at either zero, NaN below, +inf at +inf.
float log(float x);
double log(double x);
/// 1 / (1 + e^-x), within 1 ulp. It reaches 1 above 17.4 (double: 37.5), and 0 only where e^x does.
float sigmoid(float x);
double sigmoid(double x);
/// The hyperbolic tangent, within 1.5 ulp. It reaches 1 above 9.02 (double: 19.1).
float tanh(float x);
double tanh(double x);

/// The same functions over arrays of equal size, `out[i] = f(in[i])` to the bit; `out` may be `in`,
/// and must not overlap with it otherwise.
void exp(std::span<const float> in, std::span<float> out);
void exp(std::span<const double> in, std::span<double> out);
void log(std::span<const float> in, std::span<float> out);
void log(std::span<const double> in, std::span<double> out);
void sigmoid(std::span<const float> in, std::span<float> out);
void sigmoid(std::span<const double> in, std::span<double> out);
void tanh(std::span<const float> in, std::span<float> out);
void tanh(std::span<const double> in, std::span<double> out);

}  // namespace ballast::arithmetic
