/** Encodes node ports in upstream's storage format: a range, and a bit for each port. */
import type { PortRange } from './node-ports.ts'

export function rangeText({ first, last }: PortRange): string {
  return `${first}-${last}`
}

/** Go's big.Int with a bit for each port, the first port being the lowest bit, in base64. */
export function portBits(taken: Iterable<number>, { first, last }: PortRange): string {
  const bytes = Buffer.alloc((last - first + 8) >> 3)
  for (const port of taken) {
    if (port < first || port > last) continue
    const bit = port - first
    const at = bytes.length - 1 - (bit >> 3)
    bytes[at] = (bytes[at] ?? 0) | (1 << (bit & 7))
  }
  const start = bytes.findIndex((byte) => byte !== 0)
  return bytes.subarray(start < 0 ? bytes.length : start).toString('base64')
}

/** The inverse. Throws for an invalid range. */
export function portsOf(range: string, data: string): Set<number> {
  const first = /^(\d+)(?:-\d+)?$/.exec(range)?.[1]
  if (first === undefined) throw new Error(`The stored range of node ports "${range}" cannot be read`)
  const bytes = Buffer.from(data, 'base64')
  const taken = new Set<number>()
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const byte = bytes[bytes.length - 1 - (bit >> 3)] ?? 0
    if ((byte & (1 << (bit & 7))) !== 0) taken.add(Number(first) + bit)
  }
  return taken
}
