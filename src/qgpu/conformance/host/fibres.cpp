// Fibres for host.hpp: the threads of one CTA on stacks of their own, changed by hand, in an order that can be chosen.
//
// Freestanding: it includes nothing, so that it needs no libraries to be built.
#include "host.hpp"

Index3 threadIdx, blockIdx, blockDim, gridDim;

namespace {

constexpr int MOST = 1024, STACK = 64 << 10;
constexpr u64 MOST_CHANGES = 20'000'000;
enum Status { DONE, DEADLOCK, ENDLESS, TRAPPED, STRANGER, OVERFLOW, TOO_MANY };
enum Order { FORWARD, REVERSE, RANDOM };

struct Fibre {
  enum { READY, BARRIER, EXCHANGE, ENDED } state;
  void* stack;
  Index3 index;
  int kind, flag;
  unsigned mask, b, c;
  u64 value, answer;
};

Fibre fibres[MOST];
alignas(16) unsigned char stacks[MOST][STACK];
int count, current, status, order;
void* scheduler;
u64 random_state, changes;
void (*kernel)(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64);
const u64* arguments;

u64 draw() {  // xorshift
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

extern "C" void qgpu_switch(void** save, void* load) asm("qgpu_switch");
#if defined(__x86_64__)
asm(R"(
.text
.globl qgpu_switch
qgpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
)");
constexpr int SAVED = 6, RETURN = 6;
#elif defined(__aarch64__)
asm(R"(
.text
.globl qgpu_switch
qgpu_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
constexpr int SAVED = 20, RETURN = 11;
#else
#error "fibres.cpp knows how to change stacks on x86-64 and AArch64"
#endif

void leave() { qgpu_switch(&fibres[current].stack, scheduler); }

[[noreturn]] void body() {
  const u64* a = arguments;
  kernel(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
  fibres[current].state = Fibre::ENDED;
  leave();
  __builtin_trap();
}

void start(Fibre& fibre, unsigned char* stack) {
  for (int i = 0; i < 64; i++) stack[i] = 0xa5;  // shows whether the stack was too small
  void** top = reinterpret_cast<void**>(stack + STACK - 32);
  void** saved = top - SAVED - (SAVED == 6 ? 2 : 0);
  for (int i = 0; i < SAVED; i++) saved[i] = nullptr;
  saved[RETURN] = reinterpret_cast<void*>(&body);
  if (SAVED == 6) saved[RETURN + 1] = nullptr;  // where a call would have put its return address
  fibre.stack = saved;
  fibre.state = Fibre::READY;
}

// ---- Exchanges ----

int first_of_warp(int fibre) { return fibre / 32 * 32; }

bool is_member(int first, int lane, unsigned mask) { return mask >> lane & 1 && first + lane < count; }

u64 reduced(int kind, u64 a, u64 b) {
  switch (kind) {
    case host::ADD: return a + b;
    case host::MIN: return (long long)a < (long long)b ? a : b;
    case host::MAX: return (long long)a > (long long)b ? a : b;
    case host::AND: return a & b;
    case host::OR: return a | b;
    default: return a ^ b;
  }
}

// PTX: which lane a shuffle reads from, by mode, b (lane or distance) and c (clamp, segment mask << 8).
void shuffle(Fibre& fibre, int first, int lane) {
  int segment = fibre.c >> 8 & 31, clamp = fibre.c & 31, b = fibre.b & 31;
  int low = lane & segment, high = low | (clamp & ~segment), source;
  bool inside;
  switch (fibre.kind) {
    case host::UP: source = lane - b; inside = source >= high; break;
    case host::DOWN: source = lane + b; inside = source <= high; break;
    case host::BFLY: source = lane ^ b; inside = source <= high; break;
    default: source = low | (b & ~segment); inside = source <= high;
  }
  if (!inside) source = lane;
  bool there = is_member(first, source, fibre.mask) && fibres[first + source].state == Fibre::EXCHANGE;
  fibre.answer = there ? fibres[first + source].value : draw();  // what is undefined differs from run to run
  fibre.flag = inside;
}

void answer(int first, unsigned mask, int kind) {
  unsigned ballot = 0, here = 0;
  u64 total = 0;
  for (int lane = 0; lane < 32; lane++) {
    if (!is_member(first, lane, mask) || fibres[first + lane].state != Fibre::EXCHANGE) continue;
    u64 value = fibres[first + lane].value;
    total = here ? reduced(kind, total, value) : value;
    here |= 1u << lane;
    ballot |= (value ? 1u : 0u) << lane;
  }
  for (int lane = 0; lane < 32; lane++) {
    if (!(here >> lane & 1)) continue;
    Fibre& fibre = fibres[first + lane];
    unsigned same = 0;
    for (int other = 0; other < 32; other++)
      if (here >> other & 1 && fibres[first + other].value == fibre.value) same |= 1u << other;
    switch (kind) {
      case host::SYNC: break;
      case host::IDX: case host::UP: case host::DOWN: case host::BFLY: shuffle(fibre, first, lane); break;
      case host::ALL: fibre.answer = ballot == here; break;
      case host::ANY: fibre.answer = ballot != 0; break;
      case host::UNI: fibre.answer = ballot == here || !ballot; break;
      case host::BALLOT: fibre.answer = ballot; break;
      case host::MATCH_ANY: fibre.answer = same; break;
      case host::MATCH_ALL: fibre.flag = same == here; fibre.answer = same == here ? here : 0; break;
      default: fibre.answer = total;
    }
  }
  for (int lane = 0; lane < 32; lane++)
    if (here >> lane & 1) fibres[first + lane].state = Fibre::READY;
}

// Lets every exchange of a warp happen whose members have all come; those that have ended count as there.
void settle_warp(int first) {
  for (int lane = 0; lane < 32 && first + lane < count; lane++) {
    const Fibre& fibre = fibres[first + lane];
    if (fibre.state != Fibre::EXCHANGE) continue;
    bool all = true;
    for (int other = 0; other < 32; other++) {
      if (!is_member(first, other, fibre.mask)) continue;
      const Fibre& member = fibres[first + other];
      bool waits = member.state == Fibre::EXCHANGE && member.kind == fibre.kind && member.mask == fibre.mask;
      all = all && (waits || member.state == Fibre::ENDED);
    }
    if (all) answer(first, fibre.mask, fibre.kind);
  }
}

void settle_barrier() {
  int waiting = 0, left = 0, votes = 0;
  for (int i = 0; i < count; i++) {
    left += fibres[i].state != Fibre::ENDED;
    if (fibres[i].state == Fibre::BARRIER) waiting++, votes += fibres[i].value != 0;
  }
  if (!waiting || waiting != left) return;
  for (int i = 0; i < count; i++) {
    Fibre& fibre = fibres[i];
    if (fibre.state != Fibre::BARRIER) continue;
    fibre.answer = fibre.kind == host::COUNT ? votes : fibre.kind == host::EVERY ? votes == waiting : votes != 0;
    fibre.state = Fibre::READY;
  }
}

// ---- The schedule ----

// The next ready fibre: cyclically up, cyclically down, or any; -1 if there is none.
int next_ready() {
  int start = order == RANDOM ? (int)(draw() % count) : order == FORWARD ? current + 1 : current - 1 + count;
  int step = order == REVERSE ? count - 1 : 1;
  for (int i = 0; i < count; i++) {
    int fibre = (start + i * step) % count;
    if (fibres[fibre].state == Fibre::READY) return fibre;
  }
  return -1;
}

extern "C" unsigned char __start_qgpu_shared[] __attribute__((weak)), __stop_qgpu_shared[] __attribute__((weak));

int run_cta() {
  for (unsigned char* p = __start_qgpu_shared; p < __stop_qgpu_shared; p++) *p = (unsigned char)(draw() >> 32);
  for (int i = 0; i < count; i++) {
    unsigned x = i % blockDim.x, y = i / blockDim.x % blockDim.y, z = i / blockDim.x / blockDim.y;
    fibres[i].index = Index3{x, y, z};
    start(fibres[i], stacks[i]);
  }
  current = order == REVERSE ? 0 : count - 1;
  for (int next; (next = next_ready()) >= 0;) {
    if (++changes > MOST_CHANGES) return ENDLESS;
    current = next;
    threadIdx = fibres[current].index;
    qgpu_switch(&scheduler, fibres[current].stack);
    if (status != DONE) return status;
    for (int i = 0; i < 64; i++)
      if (stacks[current][i] != 0xa5) return OVERFLOW;
    settle_warp(first_of_warp(current));
    settle_barrier();
  }
  for (int i = 0; i < count; i++)
    if (fibres[i].state != Fibre::ENDED) return DEADLOCK;
  return DONE;
}

}  // namespace

// ---- What kernels call ----

void host::yield() { leave(); }

int host::barrier(int vote, int value) {
  Fibre& fibre = fibres[current];
  fibre.kind = vote;
  fibre.value = (u64)value;
  fibre.state = Fibre::BARRIER;
  leave();
  return (int)fibre.answer;
}

u64 host::meet(int kind, unsigned mask, u64 value, unsigned b, unsigned c, int* flag) {
  Fibre& fibre = fibres[current];
  if (!(mask >> (current % 32) & 1)) {
    status = STRANGER;
    leave();
  }
  fibre.kind = kind;
  fibre.mask = mask;
  fibre.value = value;
  fibre.b = b;
  fibre.c = c;
  fibre.state = Fibre::EXCHANGE;
  leave();
  if (flag) *flag = fibre.flag;
  return fibre.answer;
}

unsigned host::lane() { return (unsigned)current % 32; }
unsigned host::warp() { return (unsigned)current / 32; }
// A thread may be alone or not; code that is right does not mind. Here it always is.
unsigned host::active() { return 1u << (current % 32); }
void host::trap() {
  status = TRAPPED;
  leave();
  __builtin_trap();
}

// Runs a launch: 12 argument words, sizes of the grid and of a CTA, the order of threads and CTAs, a seed.
extern "C" int qgpu_run(void* function, const u64* words, const unsigned* grid, const unsigned* cta, int how, u64 seed) {
  kernel = reinterpret_cast<decltype(kernel)>(function);
  arguments = words;
  gridDim = Index3{grid[0], grid[1], grid[2]};
  blockDim = Index3{cta[0], cta[1], cta[2]};
  count = (int)(cta[0] * cta[1] * cta[2]);
  if (count > MOST) return TOO_MANY;
  order = how;
  random_state = seed * 0x9e3779b97f4a7c15u + 1;
  changes = 0;
  status = DONE;
  unsigned total = grid[0] * grid[1] * grid[2], shift = how == RANDOM ? (unsigned)(draw() % total) : 0;
  for (unsigned i = 0; i < total; i++) {
    unsigned at = how == REVERSE ? total - 1 - i : (i + shift) % total;
    blockIdx = Index3{at % grid[0], at / grid[0] % grid[1], at / grid[0] / grid[1]};
    if (int ended = run_cta()) return ended;
  }
  return DONE;
}
