/** Virtual resources: kinds without stored objects. A handler computes each response. */
import type { Kind } from '#apis/kinds.ts'
import type { Answer, Call } from '#component/requests/call.ts'

import type { Services } from './services.ts'

export type VirtualHandler = (call: Call, services: Services) => Promise<Answer>

export interface VirtualResource {
  readonly kind: Kind
  /** By verb; the kind supports exactly these verbs. */
  readonly handlers: Readonly<Record<string, VirtualHandler>>
  /** A Warning on every response. */
  readonly deprecation?: string
}
