/** Explains the claims that keep a pod from being scheduled. */
import { type PersistentVolumeClaim, PersistentVolumeClaims, type Pod } from '#apis/core/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { claimNameOf, storageClassOf } from '#model/volumes/volumes.ts'

import { hiddenStep, isNotKnown, nameOf, type Step } from '../explanation.ts'
import { HIDDEN, type Reader } from '../reader.ts'
import { whyClaimPending } from './claim.ts'

interface ClaimReasons {
  /** Absent: the claims explain nothing. */
  readonly verdict?: string
  readonly steps: readonly Step[]
  readonly wouldHelp: readonly string[]
}

const NOTHING: ClaimReasons = { steps: [], wouldHelp: [] }

/** Of the first claim that is missing or not bound. */
export async function whyClaims(pod: Pod, reader: Reader): Promise<ClaimReasons> {
  const { namespace } = pod.metadata
  for (const volume of pod.spec.volumes ?? []) {
    const name = claimNameOf(pod, volume)
    if (name === undefined) continue
    const claim = await reader.get(PersistentVolumeClaims, { namespace, name })
    if (claim === HIDDEN) return { ...NOTHING, steps: [hiddenStep()] }
    const head = `Pod ${nameOf(pod)} is Pending because its PersistentVolumeClaim ${name}`
    if (claim === undefined) {
      const wouldHelp = volume.ephemeral === undefined ? [`create the PersistentVolumeClaim ${name}`] : []
      return { verdict: `${head} does not exist`, steps: [], wouldHelp }
    }
    if (isBeingDeleted(claim)) return { ...NOTHING, verdict: `${head} is being deleted` }
    if (claim.status.phase === 'Lost') return { ...NOTHING, verdict: `${head} has lost its volume` }
    if (claim.status.phase === 'Bound' || (await isDelayed(claim, reader))) continue
    const finding = await whyClaimPending(claim, reader)
    const verdict = isNotKnown(finding)
      ? `${head} is not bound`
      : `Pod ${nameOf(pod)} is Pending because its ${finding.verdict}`
    return { verdict, steps: finding.steps, wouldHelp: finding.wouldHelp }
  }
  return NOTHING
}

/** It waits for the pod, not the pod for it. */
async function isDelayed(claim: PersistentVolumeClaim, reader: Reader): Promise<boolean> {
  const name = storageClassOf(claim)
  const found = name === '' ? undefined : await reader.get(StorageClasses, { name })
  return found !== HIDDEN && found?.volumeBindingMode === 'WaitForFirstConsumer'
}
