"""Random C programs that need only what the circuits implement; a host compiler says what they mean."""

from tests.cuda.random_programs import HOST, Program

BINARY = [
    "({a} + {b})", "({a} - {b})", "({a} * {b})", "({a} & {b})", "({a} | {b})", "({a} ^ {b})",
    "(u32)min((int){a}, (int){b})", "umax({a}, {b})",
    "(({a} < {b}) ? {a} : {b} + 1)", "(((int){a} >= (int){b}) ? {b} : {a})", "(u32)((int){a} <= (int){b})",
    "(u32)({a} == {b} || {a} > 77)", "(({a} != {b} && (int){b} < 9) ? {b} ^ 5 : {a})", "({a} - {b} * 3u)",
]  # fmt: skip
UNARY = ["(~{a})", "(-{a})", "({a} << 1)", "({a} << 3)", "({a} << 13)", "({a} * 0x10001u)", "(u32)!{a}"]
NUMBERS = ["7u", "0u", "1u", "0x80000000u", "255u", "32767u", "32768u", "0xffff8000u"]


class SubsetProgram(Program):
    """``source`` holds step(in, out, sum): 4 words in, 4 words out, and a word that all threads add to."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.random.seed(seed)
        body = self.block(self.random.randrange(2, 5), 1)
        self.source = (
            "typedef unsigned u32;\n"
            "__device__ void step(const u32* in, u32* out, u32* sum) {\n"
            f"  u32 a = in[0], b = in[1], c = in[2], d = in[3];\n{body}"
            "  out[0] = a; out[1] = b; out[2] = c; out[3] = d;\n}\n"
        )

    @property
    def device(self) -> str:
        return self.source + (
            "__global__ void k(const u32* in, u32* out, u32* sum, int n) {\n"
            "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n"
            "  step(in + 4 * i, out + 4 * i, sum);\n}\n"
        )

    def expression(self, depth: int) -> str:
        kind = self.random.random()
        if depth == 0 or kind < 0.15:
            number = self.random.choice([*NUMBERS, f"{self.random.getrandbits(32)}u"])
            return self.random.choice(["a", "b", "c", "d", "a", "b", number])
        if kind < 0.3:
            return self.random.choice(UNARY).format(a=self.expression(depth - 1))
        return self.random.choice(BINARY).format(a=self.expression(depth - 1), b=self.expression(depth - 1))

    def block(self, statements: int, depth: int) -> str:
        indent = "  " * depth
        lines = []
        for number in range(statements):
            kind = self.random.random()
            name = self.random.choice("abcd")
            if depth < 4 and kind < 0.3:
                lines.append(f"{indent}if ({self.expression(2)} & 1) {{\n{self.block(2, depth + 1)}{indent}}}")
                if self.random.random() < 0.5:
                    lines[-1] += f" else {{\n{self.block(2, depth + 1)}{indent}}}"
            elif depth < 3 and kind < 0.45:
                counter = f"i{depth}_{number}"
                leave = self.random.choice(["break", "continue", "return", "break"])
                lines.append(
                    f"{indent}for (u32 {counter} = 0; {counter} < ({name} & 7); {counter}++) {{\n"
                    f"{self.block(2, depth + 1)}{indent}  if (({self.expression(1)} & 7) == 3) {leave};\n"
                    f"{indent}  {name} += {counter};\n{indent}}}"
                )
            elif kind < 0.55:
                lines.append(f"{indent}atomicAdd(sum, {self.expression(2)});")
            elif kind < 0.62:
                lines.append(f"{indent}out[{self.random.randrange(4)}] = {self.expression(2)};")
            elif kind < 0.65 and depth > 1:
                lines.append(f"{indent}if ({self.expression(1)} == 7u) return;")
            else:
                lines.append(f"{indent}{name} = {self.expression(2)};")
        return "\n".join(lines) + "\n"


def host_source(programs: dict[int, SubsetProgram]) -> str:
    """C++ for one host library: function f<seed>(in, out, sum) for every program. Threads there run one by one."""
    head = HOST + "static inline void atomicAdd(unsigned* p, unsigned v) { *p += v; }\n"
    return head + "".join(
        f"namespace n{seed} {{\n{program.source}}}\n"
        f'extern "C" void f{seed}(const unsigned* in, unsigned* out, unsigned* sum) '
        f"{{ n{seed}::step(in, out, sum); }}\n"
        for seed, program in programs.items()
    )
