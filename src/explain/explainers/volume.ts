/** Explains why a PersistentVolumeClaim is not bound. */
import { type PersistentVolumeClaim, PersistentVolumeClaims } from '#apis/core/v1.ts'

import { type Explainer, isOf } from '../explainer.ts'
import { nameOf, notKnown } from '../explanation.ts'
import { whyClaimPending } from '../volumes/claim.ts'

export const volume: Explainer = {
  name: 'volume',
  applies: (target) =>
    isOf(target, PersistentVolumeClaims) && (target.object as PersistentVolumeClaim).status.phase !== 'Bound',
  async explain({ object }, reader) {
    const claim = object as PersistentVolumeClaim
    const { phase } = claim.status
    if (phase === 'Pending' || phase === undefined) return whyClaimPending(claim, reader)
    if (phase !== 'Lost') return notKnown(`PersistentVolumeClaim ${nameOf(claim)} has the phase ${phase}`)
    const volumeName = claim.spec.volumeName ?? ''
    return {
      verdict: `PersistentVolumeClaim ${nameOf(claim)} is Lost because its PersistentVolume ${volumeName} does not exist`,
      steps: [
        {
          actor: 'persistentvolume-binder',
          did: `found no PersistentVolume ${volumeName}`,
          object: `persistentvolumeclaims/${nameOf(claim)}`,
          because: [],
          evidence: reader.cite(PersistentVolumeClaims, claim, 'status.phase', 'spec.volumeName'),
          certainty: 'reported',
        },
      ],
      wouldHelp: [],
    }
  },
}
