/** The versions of lists, and the changes that a watch has still to send: one for each object, so that they need bounded memory. */
import type { KubeObject } from '#meta/object.ts'

/** Identifies what a person has seen of a kind. */
export interface ListVersion {
  /** Other processes count otherwise. */
  readonly process: string
  /** How often an object of the kind was added, changed or deleted. */
  readonly changes: number
  readonly deletions: number
  /** Identifies the rights of the person: with others, other objects are visible. */
  readonly rights: string
}

export function formatVersion({ process, changes, deletions, rights }: ListVersion): string {
  return [process, changes, deletions, rights].join('.')
}

/** Undefined for a text that is no version. */
export function parseVersion(text: string): ListVersion | undefined {
  const [process = '', changes = '', deletions = '', rights = '', ...more] = text.split('.')
  const isVersion = /^\d{1,15}$/.test(changes) && /^\d{1,15}$/.test(deletions) && more.length === 0
  return isVersion ? { process, changes: Number(changes), deletions: Number(deletions), rights } : undefined
}

/** Whether a list of the version `from` can be brought to `now` by sending objects that exist. */
export function canContinue(from: ListVersion | undefined, now: ListVersion): from is ListVersion {
  return from?.process === now.process && from.rights === now.rights && from.deletions === now.deletions
}

export interface WatchEvent {
  readonly type: 'MODIFIED' | 'DELETED'
  readonly object: object
}

/** The latest event of each object that was not sent yet. */
export class ChangedObjects {
  readonly #events = new Map<string, WatchEvent>()
  #wake = (): void => undefined

  add({ metadata }: KubeObject, event: WatchEvent): void {
    const name = metadata.name ?? ''
    this.#events.delete(name)
    this.#events.set(name, event)
    this.#wake()
  }

  clear(): void {
    this.#events.clear()
  }

  /** The oldest event, which is sent from now on. */
  next(): WatchEvent | undefined {
    const [first] = this.#events
    if (first === undefined) return undefined
    this.#events.delete(first[0])
    return first[1]
  }

  /** Resolves when there is an event. */
  changed(): Promise<void> {
    if (this.#events.size > 0) return Promise.resolve()
    return new Promise((resolve) => (this.#wake = resolve))
  }
}
