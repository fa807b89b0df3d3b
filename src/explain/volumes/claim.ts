/** Explains why a PersistentVolumeClaim has no volume: repeats the binder's search, and names what differs. */
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
  Pods,
} from '#apis/core/v1.ts'
import { type StorageClass, StorageClasses } from '#apis/storage/v1.ts'
import { asSelector } from '#meta/label-selector.ts'
import { matchesLabels } from '#meta/labels.ts'
import { objectKey } from '#meta/object.ts'
import { quantityText } from '#meta/quantity.ts'
import { SELECTED_NODE } from '#model/volumes/binding.ts'
import { capacityOf, findMatch, mismatchOf, requestOf } from '#model/volumes/matching.ts'
import { claimKeysOf, DEFAULT_STORAGE_CLASS_MARKS, hasStorageClass, storageClassOf } from '#model/volumes/volumes.ts'

import { eventsOf, eventStep, newestEvent } from '../events.ts'
import { type Finding, hiddenStep, nameOf, notKnown, type Step } from '../explanation.ts'
import { HIDDEN, type Reader } from '../reader.ts'

const NO_PROVISIONER = 'kubernetes.io/no-provisioner'
const FAILURES = ['ProvisioningFailed', 'VolumeMismatch']
const MAX_VOLUMES = 3

interface ClaimCase {
  readonly claim: PersistentVolumeClaim
  readonly reader: Reader
  /** `Claim default/data is Pending because`. */
  readonly head: string
}

export async function whyClaimPending(claim: PersistentVolumeClaim, reader: Reader): Promise<Finding> {
  const one = { claim, reader, head: `PersistentVolumeClaim ${nameOf(claim)} is Pending because` }
  const name = storageClassOf(claim)
  if (!hasStorageClass(claim)) return whyNoClass(one)
  if (name === '') return whyNoVolume(one)
  const found = await reader.get(StorageClasses, { name })
  if (found === HIDDEN) return notKnown(`you may not get the StorageClass of ${nameOf(claim)}`, [hiddenStep()])
  if (found === undefined) {
    const volumes = await reader.list(PersistentVolumes)
    const hasVolumes = volumes !== HIDDEN && volumes.some((volume) => storageClassOf(volume) === name)
    if (hasVolumes) return whyNoVolume(one)
    const evidence = reader.cite(PersistentVolumeClaims, claim, 'spec.storageClassName')
    return {
      verdict: `${one.head} its StorageClass ${name} does not exist`,
      steps: [stepOf(one, `names the StorageClass ${name}, which does not exist`, evidence)],
      wouldHelp: [`create the StorageClass ${name}, or a claim with another storageClassName`],
    }
  }
  return whyOfClass(one, found)
}

function stepOf({ claim }: ClaimCase, did: string, evidence: Step['evidence']): Step {
  const object = `persistentvolumeclaims/${nameOf(claim)}`
  return { actor: 'persistentvolume-binder', did, object, because: [], evidence, certainty: 'recomputed' }
}

async function whyNoClass(one: ClaimCase): Promise<Finding> {
  const classes = await one.reader.list(StorageClasses)
  if (classes === HIDDEN) return notKnown('you may not list StorageClasses', [hiddenStep()])
  const isDefault = ({ metadata: { annotations = {} } }: StorageClass): boolean =>
    DEFAULT_STORAGE_CLASS_MARKS.some((mark) => annotations[mark] === 'true')
  if (classes.some(isDefault)) return whyNoVolume(one)
  const volumes = await whyNoVolume(one)
  return {
    verdict: `${one.head} it names no StorageClass and no StorageClass is the default`,
    steps: [stepOf(one, 'names no StorageClass, and the cluster has no default', []), ...volumes.steps],
    wouldHelp: ['name a StorageClass in spec.storageClassName, or mark one as the default'],
  }
}

async function whyOfClass(one: ClaimCase, storageClass: StorageClass): Promise<Finding> {
  const { claim, reader, head } = one
  const name = storageClass.metadata.name ?? ''
  const isDelayed = storageClass.volumeBindingMode === 'WaitForFirstConsumer'
  const evidence = [
    ...reader.cite(PersistentVolumeClaims, claim, 'spec.storageClassName'),
    ...reader.cite(StorageClasses, storageClass, 'volumeBindingMode', 'provisioner'),
  ]
  if (isDelayed && claim.metadata.annotations?.[SELECTED_NODE] === undefined) {
    const users = await consumersOf(claim, reader)
    if (users === HIDDEN) return notKnown('you may not list the pods that could use the claim', [hiddenStep()])
    const consumer = users.length === 0 ? 'no pod uses it' : `the pod ${users[0]} has no node yet`
    return {
      verdict: `${head} its StorageClass ${name} waits for the first consumer, and ${consumer}`,
      steps: [stepOf(one, `waits for the first pod, because ${name} binds with WaitForFirstConsumer`, evidence)],
      wouldHelp: users.length === 0 ? ['create a pod that uses the claim'] : [],
    }
  }
  if (storageClass.provisioner === NO_PROVISIONER) return whyNoVolume(one)
  const failure = newestEvent(await eventsOf(claim, reader), ...FAILURES)
  if (failure !== undefined) {
    return {
      verdict: `${head} its volume cannot be created: ${failure.message ?? ''}`,
      steps: [stepOf(one, `leaves the volume to ${storageClass.provisioner}`, evidence), eventStep(failure, reader)],
      wouldHelp: [],
    }
  }
  const steps = [stepOf(one, `leaves the volume to ${storageClass.provisioner}`, evidence)]
  return notKnown(
    `the provisioner ${storageClass.provisioner} has not created the volume and has reported no failure`,
    steps,
  )
}

async function consumersOf(claim: PersistentVolumeClaim, reader: Reader): Promise<string[] | typeof HIDDEN> {
  const { namespace = '' } = claim.metadata
  const pods = await reader.list(Pods, { namespace })
  if (pods === HIDDEN) return HIDDEN
  return pods.filter((pod) => claimKeysOf(pod).includes(objectKey(claim))).map(nameOf)
}

/** The claim needs a volume that exists already. */
async function whyNoVolume(one: ClaimCase): Promise<Finding> {
  const { claim, reader, head } = one
  const volumes = await reader.list(PersistentVolumes)
  if (volumes === HIDDEN) return notKnown('you may not list PersistentVolumes', [hiddenStep()])
  const match = findMatch(claim, volumes, false)
  if (match !== undefined) {
    const name = match.metadata.name ?? ''
    return notKnown(
      `the volume ${name} matches ${nameOf(claim)} by the objects now, and the controller has not bound it`,
    )
  }
  const request = `${quantityText(requestOf(claim))} of class "${storageClassOf(claim)}"`
  if (volumes.length === 0) {
    const evidence = reader.cite(PersistentVolumeClaims, claim, 'spec.resources.requests.storage')
    return {
      verdict: `${head} the cluster has no PersistentVolume, and no provisioner makes one`,
      steps: [stepOf(one, `searches for ${request}`, evidence)],
      wouldHelp: ['create a PersistentVolume that matches, or name a StorageClass with a provisioner'],
    }
  }
  const nearest = volumes
    .map((volume) => ({ volume, differences: differencesOf(volume, claim) }))
    .sort((a, b) => a.differences.length - b.differences.length)
    .slice(0, MAX_VOLUMES)
  const steps = nearest.map(({ volume, differences }): Step => {
    const evidence = reader.cite(
      PersistentVolumes,
      volume,
      'spec.capacity.storage',
      'spec.storageClassName',
      'status.phase',
    )
    return stepOf(one, `rejects the volume ${volume.metadata.name}: ${differences.join(', ')}`, evidence)
  })
  const [first] = nearest
  return {
    verdict: `${head} none of ${volumes.length} PersistentVolumes matches ${request}; the nearest is ${first?.volume.metadata.name}: ${first?.differences.join(', ')}`,
    steps,
    wouldHelp: [],
  }
}

/** In plain words. */
function differencesOf(volume: PersistentVolume, claim: PersistentVolumeClaim): string[] {
  const { claimRef } = volume.spec
  const { selector } = claim.spec
  const isTaken = claimRef !== undefined
  const phase = volume.status.phase ?? ''
  const isLabelled = selector === undefined || matchesLabels(asSelector(selector), volume.metadata.labels)
  const hasClass = storageClassOf(volume) === storageClassOf(claim)
  const mismatch = mismatchOf(volume, claim)
  const isTooSmall = mismatch === 'requested PV is too small'
  return [
    ...(isTaken ? [`it is bound to ${claimRef.namespace}/${claimRef.name}`] : []),
    ...(!isTaken && phase !== 'Available' ? [`its phase is ${phase}`] : []),
    ...(isTooSmall ? [`it has ${quantityText(capacityOf(volume))}`] : []),
    ...(hasClass ? [] : [`its class is "${storageClassOf(volume)}"`]),
    ...(mismatch !== undefined && !isTooSmall && hasClass ? [mismatch] : []),
    ...(isLabelled ? [] : ['its labels do not match the selector']),
  ]
}
