/** Checks whether a byte array contains given bytes at an offset. */
export function isAt(bytes: Uint8Array, start: number, wanted: Uint8Array): boolean {
  if (start + wanted.length > bytes.length) return false
  for (let at = 0; at < wanted.length; at++) if (bytes[start + at] !== wanted[at]) return false
  return true
}
