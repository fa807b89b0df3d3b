/** Explains objects of a test cluster, for `cluster.why` and for messages of waits that fail. */
import { Deployments, DaemonSets, ReplicaSets, StatefulSets } from '#apis/apps/v1.ts'
import { Jobs } from '#apis/batch/v1.ts'
import { Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient, Where } from '#client/api-client.ts'
import type { Explanation } from '#explain/explanation.ts'

/** Loaded on use: few tests explain objects. */
export async function explainObject(client: ApiClient, kind: Kind, where: Where): Promise<Explanation> {
  const [{ whyObject }, { Reader }] = await Promise.all([import('#explain/explain.ts'), import('#explain/reader.ts')])
  return whyObject(kind, where, new Reader({ client }))
}

const KINDS: readonly Kind[] = [Pods, Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs]

/** The verdict about the object at `/registry/pods/default/web`; undefined if it is of another kind, or nothing is known. */
export async function explainKey(client: ApiClient, key: string): Promise<string | undefined> {
  const [, plural, namespace, name] = /^\/registry\/([^/]+)\/([^/]+)\/([^/]+)$/.exec(key) ?? []
  const kind = KINDS.find((one) => one.plural === plural)
  if (kind === undefined || name === undefined) return undefined
  const explanation = await explainObject(client, kind, { namespace, name })
  const { isNotKnown } = await import('#explain/explanation.ts')
  return isNotKnown(explanation) ? undefined : explanation.verdict
}
