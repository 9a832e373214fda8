# Write a Metal library as a C++ header: cmake -DLIBRARY=… -DHEADER=… -DNAMESPACE=… -P embed.cmake
cmake_minimum_required(VERSION 3.26)

file(READ "${LIBRARY}" bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(
  REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)"
  "\\1\n"
  bytes
  "${bytes}"
)
file(
  CONFIGURE
  OUTPUT "${HEADER}"
  CONTENT
    [[
// The Metal library of this kernel.
#pragma once

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>
#include <dispatch/dispatch.h>

namespace @NAMESPACE@ {

static const unsigned char kLibrary[] = {
@bytes@
};

inline id<MTLLibrary> createLibrary(id<MTLDevice> device, NSError** error) {
  dispatch_data_t data =
      dispatch_data_create(kLibrary, sizeof(kLibrary), nullptr, DISPATCH_DATA_DESTRUCTOR_DEFAULT);
  return [device newLibraryWithData:data error:error];
}

}  // namespace @NAMESPACE@
]]
  @ONLY
)
