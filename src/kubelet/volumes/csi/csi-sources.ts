/** Reads the Secrets, tokens and VolumeAttachments for CSI drivers from the API server. */
import type { Node, Pod } from '#apis/core/v1.ts'
import type { CSIDriver, VolumeAttachment } from '#apis/storage/v1.ts'
import { goJson } from '#lib/go/text.ts'

import type { TokenOptions } from '../pod-tokens.ts'
import { type CsiSource, podAttributes, type SecretRef, TOKENS_KEY } from './csi-source.ts'

/** Requests to the API server, made as the node. */
export interface CsiSources {
  /** Undefined when it does not exist. */
  driver(name: string): CSIDriver | undefined
  attachment(name: string): Promise<VolumeAttachment>
  secret(ref: SecretRef): Promise<Map<string, string>>
  token(request: TokenOptions): Promise<{ readonly token: string; readonly expirationTimestamp: string }>
  /** From the API server; undefined until it was read. */
  node(): Node | undefined
  /** Sets the claim's capacity to that of the expanded volume. */
  grown(source: CsiSource): Promise<void>
  /** The pod no longer needs anything. */
  forget(uid: string): void
}

export interface PublishParameters {
  readonly attributes: Map<string, string>
  readonly secrets: Map<string, string>
}

/** Volume attributes, pod attributes and service account tokens for the publish call. */
export async function publishParameters(
  sources: CsiSources,
  { pod, source }: { readonly pod: Pod; readonly source: CsiSource },
  object: CSIDriver | undefined,
): Promise<PublishParameters> {
  const secrets = await secretsOf(sources, source.publishSecret, 'NodePublishSecretRef')
  const attributes = new Map(Object.entries({ ...source.attributes, ...podAttributes(pod, source, object) }))
  const requests = object?.spec.tokenRequests ?? []
  if (requests.length === 0) return { attributes, secrets }
  const tokens: Record<string, object> = {}
  for (const { audience, expirationSeconds } of requests.toSorted((a, b) => (a.audience < b.audience ? -1 : 1))) {
    const { token, expirationTimestamp } = await sources.token({ pod, audience, expirationSeconds })
    tokens[audience] = { token, expirationTimestamp }
  }
  const tokenTarget = object?.spec.serviceAccountTokenInSecrets === true ? secrets : attributes
  tokenTarget.set(TOKENS_KEY, goJson(tokens))
  return { attributes, secrets }
}

/** `what` is the field that names the secret. */
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
