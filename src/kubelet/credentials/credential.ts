/** Whom to be before a registry, and whose right that is. Pure. */
import { createHash } from 'node:crypto'

import { goJson } from '#lib/go-text.ts'
import type { Input } from '#lib/protobuf/message.ts'

import type { AuthConfig } from '../cri/runtime-messages.ts'

/** Of an object that pods of its namespace may use. */
export interface Coordinates {
  readonly uid: string
  readonly namespace: string
  readonly name: string
}

export interface Credential {
  readonly auth: Input<AuthConfig>
  /** Of a secret, or of an account; neither: every pod of the node may be it. */
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

/** As upstream's: of what is there, in its order. */
export function credentialHash(
  { username, password, identityToken, registryToken }: Input<AuthConfig>,
  email = '',
): string {
  const fields = { username, password, email, identitytoken: identityToken, registrytoken: registryToken }
  const said = Object.fromEntries(Object.entries(fields).filter(([, text]) => text !== undefined && text !== ''))
  return createHash('sha256').update(goJson(said)).digest('hex')
}
