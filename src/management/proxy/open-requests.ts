/**
 * Tracks open requests to managed clusters, such as watches and shells. It aborts them soon after the token ends, the
 * user is disabled or the user's roles change.
 */
import { type Clock, every, type Timer } from '#lib/clock.ts'
import { tooManyRequestsError } from '#meta/status-errors.ts'

import { Tokens } from '../kinds/token.ts'
import { Users } from '../kinds/user.ts'
import type { ClusterUser } from '../links/link.ts'
import type { ManagementObjects } from '../objects.ts'
import type { Person } from '../person.ts'

interface OpenRequest {
  readonly person: Person
  readonly user: ClusterUser
  /** The user as a new request would have it; undefined: it would be refused. */
  readonly current: (person: Person) => ClusterUser | undefined
  readonly controller: AbortController
}

const CHECK_MS = 2000
/** Enough for watches of one user in many clusters; connections that a client does not read must not exhaust memory. */
const MAX_OF_USER = 2000
const RETRY_SECONDS = 5

export class OpenRequests {
  readonly #objects: Pick<ManagementObjects, 'get' | 'clock'>
  readonly #open = new Set<OpenRequest>()
  /** By the name of the user. */
  readonly #counts = new Map<string, number>()
  readonly #timer: Timer

  constructor(objects: Pick<ManagementObjects, 'get'> & { readonly clock: Clock }) {
    this.#objects = objects
    this.#timer = every(objects.clock, CHECK_MS, () => this.#check())
  }

  /** Throws StatusError 429 if the user has too many. Otherwise runs `work` with a signal that is aborted when the person may not do it any more. */
  async during<T>(request: Omit<OpenRequest, 'controller'>, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const open = { ...request, controller: new AbortController() }
    const { name } = request.user
    const count = this.#counts.get(name) ?? 0
    if (count >= MAX_OF_USER) throw tooManyRequestsError(`the user has ${count} requests under way`, RETRY_SECONDS)
    this.#counts.set(name, count + 1)
    this.#open.add(open)
    try {
      return await work(open.controller.signal)
    } finally {
      this.#open.delete(open)
      const left = (this.#counts.get(name) ?? 1) - 1
      if (left > 0) this.#counts.set(name, left)
      else this.#counts.delete(name)
    }
  }

  /** Cuts all of them off. */
  endAll(why: string): void {
    for (const { controller } of this.#open) controller.abort(new Error(why))
  }

  close(): void {
    this.#timer.cancel()
    this.endAll('The server is stopping')
  }

  #check(): void {
    for (const open of this.#open) if (!this.#isAllowed(open)) open.controller.abort(new Error('The access has ended'))
  }

  #isAllowed({ person, user, current }: OpenRequest): boolean {
    const token = this.#objects.get(Tokens, person.token.metadata.name ?? '')
    const owner = this.#objects.get(Users, person.user.metadata.name ?? '')
    if (token === undefined || owner === undefined) return false
    if (token.spec.disabled === true || owner.spec.disabled === true) return false
    if (Date.parse(token.spec.expiresAt) <= this.#objects.clock.now()) return false
    const now = current({ ...person, token, user: owner })
    return now !== undefined && now.groups.join() === user.groups.join()
  }
}
