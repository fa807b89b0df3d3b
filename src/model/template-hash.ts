/** Computes upstream's hashes of templates and revisions, and their text in names. */
import type { PodTemplateSpec } from '#apis/core/v1.ts'
import { structFor } from '#apis/schemas.ts'

import { goDump } from './go-dump.ts'

/** `pod-template-hash` of a Deployment and the hash of a DaemonSet's revision. */
export function templateHash(template: PodTemplateSpec, collisionCount?: number): string {
  const dump = Buffer.from(goDump(structFor('core.v1', 'PodTemplateSpec'), template))
  if (collisionCount === undefined) return spell(fnv1a(dump))
  const salt = Buffer.alloc(8)
  salt.writeUInt32LE(collisionCount)
  return spell(fnv1a(Buffer.concat([dump, salt])))
}

/** The hash of a StatefulSet's revision data. */
export function revisionHash(data: string, collisionCount: number | undefined): string {
  return spell(fnv1(Buffer.from(data + (collisionCount === undefined ? '' : String(collisionCount)))))
}

const OFFSET = 0x811c_9dc5
const PRIME = 0x0100_0193

/** FNV-1a with 32 bits. */
export function fnv1a(bytes: Uint8Array): number {
  let hash = OFFSET
  for (const byte of bytes) hash = Math.imul(hash ^ byte, PRIME)
  return hash >>> 0
}

function fnv1(bytes: Uint8Array): number {
  let hash = OFFSET
  for (const byte of bytes) hash = Math.imul(hash, PRIME) ^ byte
  return hash >>> 0
}

/** Without vowels, to avoid accidental words. */
const DIGITS = '456789bcdf'

function spell(hash: number): string {
  return String(hash).replaceAll(/\d/g, (digit) => DIGITS[Number(digit)] ?? '')
}
