#include "eval/samples.h"

#include <algorithm>
#include <random>

namespace tilepilot::eval {

double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

Timing timing_of(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  const size_t count = seconds.size();
  return {seconds[count / 2] * 1e6, seconds[count / 4] * 1e6, seconds[count * 3 / 4] * 1e6, static_cast<int>(count)};
}

std::pair<double, double> ratio_interval(const std::vector<double>& above, const std::vector<double>& below) {
  constexpr size_t kFewest = 6, kResamples = 1000;
  const size_t count = std::min(above.size(), below.size());
  if (count == 0) return {0, 0};
  std::vector<double> ratios;
  if (count < kFewest) {
    for (size_t i = 0; i < count; ++i) ratios.push_back(above[i] / below[i]);
  } else {
    std::mt19937_64 random(count);
    std::vector<double> a(count), b(count);
    for (size_t k = 0; k < kResamples; ++k) {
      for (size_t i = 0; i < count; ++i) {
        const size_t round = random() % count;
        a[i] = above[round];
        b[i] = below[round];
      }
      ratios.push_back(median(a) / median(b));
    }
  }
  std::sort(ratios.begin(), ratios.end());
  const size_t cut = ratios.size() / 40;  // 2.5 % on each side
  const double told = median(above) / median(below);
  return {std::min(ratios[cut], told), std::max(ratios[ratios.size() - 1 - cut], told)};
}

}  // namespace tilepilot::eval
