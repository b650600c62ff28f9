// Objects with constructors in the image, and a frame larger than the stack.

#include "hcomm/hcomm_kernel.h"

namespace {

uint64_t seed() {
    volatile uint64_t x = 41;
    return x;
}

struct Table {
    uint64_t v[4];
    Table() {
        for (uint64_t i = 0; i < 4; i++) {
            v[i] = seed() + i;
        }
    }
};

Table table;
uint64_t plain = seed() + 1;
uint64_t order;

// 101 runs first, then 102, then those without a priority.
__attribute__((constructor(102))) void second() { order = order * 10 + 2; }
__attribute__((constructor(101))) void first() { order = order * 10 + 1; }
__attribute__((constructor)) void last() { order = order * 10 + 3; }

class Shape {
public:
    virtual uint32_t corners() const = 0;
};

class Square final : public Shape {
public:
    uint32_t corners() const override { return 4; }
};

Square square;
const Shape *volatile shape = &square;

__attribute__((noinline)) uint32_t uses_stack(uint32_t bytes) {
    volatile uint8_t frame[1024 * 1024];
    for (uint32_t i = 0; i < bytes; i++) {
        frame[i] = 0x5a;
    }
    return frame[bytes / 2];
}

} // namespace

HCOMM_KERNEL(constructed) {
    (void)args;
    if (table.v[0] != 41 || table.v[3] != 44) {
        return 101;
    }
    if (plain != 42) {
        return 102;
    }
    if (order != 123) {
        return 103;
    }
    return shape->corners() == 4 ? 0 : 104;
}

// Writes the lowest bytes of its frame alone.
HCOMM_KERNEL(large_frame) {
    (void)args;
    return uses_stack(2000) == 0x5a ? 0 : 1;
}
