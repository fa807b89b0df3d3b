/** Our program as archives for upload, one for each kind of machine, made when first needed. */
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

import { makePayload, type Payload } from '../payload.ts'

/** `cache`: the folder for archives. The environment may name a bundle to send instead of the sources. */
export function payloads(
  cache: string,
  env: Readonly<Record<string, string | undefined>>,
): (kind: string) => Promise<Payload> {
  const root = fileURLToPath(new URL('../../../', import.meta.url))
  const bundled = env['HYPERKUBE_BUNDLE']
  const made = new Map<string, Promise<Payload>>()
  return (kind) => {
    const known = made.get(kind)
    if (known !== undefined) return known
    const making = makePayload(kind, { root, cache, ...(bundled && { bundle: dirname(bundled) }) })
    made.set(kind, making)
    // A full disk must not be remembered.
    making.catch(() => made.delete(kind))
    return making
  }
}
