/**
 * Writes the pause program of a sandbox as machine code. The program waits for signals, reaps children in a shared
 * process namespace, and exits on SIGINT or SIGTERM. Pure.
 */

export type PauseArchitecture = 'amd64' | 'arm64'

/** The signal set of SIGINT (2), SIGTERM (15) and SIGCHLD (17). */
const SIGNALS = 0x14002

/** Both block the signals, then loop: wait for a signal; on SIGCHLD reap children, otherwise exit_group(0). */
const CODE: Readonly<Record<PauseArchitecture, { machine: number; code: () => Buffer }>> = {
  amd64: { machine: 0x3e, code: amd64 },
  arm64: { machine: 0xb7, code: arm64 },
}

function amd64(): Buffer {
  const block = [
    '6802400100', // push SIGNALS
    'b80e000000', // mov eax, rt_sigprocmask
    '31ff', // xor edi, edi: SIG_BLOCK
    '4889e6', // mov rsi, rsp
    '31d2', // xor edx, edx
    '41ba08000000', // mov r10d, 8
    '0f05', // syscall
  ].join('')
  const wait = [
    'b880000000', // mov eax, rt_sigtimedwait
    '4889e7', // mov rdi, rsp
    '31f6', // xor esi, esi
    '31d2', // xor edx, edx
    '41ba08000000', // mov r10d, 8
    '0f05', // syscall
    '83f811', // cmp eax, SIGCHLD
  ].join('')
  const exit = [
    'b8e7000000', // mov eax, exit_group
    '31ff', // xor edi, edi
    '0f05', // syscall
  ].join('')
  const reap = [
    'b83d000000', // mov eax, wait4
    '48c7c7ffffffff', // mov rdi, -1
    '31f6', // xor esi, esi
    'ba01000000', // mov edx, WNOHANG
    '4531d2', // xor r10d, r10d
    '0f05', // syscall
    '85c0', // test eax, eax
  ].join('')
  /** A two-byte jump; the second byte is relative to its end. */
  const jump = (code: string, over: readonly string[], back = false): string => {
    const bytes = over.reduce((sum, part) => sum + part.length / 2, 0)
    return code + ((back ? -bytes - 2 : bytes) & 0xff).toString(16).padStart(2, '0')
  }
  const isFailed = '85c0' // test eax, eax
  const skip = 'xxxx' // placeholder with the size of a jump
  const toReap = jump('74', [isFailed, skip, exit]) // je reap
  const toWait = jump('78', [wait, toReap, isFailed], true) // js wait
  const toReapMore = jump('7f', [reap], true) // jg reap
  const toWaitMore = jump('eb', [wait, toReap, isFailed, toWait, exit, reap, toReapMore], true) // jmp wait
  const code = [block, wait, toReap, isFailed, toWait, exit, reap, toReapMore, toWaitMore]
  return Buffer.from(code.join(''), 'hex')
}

function arm64(): Buffer {
  /** movz */
  const set = (register: number, value: number): number => (0xd2800000 | (value << 5) | register) >>> 0
  const system = (call: number, ...values: readonly number[]): number[] => [set(8, call), ...values, 0xd4000001]
  const block = [
    set(9, SIGNALS & 0xffff),
    0xf2a00009 | ((SIGNALS >> 16) << 5), // movk x9, …, lsl 16
    0xf81f0fe9, // str x9, [sp, #-16]!
    ...system(135, set(0, 0), 0x910003e1, set(2, 0), set(3, 8)), // rt_sigprocmask(SIG_BLOCK, sp, 0, 8)
  ]
  const wait = [
    ...system(137, 0x910003e0, set(1, 0), set(2, 0), set(3, 8)), // rt_sigtimedwait(sp, 0, 0, 8)
    0x7100001f | (17 << 10), // cmp w0, SIGCHLD
  ]
  const exit = system(94, set(0, 0)) // exit_group(0)
  const reap = [
    ...system(260, 0x92800000, set(1, 0), set(2, 1), set(3, 0)), // wait4(-1, 0, WNOHANG, 0)
    0x7100001f, // cmp w0, 0
  ]
  const toReap = 0x54000000 | ((2 + exit.length) << 5) // b.eq reap
  const toWait = 0x37f80000 | ((-(wait.length + 1) & 0x3fff) << 5) // tbnz w0, 31, wait
  const toReapMore = 0x5400000c | ((-reap.length & 0x7ffff) << 5) // b.gt reap
  const toWaitMore = 0x14000000 | (-(wait.length + 2 + exit.length + reap.length + 1) & 0x3ffffff) // b wait
  const words = [...block, ...wait, toReap, toWait, ...exit, ...reap, toReapMore, toWaitMore]
  const code = Buffer.alloc(words.length * 4)
  for (const [at, word] of words.entries()) code.writeUInt32LE(word >>> 0, at * 4)
  return code
}

const HEADER_BYTES = 64
const SEGMENT_BYTES = 56
const ADDRESS = 0x400000

/** An ELF file with one segment for headers and code. */
export function pauseProgram(architecture: PauseArchitecture): Buffer {
  const { machine, code } = CODE[architecture]
  const text = code()
  const start = HEADER_BYTES + SEGMENT_BYTES
  const file = Buffer.alloc(start + text.length)
  // 64 bits, little-endian, version 1.
  file.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1])
  file.writeUInt16LE(2, 16) // an executable
  file.writeUInt16LE(machine, 18)
  file.writeUInt32LE(1, 20)
  file.writeBigUInt64LE(BigInt(ADDRESS + start), 24)
  file.writeBigUInt64LE(BigInt(HEADER_BYTES), 32)
  file.writeUInt16LE(HEADER_BYTES, 52)
  file.writeUInt16LE(SEGMENT_BYTES, 54)
  file.writeUInt16LE(1, 56) // number of segments
  file.writeUInt32LE(1, HEADER_BYTES) // PT_LOAD
  file.writeUInt32LE(5, HEADER_BYTES + 4) // readable and executable
  for (const at of [16, 24]) file.writeBigUInt64LE(BigInt(ADDRESS), HEADER_BYTES + at)
  for (const at of [32, 40]) file.writeBigUInt64LE(BigInt(file.length), HEADER_BYTES + at)
  file.writeBigUInt64LE(0x10000n, HEADER_BYTES + 48)
  text.copy(file, start)
  return file
}
