// What follows what in exported graphs of KernelBench, counted: for each operator, those that read what it gives; "-"
// begins a graph. From 208 problems of levels 1 to 3.
#pragma once

namespace tilepilot::retrieval {

inline constexpr const char* kFollowers = R"(
-: conv2d 38 linear 36 conv_transpose3d 25 conv_transpose2d 18 conv3d 16 matmul 11 mul 4 numpy_T 4
-: conv_transpose1d 3 abs 2 add_ 2 avg_pool3d 2 conv1d 2 linalg_vector_norm 2 sigmoid 2 argmax 1 argmin 1
-: avg_pool1d 1 avg_pool2d 1 bmm 1 broadcast_tensors 1 clone 1 cross_entropy_loss 1 cumprod 1 cumsum 1 einsum 1
-: elu 1 flip 1 gelu 1 group_norm 1 hardsigmoid 1 hardtanh 1 instance_norm 1 layer_norm 1 leaky_relu 1 log 1
-: log_softmax 1 max 1 max_pool1d 1 max_pool2d 1 max_pool3d 1 mean 1 min 1 narrow 1 pow 1 relu 1
-: scaled_dot_product_attention 1 selu 1 softmax 1 softplus 1 sub 1 sum 1 tanh 1 triplet_margin_loss 1 unfold 1
-: unsqueeze 1
abs: add 1 mean 1
adaptive_avg_pool2d: view 3 flatten 1 squeeze 1
adaptive_avg_pool3d: add 1 clamp 1
add: layer_norm 13 mul 10 clamp 3 div 3 hardtanh 2 logsumexp 2 sigmoid 2 add 1 group_norm 1 hardswish 1 max_pool2d 1
add: min 1 relu 1 softmax 1 sqrt 1 sum 1
add_: conv2d 15 add_ 10 relu_ 8 dropout 1
avg_pool1d: squeeze 1
avg_pool2d: cat 92 batch_norm 3 sigmoid 1
avg_pool3d: add 1 avg_pool3d 1 conv_transpose3d 1 gelu 1
batch_norm: relu_ 113 hardtanh_ 35 relu 28 conv2d 17 add_ 14 view 13 mul 2 adaptive_avg_pool3d 1 add 1 avg_pool3d 1
batch_norm: gelu 1 mean 1 sub 1 tanh 1
broadcast_tensors: smooth_l1_loss 2
cat: batch_norm 98 add_ 1
clamp: mul 3 div 2 dropout 1 gelu 1 logsumexp 1 mean 1 tanh 1 view 1
clone: detach 3
contiguous: select 18 view 13
conv2d: batch_norm 118 dropout 98 avg_pool2d 5 cat 4 conv2d 3 sub 3 add 2 group_norm 2 min 2 mul 2 relu 2 div 1
conv2d: gelu 1 hardswish 1 instance_norm 1 mish 1 multiply 1 softplus 1 tanh 1
conv3d: group_norm 2 mul 2 div 1 hardswish 1 leaky_relu 1 max_pool3d 1 min 1 mish 1 relu 1 softmax 1
conv_transpose2d: add 2 batch_norm 1 gelu 1 max_pool2d 1 mean 1 min 1 mish 1 mul 1 softmax 1 sub 1
conv_transpose3d: mul 4 add 3 batch_norm 2 clamp 2 max_pool3d 2 clone 1 layer_norm 1 leaky_relu 1 logsumexp 1 mean 1
conv_transpose3d: relu 1 sigmoid 1 softmax 1
cumsum: cat 1 flip 1
detach: add 4 mul 1
detach_: min 3
div: clamp 2 gelu 1 leaky_relu 1 max_pool3d 1 mul 1 sigmoid 1 sub 1 sum 1
dropout: cat 1803 add 13 linear 9 softmax 1
expand: cat 1
flatten: linear 1
flip: cumsum 1
gelu: mul 3 add 2 adaptive_avg_pool2d 1 dropout 1 gelu 1 group_norm 1 hardtanh 1 relu 1 sigmoid 1 softmax 1
group_norm: mean 2 min 2 mul 2 hardswish 1 hardtanh 1 leaky_relu 1 sigmoid 1 tanh 1
hardswish: add 1 group_norm 1 max_pool2d 1 mul 1 relu 1
hardtanh: gelu 1 mean 1 mish 1 mul 1
hardtanh_: conv2d 34 adaptive_avg_pool2d 1
instance_norm: clamp 1 div 1 squeeze 1
kl_div: div 1
layer_norm: add 11 linear 11 avg_pool3d 1 gelu 1 select 1
leaky_relu: add 3 gelu 3 leaky_relu 1 max_pool3d 1 mul 1
lift_fresh_copy: detach_ 1
linalg_vector_norm: div 2
linear: mul 9 relu 9 dropout 7 sigmoid 6 unflatten 6 view 6 add 4 group_norm 4 batch_norm 3 unsqueeze 3 gelu 2
linear: logsumexp 2 sub 2 cat 1 clone 1 div 1 max 1 min 1 mish 1 sum 1
log: kl_div 1
logsumexp: mul 2 add 1 gelu 1 leaky_relu 1 logsumexp 1 mish 1 relu 1 sum 1
matmul: div 1 tril 1 triu 1
max: mean 2 sub 1
max_pool1d: squeeze 1
max_pool2d: cat 6 conv2d 4 add_ 1 batch_norm 1 clamp 1 group_norm 1 hardtanh 1 mish 1
max_pool3d: adaptive_avg_pool3d 2 max_pool3d 2 logsumexp 1 softmax 1 sum 1
mean: add 3 logsumexp 2 sub 2 div 1 mean 1 tanh 1
min: add 2 clamp 1 gelu 1 softmax 1 sub 1 sum 1 tanh 1
mish: mish 2 add 1 group_norm 1 mul 1 tanh 1
mul: add 8 mul 4 sigmoid 4 batch_norm 3 leaky_relu 3 max 3 tanh 3 div 2 avg_pool3d 1 clamp 1 cumsum 1 group_norm 1
mul: hardtanh 1 instance_norm 1 max_pool2d 1 max_pool3d 1 mean 1 min 1 relu 1 rsub 1 softmax 1
multiply: batch_norm 1
narrow: cumsum 1
numpy_T: matmul 5
permute: reshape 6
pow: mean 2 mul 1
relu: add_ 13 conv2d 13 dropout 6 add 2 linear 2 adaptive_avg_pool2d 1 div 1 group_norm 1 leaky_relu 1 max_pool2d 1
relu: mul 1
relu_: conv2d 120 add_ 4 adaptive_avg_pool2d 2 max_pool2d 2
reshape: linear 7
rsub: clamp 1
scaled_dot_product_attention: permute 6
select: view 18 linear 1 unsqueeze 1
sigmoid: mul 12 sum 2 add 1 group_norm 1 linear 1
softmax: add 1 max_pool3d 1 sigmoid 1 sub 1 tanh 1 view 1
softplus: tanh 1
sqrt: div 1
squeeze: contiguous 6 squeeze 2 add 1 gelu 1 sum 1
sub: mul 2 tanh 2 avg_pool2d 1 clamp 1 gelu 1 hardswish 1 mean 1 mish 1 pow 1 sigmoid 1 sub 1
sum: mul 3 gelu 1 max 1
tanh: mul 3 add 1 clamp 1 gelu 1 hardswish 1 max_pool2d 1 multiply 1 sub 1 tanh 1
transpose: view 18 contiguous 13 squeeze 6
unflatten: unsqueeze 6
unfold: reshape 1 unfold 1
unsqueeze: transpose 6 avg_pool1d 1 instance_norm 1 max_pool1d 1 mul 1 unsqueeze 1 zeros_like 1
view: transpose 31 scaled_dot_product_attention 18 conv2d 13 dropout 7 linear 2 mul 1 softmax 1 sub 1
zeros_like: cat 1
)";

// Operators of a graph, and how many graphs have that many.
inline constexpr int kGraphSizes[][2] = {
    {1, 78}, {2, 12}, {3, 30}, {4, 22}, {5, 30}, {6, 17}, {7, 8}, {8, 6}, {60, 5},
};

}  // namespace tilepilot::retrieval
