/** Computes a short digest of a service definition, to detect changes. Pure. */
import { createHash } from 'node:crypto'

import type { ServiceSpec } from './machine.ts'

/** Equal definitions have equal digests, regardless of the order of fields. */
export function serviceDigest(service: ServiceSpec): string {
  return sha256(stable(service))
}

export function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

function stable(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
}
