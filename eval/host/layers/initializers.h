// torch.nn.init's arithmetic, shared by its functions and by the layers that initialise themselves.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>

namespace tilepilot::eval {

// As nn.init.calculate_gain; throws c10::Error for an unknown nonlinearity.
double calculate_gain(const std::string& nonlinearity, double parameter);
// fan_in and fan_out of a weight.
std::pair<int64_t, int64_t> fans(const at::Tensor& weight);
// What Linear and the convolutions do with their weight: kaiming_uniform_(a=sqrt(5)).
void init_kaiming_default(const at::Tensor& weight);
void init_xavier_uniform(const at::Tensor& weight, double gain);

}  // namespace tilepilot::eval
