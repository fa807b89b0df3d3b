/** Random numbers as an argument: seeded for tests and simulations, cryptographic in production. */

export interface Random {
  /** A number in [0, 1), uniformly. */
  float(): number
  /** An integer in [0, bound), uniformly. */
  int(bound: number): number
  /** A fresh buffer of `length` random bytes. */
  bytes(length: number): Buffer
  /** `length` random bytes as hexadecimal digits, where that takes less than making a buffer of them. */
  hex?(length: number): string
}

/** Drawn from the machine so much at a time: a name takes five draws, and each one alone would cost microseconds. */
const POOL_BYTES = 4096
let pool: Buffer = Buffer.alloc(0)
let used = 0

/** Crypto is loaded on first use: `--version` must not pay the ten milliseconds that takes. */
function fill(buffer: Buffer): Buffer {
  return process.getBuiltinModule('node:crypto').randomFillSync(buffer)
}

/** The offset of unused bytes in the pool, which are wiped after use. */
function reserve(length: number): number {
  if (used + length > pool.length) {
    pool = fill(Buffer.allocUnsafeSlow(POOL_BYTES))
    used = 0
  }
  used += length
  return used - length
}

function take(length: number): Buffer {
  if (length > POOL_BYTES / 4) return fill(Buffer.allocUnsafeSlow(length))
  const taken = Buffer.allocUnsafeSlow(length)
  const from = reserve(length)
  pool.copy(taken, 0, from, used)
  pool.fill(0, from, used)
  return taken
}

/** Without a separate buffer: names use these, several for each created object. */
function takeFloat(): number {
  const from = reserve(FLOAT_BYTES)
  const drawn = floatAt(pool, from)
  for (let at = from; at < used; at++) pool[at] = 0
  return drawn
}

/** Without a separate buffer, as every request and every object gets an id. */
function takeHex(length: number): string {
  if (length > POOL_BYTES / 4) return take(length).toString('hex')
  const from = reserve(length)
  const text = pool.toString('hex', from, used)
  pool.fill(0, from, used)
  return text
}

/** The machine's cryptographic randomness. The only kind fit for keys, tokens and uids of real clusters. */
export const secureRandom: Random = {
  float: takeFloat,
  int: (bound) => Math.floor(takeFloat() * bound),
  bytes: take,
  hex: takeHex,
}

/** The same sequence for the same seed, on every machine (xoshiro128**, seeded by splitmix32). Never for secrets. */
export function createSeededRandom(seed: number): Random {
  const next = xoshiro128(seed)
  const random: Random = {
    float: () => (next() * 2 ** 21 + (next() >>> 11)) / 2 ** 53,
    int: (bound) => Math.floor(random.float() * bound),
    bytes(length) {
      const out = Buffer.allocUnsafeSlow(length)
      for (let at = 0; at < length; at++) out[at] = next() >>> 24
      return out
    },
  }
  return random
}

/** The random part of the UUID digit that contains the variant bits. */
const VARIANTS = '89ab'

/** A version 4 UUID, as Kubernetes uses for `metadata.uid`. */
export function uuid(random: Random): string {
  const hex = random.hex?.(16) ?? random.bytes(16).toString('hex')
  const variant = VARIANTS[Number.parseInt(hex[16] as string, 16) & 3]
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`
}

/** `length` characters drawn from `alphabet`, each equally likely. */
export function pick(random: Random, alphabet: string, length: number): string {
  let out = ''
  for (let left = length; left > 0; left--) out += alphabet[random.int(alphabet.length)]
  return out
}

/** `items` in random order (Fisher-Yates); the argument is left alone. */
export function shuffle<T>(random: Random, items: readonly T[]): T[] {
  const out = [...items]
  for (let last = out.length - 1; last > 0; last--) {
    const other = random.int(last + 1)
    const swapped = out[last] as T
    out[last] = out[other] as T
    out[other] = swapped
  }
  return out
}

/** As many bits as the fraction of a number has. */
const FLOAT_BYTES = 7

function floatAt(bytes: Buffer, from: number): number {
  return ((bytes[from] as number) & 0x1f) * 2 ** -5 + bytes.readUIntBE(from + 1, 6) * 2 ** -53
}

function xoshiro128(seed: number): () => number {
  let [a, b, c, d] = [0, 0, 0, 0].map(splitmix32(seed)) as [number, number, number, number]
  return () => {
    const result = Math.imul(rotl(Math.imul(b, 5), 7), 9) >>> 0
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = rotl(d, 11)
    return result
  }
}

function splitmix32(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return (mixed ^ (mixed >>> 15)) >>> 0
  }
}

function rotl(value: number, by: number): number {
  return (value << by) | (value >>> (32 - by))
}
