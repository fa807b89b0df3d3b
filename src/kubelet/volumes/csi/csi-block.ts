/** Stages and publishes CSI volumes in block mode, and links them into the directory of the pod. */
import { mkdir, rm, rmdir, symlink } from 'node:fs/promises'
import { dirname } from 'node:path'

import { callText } from '#cri/call-text.ts'

import { VolumeFault } from '../volume-fault.ts'
import { attachmentName, CSI_PLUGIN, type CsiPaths } from './csi-names.ts'
import { CAPABILITY, type NodeService } from './csi-node-service.ts'
import { deviceLink, namesIn, type PodVolumeRecord, unlessGone, writeRecord } from './csi-records.ts'
import type { CsiRequest, ServingDriver } from './csi-request.ts'
import { capabilityOf, podAttributes } from './csi-source.ts'

interface BlockMountOptions {
  readonly serving: ServingDriver
  readonly secrets: { readonly stage: ReadonlyMap<string, string>; readonly publish: ReadonlyMap<string, string> }
  readonly rootDir: string
  readonly paths: CsiPaths
  /** The volume is already published. */
  readonly isThere: boolean
}

/** Returns the link. */
export async function mountBlockDevice(request: CsiRequest, options: BlockMountOptions): Promise<string> {
  const { pod, name, source } = request
  const { serving, secrets, rootDir, paths, isThere } = options
  const { uid = '' } = pod.metadata
  const link = deviceLink(rootDir, uid, CSI_PLUGIN, name)
  if (isThere) return link
  const { driver: driverName, handle: volumeHandle, lifecycle: volumeLifecycleMode } = source
  const attachmentID = attachmentName(volumeHandle, driverName, pod.spec.nodeName ?? '')
  await writeRecord(paths.blockData(name), {
    driverName,
    volumeHandle,
    specVolID: name,
    volumeLifecycleMode,
    attachmentID,
  })
  const publishPath = paths.blockPublish(name, uid)
  // The link comes before the call, so that the volume is cleaned up with the pod.
  await mkdir(dirname(link), { recursive: true, mode: 0o750 })
  await rm(link, { force: true })
  await symlink(publishPath, link)
  const volumeCapability = capabilityOf(source, serving.capabilities)
  const common = { volumeId: volumeHandle, publishContext: serving.publishContext, volumeCapability }
  const stagingTargetPath = paths.blockStaging(name)
  if (serving.capabilities.has(CAPABILITY.stage)) {
    await mkdir(stagingTargetPath, { recursive: true, mode: 0o750 })
    const volumeContext = new Map(Object.entries(source.attributes))
    await serving.service
      .stage({ ...common, stagingTargetPath, secrets: secrets.stage, volumeContext })
      .catch((error: unknown) => {
        throw new VolumeFault('MapVolume.SetUpDevice failed', callText(error))
      })
  }
  await mkdir(dirname(publishPath), { recursive: true, mode: 0o750 })
  const attributes = { ...source.attributes, ...podAttributes(pod, source, serving.object) }
  await serving.service
    .publish({
      ...common,
      stagingTargetPath,
      targetPath: publishPath,
      readonly: source.readOnly,
      secrets: secrets.publish,
      volumeContext: new Map(Object.entries(attributes)),
    })
    .catch((error: unknown) => {
      throw new VolumeFault('MapVolume.MapPodDevice failed', callText(error))
    })
  return link
}

interface BlockUnmountOptions {
  readonly service: NodeService
  readonly paths: CsiPaths
}

/** Also unstages the volume when no other pod uses it. */
export async function unmountBlockDevice(
  found: PodVolumeRecord,
  { service, paths }: BlockUnmountOptions,
): Promise<void> {
  const { uid, path: link, name, record } = found
  const volumeId = record.volumeHandle
  await service.unpublish({ volumeId, targetPath: paths.blockPublish(name, uid) }).catch((error: unknown) => {
    throw new Error(`${CSI_PLUGIN}: blockMapper.unpublishVolumeForBlock failed: ${callText(error)}`, { cause: error })
  })
  await rm(paths.blockPublish(name, uid), { force: true })
  if ((await namesIn(paths.blockPublishes(name))).length === 0) {
    const stagingTargetPath = paths.blockStaging(name)
    if ((await namesIn(paths.blockStagings)).includes(name)) {
      await service.unstage({ volumeId, stagingTargetPath }).catch((error: unknown) => {
        throw new Error(`${CSI_PLUGIN}: blockMapper.unstageVolumeForBlock failed: ${callText(error)}`, { cause: error })
      })
      await rmdir(stagingTargetPath).catch(unlessGone)
    }
    await rmdir(paths.blockPublishes(name)).catch(unlessGone)
    await rm(link, { force: true })
    await rm(paths.blockVolume(name), { recursive: true, force: true })
  }
  await rm(link, { force: true })
}
