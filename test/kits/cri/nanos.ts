/** Converts times to CRI timestamps: nanoseconds since 1970. */
export function nanosOf(ms: number): bigint {
  return BigInt(Math.round(ms * 1000)) * 1000n
}
