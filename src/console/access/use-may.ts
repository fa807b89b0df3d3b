/** Asks the API server what the user may do, so that the page offers only that. */
import { useEffect, useState } from 'preact/hooks'

import type { SelfSubjectAccessReview } from '#apis/authorization/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { clusterPath, type KindAddress } from '../api/kinds.ts'
import { RequestError, sendForJson } from '../api/request.ts'
import { now } from '../browser/time.ts'

export interface Wanted {
  readonly verb: string
  readonly kind: KindAddress
  readonly subresource?: string | undefined
  readonly object: Pick<KubeObject, 'metadata'>
}

/** Rights change: an answer is used for so long. */
const VALID_MS = 30_000

const answers = new Map<string, { readonly atMs: number; readonly allowed: Promise<boolean> }>()

/** False until the server has answered. */
export function useMay(cluster: string, wanted: Wanted): boolean {
  const [allowed, setAllowed] = useState(false)
  const key = keyOf(cluster, wanted)
  useEffect(() => {
    let isOver = false
    may(cluster, wanted).then(
      (answer) => (isOver ? undefined : setAllowed(answer)),
      () => undefined,
    )
    return () => {
      isOver = true
    }
  }, [key])
  return allowed
}

/** The answers in the order of the questions. */
export function useMayEach(cluster: string, wanted: readonly Wanted[]): readonly boolean[] {
  const [found, setFound] = useState<{ readonly key: string; readonly allowed: readonly boolean[] }>()
  const key = wanted.map((one) => keyOf(cluster, one)).join('\n')
  useEffect(() => {
    let isOver = false
    Promise.all(wanted.map((one) => may(cluster, one))).then(
      (allowed) => (isOver ? undefined : setFound({ key, allowed })),
      () => undefined,
    )
    return () => {
      isOver = true
    }
  }, [key])
  return found?.key === key ? found.allowed : []
}

/** False also if the server cannot be asked. */
function may(cluster: string, wanted: Wanted): Promise<boolean> {
  const key = keyOf(cluster, wanted)
  const known = answers.get(key)
  if (known !== undefined && now() - known.atMs < VALID_MS) return known.allowed
  const allowed = ask(cluster, wanted)
  answers.set(key, { atMs: now(), allowed })
  return allowed
}

async function ask(cluster: string, { verb, kind, subresource = '', object }: Wanted): Promise<boolean> {
  const { name = '', namespace = '' } = object.metadata
  const { group, version, plural: resource } = kind
  const resourceAttributes = { verb, group, version, resource, subresource, name, namespace }
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes },
  }
  try {
    const path = clusterPath(cluster, '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews')
    const { status } = await sendForJson<SelfSubjectAccessReview>(path, { method: 'POST', body: review })
    return status?.allowed ?? false
  } catch (error) {
    if (error instanceof RequestError) return false
    throw error
  }
}

function keyOf(cluster: string, { verb, kind, subresource = '', object }: Wanted): string {
  const { name = '', namespace = '' } = object.metadata
  return [cluster, verb, kind.group, kind.plural, subresource, namespace, name].join(' ')
}
