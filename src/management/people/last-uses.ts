/** Records when each token was last used: in memory at each request, and in the Token's status once a minute. */
import { type PeriodicTask, runPeriodically } from '#lib/periodic.ts'
import { isNotFound } from '#meta/status.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'

import { type Token, Tokens } from '../kinds/token.ts'
import type { ManagementObjects } from '../objects.ts'

interface LastUse {
  atMs: number
  address: string
  isWritten: boolean
}

const WRITE_MS = 60_000

export class LastUses {
  readonly #objects: ManagementObjects
  readonly #uses = new Map<string, LastUse>()
  readonly #writer: PeriodicTask

  constructor(objects: ManagementObjects) {
    this.#objects = objects
    const onError = (error: unknown): void => objects.log.error(error, 'Failed to write last use of tokens')
    this.#writer = runPeriodically({ clock: objects.clock, periodMs: WRITE_MS, onError }, () => this.#write())
  }

  note(name: string, address: string): void {
    const use = this.#uses.get(name)
    const atMs = this.#objects.clock.now()
    if (use === undefined) this.#uses.set(name, { atMs, address, isWritten: false })
    else Object.assign(use, { atMs, address, isWritten: false })
  }

  /** In milliseconds. A token that was never used counts as used when it was created. */
  of({ metadata, status }: Token): number {
    const noted = this.#uses.get(metadata.name ?? '')?.atMs ?? -Infinity
    const stored = status?.lastUsedAt ?? metadata.creationTimestamp
    return stored === undefined ? noted : Math.max(noted, epochMsOf(stored))
  }

  forget(name: string): void {
    this.#uses.delete(name)
  }

  /** One after the other, so that these writes never crowd out others. */
  async #write(): Promise<void> {
    for (const [name, use] of this.#uses) {
      if (use.isWritten) continue
      use.isWritten = true
      await this.#writeOne(name, use)
    }
  }

  async #writeOne(name: string, { atMs, address }: LastUse): Promise<void> {
    const status = { lastUsedAt: timeOf(atMs), lastAddress: address }
    // Another replica may have seen a later use.
    const isLater = ({ status: { lastUsedAt } = {} }: Token): boolean =>
      lastUsedAt === undefined || epochMsOf(lastUsedAt) < atMs
    const change = (token: Token): Token | undefined => (isLater(token) ? { ...token, status } : undefined)
    try {
      await this.#objects.change(Tokens, name, change, { subresource: 'status' })
    } catch (error) {
      if (!isNotFound(error)) throw error
      this.#uses.delete(name)
    }
  }

  async close(): Promise<void> {
    await this.#writer.stop()
    await this.#write().catch((error: unknown) => {
      this.#objects.log.error(error, 'Failed to write last use of tokens')
    })
  }
}
