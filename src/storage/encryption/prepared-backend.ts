/**
 * Wraps a backend so that it returns a value only after its decryption key has been fetched. Readers can then decrypt
 * synchronously.
 */
import type { Backend, CommitResult, KeyValue, RangeResult, WatchBatch } from '../backend.ts'
import type { AtRest } from './at-rest.ts'

/**
 * Reads fail with `unavailable` while keys are missing. A watch continues, since all resources share it: the reader
 * fails to open values whose keys are missing.
 */
export function prepareValues(backend: Backend, { prepare }: Pick<AtRest, 'prepare'>): Backend {
  const prepared = {
    commit: async (...args: Parameters<Backend['commit']>): Promise<CommitResult> => {
      const result = await backend.commit(...args)
      // A completed write stays, whether or not the previous value can be opened.
      if (!result.ok) await prepare(valuesOf(result.current))
      return result
    },
    range: async (...args: Parameters<Backend['range']>): Promise<RangeResult> => {
      const result = await backend.range(...args)
      await prepare(valuesOf(result.items))
      return result
    },
    watch: (...args: Parameters<Backend['watch']>): AsyncIterable<WatchBatch> =>
      prepareBatches(backend.watch(...args), prepare),
  }
  return new Proxy(backend, {
    get(target, name) {
      if (Object.hasOwn(prepared, name)) return prepared[name as keyof typeof prepared]
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

async function* prepareBatches(
  batches: AsyncIterable<WatchBatch>,
  prepare: AtRest['prepare'],
): AsyncIterable<WatchBatch> {
  for await (const batch of batches) {
    const items = batch.events.flatMap((event) => (event.previous === undefined ? [event] : [event, event.previous]))
    await prepare(valuesOf(items))?.catch(() => undefined)
    yield batch
  }
}

function valuesOf(items: readonly (Pick<KeyValue, 'value'> | undefined)[]): Uint8Array[] {
  return items.flatMap((item) => (item === undefined ? [] : [item.value]))
}
