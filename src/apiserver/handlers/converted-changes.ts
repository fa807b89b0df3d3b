/**
 * Changes of a resource whose objects others convert: what a change is to a selection is known only when the objects have
 * come back. Changes wait in a row, are asked about together, and go on in the order in which they came.
 */
import type { Reader, Seen, Sink } from '#storage/watch-cache/readers.ts'
import type { Change, ChangeType } from '#storage/watch-cache/ring.ts'

import type { Entry } from '../registry/entry.ts'
import type { Lens } from '../registry/lens.ts'
import type { Selection } from './selection.ts'

export interface ConvertedOptions {
  readonly lens: Lens
  readonly selection: Selection
  /** Sends it on; resolves when there is room for more. */
  send(seen: Seen<Entry>): Promise<void>
  failed(error: unknown): void
  expired(): void
  /** Of the watch that this is for. */
  readonly reader: () => Reader | undefined
  readonly isOver: () => boolean
}

/** Waiting in the ring costs nothing, waiting here does. */
const MAX_WAITING = 200

export function createConvertedSink(options: ConvertedOptions): Sink<Entry> {
  const waiting: Change<Entry>[] = []
  let isRunning = false
  const run = async (): Promise<void> => {
    const { lens } = options
    while (waiting.length > 0 && !options.isOver()) {
      const changes = waiting.splice(0)
      await lens.prepare(changes.flatMap(({ entry, previous }) => [entry, previous].filter((one) => one !== undefined)))
      for (const change of changes) {
        const type = typeFor(options.selection, change)
        if (type !== undefined && !options.isOver()) await options.send({ type, change })
      }
    }
  }
  return {
    change(_type, change) {
      waiting.push(change)
      if (!isRunning) {
        isRunning = true
        void run()
          .catch((error: unknown) => options.failed(error))
          .finally(() => {
            isRunning = false
            options.reader()?.resume()
          })
      }
      return waiting.length < MAX_WAITING
    },
    expired: () => options.expired(),
  }
}

/** What a change is to those who see only the selection; undefined when it is nothing to them. */
function typeFor(selection: Selection, { entry, previous }: Change<Entry>): ChangeType | undefined {
  const was = previous !== undefined && selection.matches(previous)
  if (entry !== undefined && selection.matches(entry)) return was ? 'MODIFIED' : 'ADDED'
  return was ? 'DELETED' : undefined
}
