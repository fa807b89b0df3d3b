/** The data about a kubelet's write that the rules of NodeRestriction receive. */
import type { Attributes } from '#apiserver/registry/admission.ts'

import type { Authorize } from '../kit/signer-access.ts'

/** One write of a kubelet. */
export interface NodeWrite {
  readonly attributes: Attributes
  readonly node: string
  readonly isEnabled: (gate: string) => boolean
  readonly ask: Authorize
}

/** Throws StatusError to refuse. */
export type Rule = (write: NodeWrite) => void | Promise<void>
