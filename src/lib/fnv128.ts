/** Computes the 128-bit FNV-1a hash as Go's `hash/fnv` does. It does not protect secrets. */

const LIMB = 2 ** 32
/** The prime is 2^88 + this. */
const PRIME = 0x13b

/** In hexadecimal. */
export function fnv128a(bytes: Uint8Array): string {
  // Four limbs of 32 bits, the lowest first: products with the prime stay exact in doubles.
  let [a, b, c, d] = [0x6295c58d, 0x62b82175, 0x07bb0142, 0x6c62272e]
  for (const byte of bytes) {
    a = (a ^ byte) >>> 0
    const low = a * PRIME
    const second = b * PRIME + Math.floor(low / LIMB)
    const third = c * PRIME + Math.floor(second / LIMB) + ((a << 24) >>> 0)
    const high = d * PRIME + Math.floor(third / LIMB) + (((a >>> 8) | (b << 24)) >>> 0)
    ;[a, b, c, d] = [low >>> 0, second >>> 0, third >>> 0, high >>> 0]
  }
  return [d, c, b, a].map((limb) => limb.toString(16).padStart(8, '0')).join('')
}
