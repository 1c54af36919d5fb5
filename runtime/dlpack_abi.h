/* The part of DLPack 1.x that this API uses: a borrowed tensor.
 *
 * Layout-compatible with every dlpack.h since 0.6. A host that has its own
 * dlpack.h includes it before normc.h; its definitions are then used and
 * nothing is declared twice. The API only borrows tensors: it never owns one
 * and never calls a deleter.
 */
#ifndef NORMC_DLPACK_ABI_H
#define NORMC_DLPACK_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_ /* a dlpack.h that comes later is skipped */

#ifdef __cplusplus
extern "C" {
#endif

/* Where the data lives. A CPU plan takes kDLCPU and pinned kDLCUDAHost, a CUDA plan kDLCUDA. */
typedef enum DLDeviceType { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 } DLDeviceType;

typedef struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum DLDataTypeCode {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLBool = 6
} DLDataTypeCode;

typedef struct DLDataType {
  uint8_t code; /* a DLDataTypeCode */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} DLDataType;

typedef struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL is compact, last dimension contiguous */
  uint64_t byte_offset;
} DLTensor;

#ifdef __cplusplus
}
#endif
#endif /* DLPACK_DLPACK_H_ */
#endif /* NORMC_DLPACK_ABI_H */
