/** Stores password hashes in Secrets named `password-<user>`, in the namespace of the management server. */
import { type Secret, Secrets } from '#apis/core/v1.ts'
import { isConflict, isNotFound } from '#meta/status.ts'

import { MANAGEMENT_NAMESPACE, type ManagementObjects } from '../objects.ts'

export class PasswordSecrets {
  readonly #objects: ManagementObjects

  constructor(objects: ManagementObjects) {
    this.#objects = objects
  }

  /** Undefined for a user without a password. Asks the API for every name, so that no name is faster than others. */
  read(user: string): Promise<Secret | undefined> {
    return this.#objects.secret(nameOf(user))
  }

  async write(user: string, hash: string): Promise<void> {
    const current = await this.read(user)
    if (current === undefined) await this.create(user, hash)
    else await this.#objects.client.update(Secrets, { ...current, metadata: metadataOf(user), data: dataOf(hash) })
  }

  /** Throws StatusError 409 if the user has a password. */
  async create(user: string, hash: string): Promise<void> {
    await this.#objects.client.create(Secrets, { metadata: metadataOf(user), data: dataOf(hash) })
  }

  /** Replaces the hash of the same password, unless the password was changed meanwhile. */
  async refresh(read: Secret, hash: string): Promise<void> {
    try {
      await this.#objects.client.update(Secrets, { ...read, data: dataOf(hash) })
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error
    }
  }

  async delete(user: string): Promise<void> {
    try {
      await this.#objects.client.delete(Secrets, { namespace: MANAGEMENT_NAMESPACE, name: nameOf(user) })
    } catch (error) {
      if (!isNotFound(error)) throw error
    }
  }
}

export function hashIn(secret: Secret | undefined): string | undefined {
  const data = secret?.data?.[KEY]
  return data === undefined ? undefined : Buffer.from(data, 'base64').toString()
}

const KEY = 'hash'

function nameOf(user: string): string {
  return `password-${user}`
}

function metadataOf(user: string): { readonly name: string; readonly namespace: string } {
  return { name: nameOf(user), namespace: MANAGEMENT_NAMESPACE }
}

function dataOf(hash: string): Record<string, string> {
  return { [KEY]: Buffer.from(hash).toString('base64') }
}
