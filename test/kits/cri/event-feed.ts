/** Distributes the container events of the in-memory runtime to all readers. */
import type { ContainerEventResponse } from '#apis/wire/cri.ts'
import { onAbort } from '#lib/abort.ts'
import { Fifo } from '#lib/collections/fifo.ts'
import { GrpcError } from '#lib/grpc/status.ts'

/** As in containerd, a slow reader loses events and has to list again. */
const MAX_WAITING = 1000

interface Reader {
  readonly events: Fifo<ContainerEventResponse>
  wake: (() => void) | undefined
}

export class EventFeed {
  readonly #describe: (containerId: string, type: number) => ContainerEventResponse
  readonly #readers = new Set<Reader>()

  constructor(describe: (containerId: string, type: number) => ContainerEventResponse) {
    this.#describe = describe
  }

  publish(containerId: string, type: number): void {
    if (this.#readers.size === 0) return
    const event = this.#describe(containerId, type)
    for (const reader of this.#readers) {
      if (reader.events.size < MAX_WAITING) reader.events.push(event)
      reader.wake?.()
    }
  }

  /** Events from the first read on, until the signal is aborted. */
  async *read(signal?: AbortSignal): AsyncGenerator<ContainerEventResponse, void, undefined> {
    const reader: Reader = { events: new Fifo(), wake: undefined }
    this.#readers.add(reader)
    const release = onAbort(signal, () => reader.wake?.())
    try {
      for (;;) {
        const event = reader.events.shift()
        if (event !== undefined) yield event
        else if (signal?.aborted === true) throw new GrpcError('cancelled', 'The call was cancelled')
        else await new Promise<void>((resolve) => (reader.wake = resolve))
      }
    } finally {
      release()
      this.#readers.delete(reader)
    }
  }
}
