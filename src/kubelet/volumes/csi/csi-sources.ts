/** What drivers are given that only the API server knows: secrets, tokens, attachments. */
import type { Node, Pod } from '#apis/core/v1.ts'
import type { CSIDriver, VolumeAttachment } from '#apis/storage/v1.ts'
import { goJson } from '#lib/go-text.ts'

import type { TokenAsk } from '../volume-plugin.ts'
import { type CsiSource, podAttributes, type SecretRef, TOKENS_KEY } from './csi-source.ts'

/** What is asked of the API server, with the identity of the node. */
export interface CsiSources {
  /** Undefined when there is none. */
  driver(name: string): CSIDriver | undefined
  attachment(name: string): Promise<VolumeAttachment>
  secret(ref: SecretRef): Promise<Map<string, string>>
  token(ask: TokenAsk): Promise<{ readonly token: string; readonly expirationTimestamp: string }>
  /** As the API server has it; undefined until it was read. */
  node(): Node | undefined
  /** The claim of a volume says from now on that it is as large as what stands behind it. */
  grown(source: CsiSource): Promise<void>
  /** Nothing of the pod is needed any more. */
  forget(uid: string): void
}

export interface Told {
  readonly attributes: Map<string, string>
  readonly secrets: Map<string, string>
}

/** What the volume says of itself, what the driver wants to know of the pod, and tokens of its service account. */
export async function toldOf(
  sources: CsiSources,
  { pod, source }: { readonly pod: Pod; readonly source: CsiSource },
  object: CSIDriver | undefined,
): Promise<Told> {
  const secrets = await secretsOf(sources, source.publishSecret, 'NodePublishSecretRef')
  const attributes = new Map(Object.entries({ ...source.attributes, ...podAttributes(pod, source, object) }))
  const requests = object?.spec.tokenRequests ?? []
  if (requests.length === 0) return { attributes, secrets }
  const tokens: Record<string, object> = {}
  for (const { audience, expirationSeconds } of requests.toSorted((a, b) => (a.audience < b.audience ? -1 : 1))) {
    const { token, expirationTimestamp } = await sources.token({ pod, audience, expirationSeconds })
    tokens[audience] = { token, expirationTimestamp }
  }
  const place = object?.spec.serviceAccountTokenInSecrets === true ? secrets : attributes
  place.set(TOKENS_KEY, goJson(tokens))
  return { attributes, secrets }
}

/** `what`: the field that names it. */
export async function secretsOf(
  sources: CsiSources,
  ref: SecretRef | undefined,
  what: string,
): Promise<Map<string, string>> {
  if (ref === undefined) return new Map()
  return sources.secret(ref).catch((error: Error) => {
    const which = `${what} ${ref.namespace}/${ref.name}`
    throw new Error(`fetching ${which} failed: ${error.message}`, { cause: error })
  })
}
