/** The kinds of each cluster, read when a page needs them first and again on demand. */
import { signal, type ReadonlySignal, type Signal } from '@preact/signals'

import { type Kind, loadKinds } from '../api/kinds.ts'
import { RequestError } from '../api/request.ts'

export interface LoadedKinds {
  readonly kinds: readonly Kind[]
  readonly error?: RequestError
  readonly isLoading: boolean
}

const byCluster = new Map<string, Signal<LoadedKinds>>()

export function kindsOfCluster(cluster: string): ReadonlySignal<LoadedKinds> {
  const known = byCluster.get(cluster)
  if (known !== undefined) return known
  const loaded = signal<LoadedKinds>({ kinds: [], isLoading: true })
  byCluster.set(cluster, loaded)
  reloadKinds(cluster)
  return loaded
}

export function reloadKinds(cluster: string): void {
  const loaded = byCluster.get(cluster)
  if (loaded === undefined) return
  loaded.value = { ...loaded.value, isLoading: true }
  loadKinds(cluster).then(
    (kinds) => (loaded.value = { kinds: sameOr(loaded.value.kinds, kinds), isLoading: false }),
    (error: unknown) => {
      if (!(error instanceof RequestError)) throw error
      loaded.value = { kinds: loaded.value.kinds, isLoading: false, error }
    },
  )
}

/** Pages draw again only for other kinds. */
function sameOr(before: readonly Kind[], after: readonly Kind[]): readonly Kind[] {
  return JSON.stringify(before) === JSON.stringify(after) ? before : after
}
