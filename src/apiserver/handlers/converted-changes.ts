/**
 * Changes of a resource with a conversion webhook, as its watchers see them. Changes are queued, converted in batches
 * and sent in order.
 */
import type { Reader, FilteredChange, Sink } from '#storage/watch-cache/readers.ts'
import type { Change, ChangeType } from '#storage/watch-cache/ring.ts'

import type { Entry } from '../registry/entry.ts'
import type { VersionConverter } from '../registry/version-converter.ts'
import type { Selection } from './selection.ts'

export interface ConvertedOptions {
  readonly converter: VersionConverter
  readonly selection: Selection
  /** Sends a change; resolves when there is room for more. */
  send(seen: FilteredChange<Entry>): Promise<void>
  failed(error: unknown): void
  expired(): void
  /** The signal of the watch. */
  readonly reader: () => Reader | undefined
  readonly isOver: () => boolean
}

/** Limits the queue: waiting in the ring buffer costs nothing, waiting here does. */
const MAX_WAITING = 200

export function createConvertedSink(options: ConvertedOptions): Sink<Entry> {
  const waiting: Change<Entry>[] = []
  let isRunning = false
  const run = async (): Promise<void> => {
    const { converter } = options
    while (waiting.length > 0 && !options.isOver()) {
      const changes = waiting.splice(0)
      await converter.prepare(
        changes.flatMap(({ entry, previous }) => [entry, previous].filter((one) => one !== undefined)),
      )
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

/** The change as seen through the selection; undefined if it does not concern it. */
function typeFor(selection: Selection, { entry, previous }: Change<Entry>): ChangeType | undefined {
  const was = previous !== undefined && selection.matches(previous)
  if (entry !== undefined && selection.matches(entry)) return was ? 'MODIFIED' : 'ADDED'
  return was ? 'DELETED' : undefined
}
