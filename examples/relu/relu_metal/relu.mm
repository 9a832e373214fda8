#include <ATen/core/Tensor.h>
#include <torch/mps.h>

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <cstdint>
#include <string>

// The compiled relu.metal; the builder makes this header and names its namespace.
#include EMBEDDED_METALLIB_HEADER

#include "relu_kernels.h"

namespace {

const char* kernel_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "select_float";
    case at::kHalf:
      return "select_half";
    case at::kBFloat16:
      return "select_bfloat";
    default:
      TORCH_CHECK(false, "\"relu\" not implemented for '", type, "' on Metal");
  }
}

std::string describe(NSError* error) {
  return error == nil ? "no reason given" : error.localizedDescription.UTF8String;
}

id<MTLComputePipelineState> make_pipeline(at::ScalarType type) {
  id<MTLDevice> device = MTLCreateSystemDefaultDevice();
  NSError* error = nil;
  id<MTLLibrary> library = EMBEDDED_METALLIB_NAMESPACE::createLibrary(device, &error);
  TORCH_CHECK(library != nil, "relu: cannot load the Metal library: ", describe(error));
  NSString* name = [NSString stringWithUTF8String:kernel_name(type)];
  id<MTLFunction> function = [library newFunctionWithName:name];
  TORCH_CHECK(function != nil, "relu: the Metal library has no ", kernel_name(type));
  id<MTLComputePipelineState> pipeline =
      [device newComputePipelineStateWithFunction:function error:&error];
  TORCH_CHECK(pipeline != nil, "relu: cannot make a Metal pipeline: ", describe(error));
  return pipeline;
}

// Made once for each type: compiling a pipeline takes milliseconds.
id<MTLComputePipelineState> pipeline_for(at::ScalarType type) {
  switch (type) {
    case at::kFloat: {
      static id<MTLComputePipelineState> pipeline = make_pipeline(at::kFloat);
      return pipeline;
    }
    case at::kHalf: {
      static id<MTLComputePipelineState> pipeline = make_pipeline(at::kHalf);
      return pipeline;
    }
    default: {
      static id<MTLComputePipelineState> pipeline = make_pipeline(at::kBFloat16);
      return pipeline;
    }
  }
}

// PyTorch keeps the buffer's handle where other devices keep an address.
void bind(id<MTLComputeCommandEncoder> encoder, const at::Tensor& tensor, NSUInteger index) {
  id<MTLBuffer> buffer = (__bridge id<MTLBuffer>)(tensor.storage().data());
  [encoder setBuffer:buffer
              offset:tensor.storage_offset() * tensor.element_size()
             atIndex:index];
}

void select_on_device(
    const at::Tensor& gate, const at::Tensor& value, const at::Tensor& result) {
  kernel_name(gate.scalar_type());  // refuses a type that there is no kernel for
  TORCH_CHECK(gate.numel() <= UINT32_MAX, "relu: more than 2^32 - 1 elements on Metal");
  id<MTLComputePipelineState> pipeline = pipeline_for(gate.scalar_type());
  const NSUInteger count = gate.numel();
  const NSUInteger width = MIN(pipeline.maxTotalThreadsPerThreadgroup, count);

  // PyTorch's own operators are encoded on the same queue, one after the other.
  dispatch_sync(torch::mps::get_dispatch_queue(), ^{
    id<MTLComputeCommandEncoder> encoder =
        [torch::mps::get_command_buffer() computeCommandEncoder];
    [encoder setComputePipelineState:pipeline];
    bind(encoder, gate, 0);
    bind(encoder, value, 1);
    bind(encoder, result, 2);
    [encoder dispatchThreads:MTLSizeMake(count, 1, 1)
        threadsPerThreadgroup:MTLSizeMake(width, 1, 1)];
    [encoder endEncoding];
    torch::mps::commit();
  });
}

}  // namespace

void relu_kernel(const at::Tensor& input, const at::Tensor& output) {
  select_on_device(input, input, output);
}

void relu_backward_kernel(
    const at::Tensor& grad, const at::Tensor& output, const at::Tensor& grad_input) {
  select_on_device(output, grad, grad_input);
}
