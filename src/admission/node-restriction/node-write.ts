/** What the rules for kubelets look at. */
import type { Attributes } from '#apiserver/registry/admission.ts'

import type { Ask } from '../kit/signer-access.ts'

/** One write of a kubelet. */
export interface NodeWrite {
  readonly attributes: Attributes
  readonly node: string
  readonly isEnabled: (gate: string) => boolean
  readonly ask: Ask
}

/** Throws StatusError to refuse. */
export type Rule = (write: NodeWrite) => void | Promise<void>
