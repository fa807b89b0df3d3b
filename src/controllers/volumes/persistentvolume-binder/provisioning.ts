/**
 * Provisions a volume for a claim. An external driver is triggered by an annotation; this controller itself only
 * creates hostPath directories, for tests on a single machine.
 */
import { Nodes, type PersistentVolume, type PersistentVolumeClaim, PersistentVolumes } from '#apis/core/v1.ts'
import { type StorageClass, StorageClasses } from '#apis/storage/v1.ts'
import type { Draft } from '#client/api-client.ts'
import { sleep } from '#lib/clock.ts'
import { uuid } from '#lib/random.ts'
import { objectKey } from '#meta/object.ts'
import { notFoundError } from '#meta/status-errors.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'
import {
  BOUND_BY_CONTROLLER,
  SELECTED_NODE,
  claimReference,
  hasAnnotation,
  withAnnotations,
} from '#model/volumes/binding.ts'
import { storageClassOf } from '#model/volumes/volumes.ts'

import type { ControllerContext } from '../../controller.ts'
import { messageOf } from '../../pod-creation.ts'
import { IN_TREE_FINALIZER, PROVISIONED_BY, provisionedBy, STORAGE_PROVISIONER } from './annotations.ts'
import { type Binder, writeClaim } from './binder.ts'
import { HOST_PATH, makerOf } from './plugins.ts'

/** Attempts to save a provisioned volume before it is deleted again. */
const SAVES = 5
const SAVE_INTERVAL_MS = 10_000

/** Starts provisioning, unless it is running. */
export async function provision(binder: Binder, claim: PersistentVolumeClaim): Promise<void> {
  const { context, operations } = binder
  if (!context.settings['enable-dynamic-provisioning']) return
  const name = storageClassOf(claim)
  const storageClass = context.cache.get(StorageClasses, name)
  if (storageClass === undefined) {
    return recordFailure(
      context,
      claim,
      notFoundError({ group: StorageClasses.group, resource: 'storageclass' }, name).message,
    )
  }
  const maker = makerOf(storageClass.provisioner)
  if (maker.by === 'none') return recordFailure(context, claim, maker.why)
  const operation = `provision-${objectKey(claim)}[${claim.metadata.uid}]`
  if (maker.by === 'driver') return operations.finish(operation, () => assignToProvisioner(binder, claim, maker.name))
  operations.start(operation, () => makeFolder(binder, claim, storageClass))
}

function recordFailure({ event }: ControllerContext, claim: PersistentVolumeClaim, message: string): void {
  event(claim, { type: 'Warning', reason: 'ProvisioningFailed', message })
}

async function assignToProvisioner(binder: Binder, claim: PersistentVolumeClaim, provisioner: string): Promise<void> {
  const { context } = binder
  try {
    const annotated = await annotateForProvisioner(binder, claim, provisioner)
    const message =
      `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system ` +
      'administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.'
    context.event(annotated, { type: 'Normal', reason: 'ExternalProvisioning', message })
  } catch (error) {
    recordFailure(context, claim, `Error saving claim: ${messageOf(error)}`)
    throw error
  }
}

async function annotateForProvisioner(
  binder: Binder,
  claim: PersistentVolumeClaim,
  provisioner: string,
): Promise<PersistentVolumeClaim> {
  const { annotations = {} } = claim.metadata
  if (annotations[STORAGE_PROVISIONER] === provisioner) return claim
  return writeClaim(binder, withAnnotations(claim, provisionedBy(annotations, provisioner)))
}

async function makeFolder(binder: Binder, before: PersistentVolumeClaim, storageClass: StorageClass): Promise<void> {
  const { context } = binder
  const refuse = (claim: PersistentVolumeClaim, message: string): never => {
    recordFailure(context, claim, message)
    throw new Error(message)
  }
  if (before.spec.dataSource !== undefined) {
    const only = 'Only CSI plugin can provision a claim with a datasource'
    refuse(before, `plugin "${HOST_PATH}" is not a CSI plugin. ${only}`)
  }
  const claim = await annotateForProvisioner(binder, before, storageClass.provisioner)
  if (await isMade(claim, context)) return
  const problem = obstacle(claim, storageClass, context)
  if (problem !== undefined) refuse(claim, problem)
  const path = `/tmp/hostpath_pv/${uuid(context.random)}`
  try {
    if (claim.spec.volumeMode === 'Block') throw new Error(`${HOST_PATH} does not support block volume provisioning`)
    await context.folders.make(path)
  } catch (error) {
    await reschedule(binder, claim)
    const { name } = storageClass.metadata
    refuse(claim, `Failed to provision volume with StorageClass "${name}": ${messageOf(error)}`)
  }
  await save(volumeFor(claim, storageClass, path), claim, context)
}

async function isMade(claim: PersistentVolumeClaim, { client, signal }: ControllerContext): Promise<boolean> {
  try {
    await client.get(PersistentVolumes, { name: volumeName(claim) }, { signal })
    return true
  } catch (error) {
    if (isNotFound(error)) return false
    throw error
  }
}

/** Deterministic, so that a claim never gets two volumes. */
function volumeName({ metadata }: PersistentVolumeClaim): string {
  return `pvc-${metadata.uid}`
}

function obstacle(
  { metadata }: PersistentVolumeClaim,
  storageClass: StorageClass,
  { settings, cache }: ControllerContext,
): string | undefined {
  const { mountOptions = [] } = storageClass
  if (mountOptions.length > 0) {
    const has = `StorageClass "${storageClass.metadata.name}" has mount options [${mountOptions.join(' ')}]`
    return `Mount options are not supported by the provisioner but ${has}`
  }
  if (!settings['enable-hostpath-provisioner']) {
    return `Failed to create provisioner: provisioning in volume plugin "${HOST_PATH}" is disabled`
  }
  const node = metadata.annotations?.[SELECTED_NODE]
  if (node === undefined || cache.get(Nodes, node) !== undefined) return undefined
  return `Failed to get target node: ${notFoundError({ group: '', resource: 'node' }, node).message}`
}

/** Removes the selected node, so that the scheduler selects again. */
async function reschedule(binder: Binder, claim: PersistentVolumeClaim): Promise<void> {
  if (!hasAnnotation(claim, SELECTED_NODE)) return
  const { [SELECTED_NODE]: _, ...annotations } = claim.metadata.annotations ?? {}
  // The next failure writes it again.
  await writeClaim(binder, withAnnotations(claim, annotations)).catch(() => undefined)
}

function volumeFor(
  claim: PersistentVolumeClaim,
  { reclaimPolicy = 'Delete' }: StorageClass,
  path: string,
): Draft<PersistentVolume> {
  const { accessModes = [], resources } = claim.spec
  return {
    metadata: {
      name: volumeName(claim),
      annotations: {
        'kubernetes.io/createdby': 'hostpath-dynamic-provisioner',
        [BOUND_BY_CONTROLLER]: 'yes',
        [PROVISIONED_BY]: HOST_PATH,
      },
      ...(reclaimPolicy === 'Delete' && { finalizers: [IN_TREE_FINALIZER] }),
    },
    spec: {
      capacity: { storage: resources.requests?.['storage'] ?? '0' },
      accessModes: accessModes.length > 0 ? accessModes : ['ReadWriteOnce'],
      hostPath: { path },
      persistentVolumeReclaimPolicy: reclaimPolicy,
      storageClassName: storageClassOf(claim),
      claimRef: claimReference(claim),
    },
  }
}

async function save(
  volume: Draft<PersistentVolume>,
  claim: PersistentVolumeClaim,
  context: ControllerContext,
): Promise<void> {
  const { client, clock, event, folders, signal } = context
  for (let attempt = 1; ; attempt++) {
    try {
      await client.create(PersistentVolumes, volume, { signal })
      break
    } catch (error) {
      if (isAlreadyExists(error)) break
      if (attempt < SAVES) await sleep(clock, SAVE_INTERVAL_MS, signal)
      else {
        const problem = `Error creating provisioned PV object for claim ${objectKey(claim)}: ${messageOf(error)}`
        recordFailure(context, claim, `${problem}. Deleting the volume.`)
        return folders.remove(volume.spec?.hostPath?.path ?? '')
      }
    }
  }
  const message = `Successfully provisioned volume ${volume.metadata.name} using ${HOST_PATH}`
  event(claim, { type: 'Normal', reason: 'ProvisioningSucceeded', message })
}
