/** Reads registry credentials for all pods from a docker config file of the node. */
import { readFile } from 'node:fs/promises'

import type { CredentialSource } from './credential-provider.ts'
import type { Credential } from './credential.ts'
import { fittingEntries, type RegistryEntries } from './registry-entries.ts'

/** Read for each pull, since pulls are rare. A missing or invalid file is ignored, as in upstream. */
export function registryFile(path: string): CredentialSource {
  return {
    async credentialsFor(_pod, image): Promise<Credential[]> {
      const text = await readFile(path, 'utf8').catch(() => '')
      return fittingEntries(image, entriesIn(text)).map(({ auth }) => ({ auth }))
    },
  }
}

function entriesIn(text: string): RegistryEntries {
  try {
    return (JSON.parse(text) as { auths?: RegistryEntries }).auths ?? {}
  } catch {
    return {}
  }
}
