/** Reads and writes the scale subresource of an autoscaler's target, found through its scaleTargetRef. */
import type { Scale } from '#apis/autoscaling/v1.ts'
import type { CrossVersionObjectReference } from '#apis/autoscaling/v2.ts'
import { type ApiClient, type ApiRequest, pathOf } from '#client/api-client.ts'
import { sleep } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'
import { parseJson } from '#lib/json/json.ts'
import { type GroupKind, parseApiVersion } from '#meta/kind.ts'
import { isConflict } from '#meta/status.ts'

import type { ServedKinds } from '../../objects/served-kinds.ts'

const MAX_BYTES = 1 << 20
/** Attempts on write conflicts, as client-go. */
const WRITES = 5
const PAUSE_MS = 10

export function noMatch({ group, kind }: GroupKind): string {
  return `no matches for kind ${goQuote(kind)} in group ${goQuote(group)}`
}

export interface Target {
  readonly path: string
  readonly about: NonNullable<ApiRequest['about']>
  readonly scale: Scale
}

interface TargetTools {
  readonly client: ApiClient
  readonly kinds: ServedKinds
  readonly signal: AbortSignal
}

/** Reads the target. Throws errors for users. */
export async function readTarget(
  namespace: string,
  { apiVersion = '', kind, name }: CrossVersionObjectReference,
  { client, kinds, signal }: TargetTools,
): Promise<Target> {
  if (apiVersion.split('/').length > 2) throw new Error(`unexpected GroupVersion string: ${apiVersion}`)
  const wanted = { group: parseApiVersion(apiVersion).group, kind }
  const [served] = await kinds.ofKind(wanted)
  if (served === undefined) throw new Error(noMatch(wanted))
  const path = pathOf(served, { namespace, name, subresource: 'scale' })
  const about = { resource: { group: '', resource: served.plural }, name }
  return { path, about, scale: await readScale(client, { path, about }, signal) }
}

async function readScale(
  client: ApiClient,
  { path, about }: Omit<Target, 'scale'>,
  signal: AbortSignal,
): Promise<Scale> {
  const response = await client.ask({ method: 'GET', path, about, signal })
  return parseJson(await response.bytes(MAX_BYTES)) as unknown as Scale
}

export async function writeScale(
  client: ApiClient,
  target: Target,
  replicas: number,
  signal: AbortSignal,
): Promise<void> {
  let { scale } = target
  for (let left = WRITES; ; left--) {
    try {
      const body = { ...scale, spec: { ...scale.spec, replicas } }
      const { path, about } = target
      const response = await client.ask({ method: 'PUT', path, about, body, signal })
      response.discard()
      return
    } catch (error) {
      if (!isConflict(error) || left === 1) throw error
      scale = await readScale(client, target, signal).catch(() => scale)
      await sleep(client.clock, PAUSE_MS, signal)
    }
  }
}
