/** Virtual resources: kinds with paths of their own and nothing stored behind them, answered by their own handlers. */
import type { Kind } from '#apis/kinds.ts'

import type { Answer, Call } from '../call.ts'
import type { Services } from './services.ts'

export type VirtualHandler = (call: Call, services: Services) => Promise<Answer>

export interface VirtualResource {
  readonly kind: Kind
  /** By verb; the verbs of the kind and no others. */
  readonly handlers: Readonly<Record<string, VirtualHandler>>
  /** A Warning on every answer. */
  readonly deprecation?: string
}
