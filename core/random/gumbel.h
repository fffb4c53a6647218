#pragma once

#include <cstdint>
#include <span>

namespace ballast {

/// Standard Gumbel values -ln(-ln u), many at once: entry i is that of u = (h + 1/2) / 2^23 with h
/// the high 23 bits of 32-bit word i of the stream with this key (word i is half i mod 2 of draw i
/// / 2 of Stream, low half first). So a value depends on the key and its place alone, and none lies
/// outside
/// [-2.77, 16.64].
///
/// Logits ln w_j + Gumbel_j select by Plackett and Luce: j comes first with probability w_j / sum
/// w, and top-k draws k without replacement (Yellott 1977; Kool, van Hoof, Welling,
/// arXiv:1903.06059). About 2 ns a value.
void fill_gumbel(std::uint64_t key, std::span<float> out);

}  // namespace ballast
