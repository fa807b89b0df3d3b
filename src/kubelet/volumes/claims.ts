/** Finds the PersistentVolume of a claim, with upstream's errors when it is not usable. */
import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '#apis/core/v1.ts'
import { claimNameOf, notMadeForPod } from '#model/volumes/volumes.ts'

import type { VolumeSources } from './volume-plugin.ts'

/** An error reported in one message for all waiting volumes. */
export class ClaimFault extends Error {
  override readonly name = 'ClaimFault'
}

export interface Claimed {
  readonly object: PersistentVolume
  readonly claim: PersistentVolumeClaim
  readonly readOnly: boolean
}

type ClaimSources = Pick<VolumeSources, 'claim' | 'persistentVolume'>

/** Undefined for volumes that are not claims. Throws `ClaimFault`. */
export async function claimedBy(pod: Pod, volume: Volume, sources: ClaimSources): Promise<Claimed | undefined> {
  const name = claimNameOf(pod, volume)
  if (name === undefined) return undefined
  const processing = `error processing PVC ${pod.metadata.namespace}/${name}: `
  const claim = await sources.claim(pod, name).catch((error: Error) => {
    throw new ClaimFault(`${processing}failed to fetch PVC from API server: ${error.message}`)
  })
  const complaint = complaintAbout(claim)
  if (complaint !== undefined) throw new ClaimFault(`${processing}${complaint}`)
  const stranger = volume.ephemeral === undefined ? undefined : notMadeForPod(pod, claim)
  if (stranger !== undefined) throw new ClaimFault(stranger)
  const { volumeName = '' } = claim.spec
  const object = await sources.persistentVolume(volumeName).catch((error: Error) => {
    throw new ClaimFault(`${processing}failed to fetch PV ${volumeName} from API server: ${error.message}`)
  })
  const mismatch = bindingFault(object, claim)
  if (mismatch !== undefined) throw new ClaimFault(`${processing}${mismatch}`)
  checkMode(pod, volume, object.spec.volumeMode ?? 'Filesystem')
  return { object, claim, readOnly: volume.persistentVolumeClaim?.readOnly ?? false }
}

const PROTECTION = 'kubernetes.io/pvc-protection'

function complaintAbout({ metadata, spec, status }: PersistentVolumeClaim): string | undefined {
  const isProtected = metadata.finalizers?.includes(PROTECTION) ?? false
  if (metadata.deletionTimestamp !== undefined && !isProtected) return 'PVC is being deleted'
  if (status.phase !== 'Bound') return 'PVC is not bound'
  if ((spec.volumeName ?? '') === '') return 'PVC has empty pvc.Spec.VolumeName'
  return undefined
}

function bindingFault({ metadata, spec }: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  const found = `found PV object ${metadata.name} but`
  if (spec.claimRef === undefined) {
    return `${found} it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim`
  }
  const { uid = '' } = spec.claimRef
  if (uid === claim.metadata.uid) return undefined
  return `${found} its pv.Spec.ClaimRef.UID ${uid} does not point to claim.UID ${claim.metadata.uid}`
}

/** A Filesystem volume needs volumeMounts, a Block volume volumeDevices. */
function checkMode({ spec }: Pod, { name }: Volume, mode: string): void {
  const { initContainers = [], containers, ephemeralContainers = [] } = spec
  for (const container of [...initContainers, ...containers, ...ephemeralContainers]) {
    const { volumeMounts = [], volumeDevices = [] } = container
    if (mode !== 'Filesystem' && volumeMounts.some((mount) => mount.name === name)) {
      throw new ClaimFault(`volume ${name} has volumeMode ${mode}, but is specified in volumeMounts`)
    }
    if (mode !== 'Block' && volumeDevices.some((device) => device.name === name)) {
      throw new ClaimFault(`volume ${name} has volumeMode ${mode}, but is specified in volumeDevices`)
    }
  }
}

/** One message for all claims of a pod that are not ready. `unmounted` also includes other failed volumes. */
export function claimsText(
  unmounted: readonly string[],
  faults: ReadonlyMap<string, ClaimFault>,
  unattached: readonly string[] = [],
): string {
  const list = (names: Iterable<string>): string => `[${[...names].sort().join(' ')}]`
  const lists = `unmounted volumes=${list(unmounted)}, unattached volumes=${list(unattached)}, failed to process volumes=${list(faults.keys())}`
  const why = [...faults.values()].map(({ message }) => message)
  return `Unable to attach or mount volumes: ${lists}: ${why.length === 0 ? 'context deadline exceeded' : why.join('; ')}`
}
