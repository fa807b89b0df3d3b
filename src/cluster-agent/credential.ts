/**
 * Generates and stores the agent's credential for the management server, in a Secret or a file. So the agent needs
 * its registration token only once.
 */
import { readFile } from 'node:fs/promises'

import { Secrets } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import type { Random } from '#lib/random.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'

export interface CredentialStore {
  /** Undefined: there is none. */
  read(): Promise<string | undefined>
  /** Returns the stored credential: another agent may have been faster. */
  create(credential: string): Promise<string>
}

const KEY = 'credential'

export function credentialInSecret(client: ApiClient, namespace: string, name: string): CredentialStore {
  const read = async (): Promise<string | undefined> => {
    try {
      const { data } = await client.get(Secrets, { namespace, name })
      return data?.[KEY] === undefined ? undefined : Buffer.from(data[KEY], 'base64').toString()
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }
  return {
    read,
    async create(credential) {
      const data = { [KEY]: Buffer.from(credential).toString('base64') }
      try {
        await client.create(Secrets, { metadata: { namespace, name }, type: 'Opaque', data })
        return credential
      } catch (error) {
        if (!isAlreadyExists(error)) throw error
        return (await read()) ?? credential
      }
    },
  }
}

export function credentialInFile(path: string): CredentialStore {
  return {
    async read() {
      try {
        return (await readFile(path, 'utf8')).trim()
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        throw error
      }
    },
    async create(credential) {
      await writeFileAtomically(path, `${credential}\n`, { mode: 0o600 })
      return credential
    },
  }
}

const BYTES = 32

export async function openCredential(store: CredentialStore, random: Random): Promise<string> {
  return (await store.read()) ?? (await store.create(Buffer.from(random.bytes(BYTES)).toString('base64url')))
}
