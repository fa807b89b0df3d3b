/**
 * Trail: who made the newest writes of this server, and why. It is in memory and bounded: after a restart, and for
 * writes of other servers, the writer is not known.
 */
import { activeCauses, type Cause } from '#lib/causes.ts'
import type { Revision } from '#storage/backend.ts'

import type { WriteRequest } from './services.ts'

export interface WriteNote {
  /** The name of the user, after impersonation. */
  readonly user: string
  readonly verb: string
  readonly manager: string
  /** Empty for a write of the server itself. */
  readonly auditId: string
  /** The objects whose changes led to the write, if the writer runs in this process and knows them. */
  readonly because: readonly Cause[]
}

const MAX_NOTES = 50_000

export type NotedRequest = Pick<WriteRequest, 'user' | 'verb' | 'manager' | 'auditId'>

export class Trail {
  /** In order of insertion, so that the first is the oldest. */
  readonly #notes = new Map<Revision, WriteNote>()

  note(revision: Revision, { user, verb = 'update', manager, auditId = '' }: NotedRequest): void {
    this.#notes.set(revision, { user: user.name, verb, manager, auditId, because: activeCauses() })
    if (this.#notes.size <= MAX_NOTES) return
    for (const oldest of this.#notes.keys()) {
      this.#notes.delete(oldest)
      return
    }
  }

  of(revision: Revision): WriteNote | undefined {
    return this.#notes.get(revision)
  }
}
