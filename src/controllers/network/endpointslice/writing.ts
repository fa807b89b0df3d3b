/** Writes planned slices. Expectations track creations and deletions until the cache shows them. */
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import { isNotFound } from '#meta/status.ts'

import type { ControllerContext } from '../../controller.ts'
import type { SlicePlan } from './plan.ts'

export async function applyPlan(
  key: string,
  { create, update, remove }: SlicePlan,
  context: ControllerContext,
  who: 'endpoint_slice_controller' | 'endpoint_slice_mirroring_controller',
): Promise<void> {
  const { client, expectations, meters, signal } = context
  const changes = meters.family(`${who}_changes`)
  for (const slice of update) {
    await client.update(EndpointSlices, slice, { signal })
    changes.labels('update').inc()
  }
  const drafts = [...create]
  const made = await expectations.create(key, drafts.length, () => {
    const draft = drafts.shift()
    return draft === undefined ? Promise.resolve() : client.create(EndpointSlices, draft, { signal })
  })
  if (made.done > 0) changes.labels('create').inc(made.done)
  if ('error' in made) throw made.error
  const gone = await expectations.delete(key, remove, ({ metadata: { namespace, name = '' } }: EndpointSlice) =>
    client.delete(EndpointSlices, { namespace, name }, { signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    }),
  )
  if (gone.done > 0) changes.labels('delete').inc(gone.done)
  if ('error' in gone) throw gone.error
}
