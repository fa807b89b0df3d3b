/** Types of registry credentials and of their sources. Pure. */
import { createHash } from 'node:crypto'

import type { AuthConfig } from '#apis/wire/cri.ts'
import { goJson } from '#lib/go/text.ts'
import type { Input } from '#lib/protobuf/message.ts'

/** Identifies an object that pods of its namespace may use. */
export interface Coordinates {
  readonly uid: string
  readonly namespace: string
  readonly name: string
}

export interface Credential {
  readonly auth: Input<AuthConfig>
  /** The Secret or ServiceAccount it came from; neither: every pod of the node may use it. */
  readonly secret?: Coordinates & { readonly credentialHash: string }
  readonly serviceAccount?: Coordinates
}

export function coordinatesOf({
  uid = '',
  namespace = '',
  name = '',
}: {
  readonly uid?: string
  readonly namespace?: string
  readonly name?: string
}): Coordinates {
  return { uid, namespace, name }
}

/** Upstream's hash of the non-empty fields, in its order. */
export function credentialHash(
  { username, password, identityToken, registryToken }: Input<AuthConfig>,
  email = '',
): string {
  const fields = { username, password, email, identitytoken: identityToken, registrytoken: registryToken }
  const present = Object.fromEntries(Object.entries(fields).filter(([, text]) => text !== undefined && text !== ''))
  return createHash('sha256').update(goJson(present)).digest('hex')
}
