/** Computes the ID and the size of simulated images from their names. Pure. */
import { createHash } from 'node:crypto'

/** The ID of a pulled image: `docker.io/library/nginx@sha256:…`. */
export function imageIdOf(image: string): string {
  const known = ids.get(image)
  if (known !== undefined) return known
  if (ids.size >= MAX_KNOWN) ids.clear()
  const repository = image.replace(/@.*$/, '').replace(/:[^:/]*$/, '')
  const id = `${repository}@sha256:${createHash('sha256').update(image).digest('hex')}`
  ids.set(image, id)
  return id
}

const ids = new Map<string, string>()
const MAX_KNOWN = 1000

/** Between 5 and 105 MB. */
export function imageSizeOf(image: string): number {
  const hash = createHash('sha256').update(image).digest()
  return 5_000_000 + (hash.readUInt32BE(0) % 100_000_000)
}
