/** Sends calls to the reader thread, and joins the parts of its answers. */
import type { Clock } from '#lib/clock.ts'

import type { KeyValue, StorageError, StorageEvent } from '../backend.ts'
import { fromPlain } from './failures.ts'
import {
  takingFrom,
  type FromCall,
  type Part,
  type ReaderCall,
  type ReaderMethod,
  type ReaderMethods,
} from './messages.ts'

interface Call {
  readonly part: (part: Part) => void
  readonly resolve: (value: unknown) => void
  readonly reject: (error: StorageError) => void
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined
  readonly part?: (part: Part) => void
}

export class ReadCalls {
  readonly #post: (call: ReaderCall) => void
  readonly #clock: Pick<Clock, 'during'>
  readonly #calls = new Map<number, Call>()
  #lastId = 0
  #failure: StorageError | undefined

  constructor(post: (call: ReaderCall) => void, clock: Pick<Clock, 'during'>) {
    this.#post = post
    this.#clock = clock
  }

  /** Rejects with the signal's reason when aborted; the thread finishes its work all the same. */
  call<M extends ReaderMethod>(
    method: M,
    argument: Parameters<ReaderMethods[M]>[0],
    { signal, part = () => undefined }: CallOptions = {},
  ): Promise<Awaited<ReturnType<ReaderMethods[M]>>> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    const id = ++this.#lastId
    const answer = new Promise<Awaited<ReturnType<ReaderMethods[M]>>>((resolve, reject) => {
      const abort = (): void => {
        this.#calls.delete(id)
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the contract: the signal's own reason
        reject(signal?.reason)
      }
      const done = (): void => {
        this.#calls.delete(id)
        signal?.removeEventListener('abort', abort)
      }
      signal?.addEventListener('abort', abort, { once: true })
      this.#calls.set(id, {
        part,
        resolve(value) {
          done()
          resolve(value as Awaited<ReturnType<ReaderMethods[M]>>)
        },
        reject(error) {
          done()
          reject(error)
        },
      })
      this.#post({ id, method, argument })
    })
    return this.#clock.during(answer)
  }

  deliver(message: FromCall): void {
    const call = this.#calls.get(message.id)
    if (call === undefined) return
    if (message.type === 'part') call.part(message.part)
    else if (message.type === 'answer') call.resolve(message.value)
    else call.reject(fromPlain(message.error))
  }

  /** Fails all pending and later calls. */
  fail(error: StorageError): void {
    this.#failure ??= error
    for (const call of this.#calls.values()) call.reject(error)
  }
}

export function unpackRange({ flat, values }: Part, into: KeyValue[]): void {
  const take = takingFrom(values)
  for (let at = 0; at < flat.length; at += 5) {
    into.push({
      key: flat[at] as string,
      value: take(flat[at + 1] as number),
      createRevision: flat[at + 2] as number,
      modRevision: flat[at + 3] as number,
      lease: flat[at + 4] as number,
    })
  }
}

export function unpackEvents({ flat, values }: Part, into: StorageEvent[]): void {
  const take = takingFrom(values)
  for (let at = 0; at < flat.length; at += 9) {
    const key = flat[at] as string
    const bytes = flat[at + 1] as number | null
    const value = bytes === null ? null : take(bytes)
    const previous = flat[at + 5] === 0 ? undefined : unpackPast(flat, at + 5, { key, take })
    into.push({
      type: value === null ? 'delete' : 'put',
      key,
      value: value ?? (previous as KeyValue).value,
      createRevision: flat[at + 2] as number,
      modRevision: flat[at + 3] as number,
      lease: value === null ? (previous as KeyValue).lease : (flat[at + 4] as number),
      ...(previous !== undefined && { previous }),
    })
  }
}

function unpackPast(
  flat: readonly unknown[],
  at: number,
  { key, take }: { readonly key: string; readonly take: (bytes: number) => Uint8Array },
): KeyValue {
  return {
    key,
    value: take(flat[at + 3] as number),
    createRevision: flat[at + 1] as number,
    modRevision: flat[at] as number,
    lease: flat[at + 2] as number,
  }
}
