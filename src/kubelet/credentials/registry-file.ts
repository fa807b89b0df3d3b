/** Passwords of registries that whoever runs the machine has put into a file of docker's form: every pod of the node may be it. */
import { readFile } from 'node:fs/promises'

import type { CredentialSource } from './credential-provider.ts'
import type { Credential } from './credential.ts'
import { fittingEntries, type RegistryEntries } from './registry-entries.ts'

/** Read for each pull, as they are rare. A file that is missing, or cannot be read, is passed over, as by kubelets. */
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
