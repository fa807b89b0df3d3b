/** Reads registry credentials from the image pull secrets of a pod. Pure. */
import type { Secret } from '#apis/core/v1.ts'

import { coordinatesOf, type Credential, credentialHash } from '../../credentials/credential.ts'
import { fittingEntries, type RegistryEntries } from '../../credentials/registry-entries.ts'

/** Credentials that match the image, longest path first. Unreadable secrets are skipped, as in upstream. */
export function credentialsFor(image: string, secrets: readonly Secret[]): Credential[] {
  const fitting = secrets
    .flatMap((secret) => fittingEntries(image, entriesOf(secret)).map((entry) => ({ ...entry, secret })))
    .sort((a, b) => b.registry.length - a.registry.length)
  return fitting.map(({ auth, email, secret: { metadata } }) => ({
    auth,
    secret: { ...coordinatesOf(metadata), credentialHash: credentialHash(auth, email) },
  }))
}

function entriesOf({ data = {} }: Secret): RegistryEntries {
  try {
    const config = data['.dockerconfigjson']
    if (config !== undefined) return (JSON.parse(decoded(config)) as { auths?: RegistryEntries }).auths ?? {}
    const old = data['.dockercfg']
    return old === undefined ? {} : (JSON.parse(decoded(old)) as RegistryEntries)
  } catch {
    return {}
  }
}

const decoded = (base64: string): string => Buffer.from(base64, 'base64').toString()
