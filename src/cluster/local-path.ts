/**
 * The default StorageClass: volumes are directories on the node of the first pod, like Rancher's local-path-provisioner
 * and under its names. The kubelet creates the directory.
 */
import { dirname, join } from 'node:path'

import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
} from '#apis/core/v1.ts'
import { type StorageClass, StorageClasses } from '#apis/storage/v1.ts'
import { type Controller, type ControllerContext, defineController } from '#controllers/controller.ts'
import { PROVISIONED_BY, STORAGE_PROVISIONER } from '#controllers/volumes/persistentvolume-binder/annotations.ts'
import { isBeingDeleted, objectKey } from '#meta/object.ts'
import { isAlreadyExists } from '#meta/status.ts'
import { claimReference, SELECTED_NODE } from '#model/volumes/binding.ts'
import { EVENTS, related, rule } from '#reconcile/controller.ts'

const PROVISIONER = 'rancher.io/local-path'
const MODES = ['ReadWriteOnce', 'ReadWriteOncePod']

export const LOCAL_PATH_CLASS: Omit<StorageClass, 'kind' | 'apiVersion'> = {
  metadata: { name: 'local-path', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner: PROVISIONER,
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'WaitForFirstConsumer',
}

/** Keys are claims, `namespace/name`, and volumes without a namespace. `folder` contains the volumes on a node. */
export function localPathProvisioner(folder: string): Controller {
  return defineController({
    name: 'local-path-provisioner',
    component: PROVISIONER,
    retry: { baseMs: 15_000, capMs: 1_000_000 },
    watches: [
      related(PersistentVolumeClaims, (claim) => (isWaiting(claim) ? [objectKey(claim)] : [])),
      related(PersistentVolumes, (volume) => (isDone(volume) ? [objectKey(volume)] : [])),
    ],
    reads: [StorageClasses],
    rules: [
      rule('', 'persistentvolumeclaims', 'get list watch'),
      rule('', 'persistentvolumes', 'get list watch create delete'),
      rule('storage.k8s.io', 'storageclasses', 'get list watch'),
      EVENTS,
    ],
    async reconcile(key, context) {
      const claim = context.cache.get(PersistentVolumeClaims, key)
      if (claim !== undefined && isWaiting(claim)) return provision(claim, folder, context)
      const volume = context.cache.get(PersistentVolumes, key)
      if (volume !== undefined && isDone(volume)) return remove(volume, folder, context)
    },
  })
}

/** The binder has assigned it to us, and the scheduler has selected a node. */
function isWaiting(claim: PersistentVolumeClaim): boolean {
  const { annotations = {} } = claim.metadata
  return (
    (claim.spec.volumeName ?? '') === '' &&
    !isBeingDeleted(claim) &&
    annotations[STORAGE_PROVISIONER] === PROVISIONER &&
    (annotations[SELECTED_NODE] ?? '') !== ''
  )
}

function isDone(volume: PersistentVolume): boolean {
  return (
    volume.status?.phase === 'Released' &&
    volume.spec.persistentVolumeReclaimPolicy === 'Delete' &&
    volume.metadata.annotations?.[PROVISIONED_BY] === PROVISIONER &&
    !isBeingDeleted(volume)
  )
}

async function provision(claim: PersistentVolumeClaim, folder: string, context: ControllerContext): Promise<void> {
  const { cache, client, event, signal } = context
  const storageClass = cache.get(StorageClasses, claim.spec.storageClassName ?? '')
  if (storageClass === undefined) return
  const name = objectKey(claim)
  const message = `External provisioner is provisioning volume for claim "${name}"`
  event(claim, { type: 'Normal', reason: 'Provisioning', message })
  const problem = problemOf(claim)
  if (problem !== undefined) {
    const failed = `failed to provision volume with StorageClass "${storageClass.metadata.name}": ${problem}`
    event(claim, { type: 'Warning', reason: 'ProvisioningFailed', message: failed })
    throw new Error(failed)
  }
  const volume = volumeFor(claim, storageClass, folder)
  try {
    await client.create(PersistentVolumes, volume, { signal })
  } catch (error) {
    // Created by an earlier run that was interrupted.
    if (!isAlreadyExists(error)) throw error
  }
  const made = `Successfully provisioned volume ${volume.metadata.name}`
  event(claim, { type: 'Normal', reason: 'ProvisioningSucceeded', message: made })
}

function problemOf({ spec }: PersistentVolumeClaim): string | undefined {
  if (spec.selector !== undefined) return 'claim.Spec.Selector is not supported'
  if (spec.accessModes?.every((mode) => MODES.includes(mode)) !== true)
    return 'NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes'
  return undefined
}

function volumeFor(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  folder: string,
): Omit<PersistentVolume, 'kind' | 'apiVersion'> {
  const { namespace, name, uid, annotations } = claim.metadata
  const node = annotations?.[SELECTED_NODE] ?? ''
  const { reclaimPolicy = 'Delete', mountOptions } = storageClass
  return {
    metadata: {
      name: `pvc-${uid}`,
      annotations: { [PROVISIONED_BY]: PROVISIONER, 'local.path.provisioner/selected-node': node },
    },
    spec: {
      accessModes: claim.spec.accessModes ?? [],
      capacity: { storage: claim.spec.resources?.requests?.storage ?? '0' },
      claimRef: claimReference(claim),
      hostPath: { path: join(folder, `pvc-${uid}_${namespace}_${name}`), type: 'DirectoryOrCreate' },
      ...(mountOptions !== undefined && { mountOptions }),
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] },
          ],
        },
      },
      persistentVolumeReclaimPolicy: reclaimPolicy,
      storageClassName: storageClass.metadata.name ?? '',
      volumeMode: claim.spec.volumeMode ?? 'Filesystem',
    },
    status: {},
  }
}

/** Removes nothing outside of the folder, because users who create volumes choose the path. */
async function remove(volume: PersistentVolume, folder: string, context: ControllerContext): Promise<void> {
  const { client, folders, signal } = context
  const path = volume.spec.hostPath?.path ?? ''
  if (dirname(path) === folder && path === join(path)) await folders.remove(path)
  await client.delete(PersistentVolumes, { name: volume.metadata.name ?? '' }, { signal })
}
