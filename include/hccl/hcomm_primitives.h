/* The same as hcomm/hcomm_primitives.h, under the other name that programs use. */

#ifndef HCOMM_SIM_HCCL_HCOMM_PRIMITIVES_H
#define HCOMM_SIM_HCCL_HCOMM_PRIMITIVES_H

#include "../hcomm/hcomm_primitives.h"

#endif /* HCOMM_SIM_HCCL_HCOMM_PRIMITIVES_H */
