/** Tests if `bytes` contains `wanted` at `start`. */
export function isAt(bytes: Uint8Array, start: number, wanted: Uint8Array): boolean {
  if (start + wanted.length > bytes.length) return false
  for (let at = 0; at < wanted.length; at++) if (bytes[start + at] !== wanted[at]) return false
  return true
}
